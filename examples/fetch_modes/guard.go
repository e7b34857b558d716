package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// refusedPrefixes are what is no public unicast address within the ranges that hold such addresses: all of IPv4, and 2000::/3.
// Ranges that embed an IPv4 address are refused whole, whatever they embed.
var refusedPrefixes = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // shared, behind carriers' NAT
	"127.0.0.0/8",      // loopback
	"168.63.129.16/32", // Azure's service for its machines: public by its number alone
	"169.254.0.0/16",   // link-local, and most clouds' metadata
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, broadcast
	"2001::/23",        // protocol assignments, Teredo among them
	"2001:db8::/32",    // documentation
	"2002::/16",        // 6to4
	"3fff::/20",        // documentation
)

// globalUnicast holds all public IPv6 addresses. Outside are loopback, mapped, compatible and NAT64 addresses, local ones of
// every kind, and multicast.
var globalUnicast = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

// public reports whether a is a public unicast address. One with a zone is not, nor an IPv4 address in IPv6's clothes.
func public(a netip.Addr) bool {
	if !a.Is4() && !globalUnicast.Contains(a) { // contains none with a zone
		return false
	}
	return !slices.ContainsFunc(refusedPrefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// An allowList names what may be fetched although it is not public, on any port. The zero value is empty.
type allowList struct {
	hosts    []string
	prefixes []netip.Prefix
}

// parseAllowList reads host names, addresses and CIDR ranges with commas between them.
func parseAllowList(text string) (allowList, error) {
	var l allowList
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if entry == "" {
			continue
		}
		if a, err := netip.ParseAddr(entry); err == nil {
			l.prefixes = append(l.prefixes, netip.PrefixFrom(a, a.BitLen()))
		} else if p, err := netip.ParsePrefix(entry); err == nil {
			l.prefixes = append(l.prefixes, p)
		} else if !strings.ContainsAny(entry, "/:@ ") {
			l.hosts = append(l.hosts, strings.TrimSuffix(entry, "."))
		} else {
			return allowList{}, fmt.Errorf("%q: want a host, an address or a range, such as wiki.intranet, 10.0.0.7 or 10.0.0.0/8", entry)
		}
	}
	return l, nil
}

func (l allowList) host(name string) bool {
	return slices.Contains(l.hosts, strings.TrimSuffix(strings.ToLower(name), "."))
}

func (l allowList) addr(a netip.Addr) bool {
	return slices.ContainsFunc(l.prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// A guard dials for HTTP, and what it refuses is not dialled. It resolves a name once, and dials an address that it has
// checked, never the name: so a name that resolves to another address next time gains nothing.
type guard struct {
	allow  allowList
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// dialTime is what one of a host's addresses may take to answer before the next is tried.
const dialTime = 5 * time.Second

// newGuard is a guard before the machine's own network.
func newGuard(allow allowList) *guard {
	return &guard{allow: allow, lookup: lookup, dial: (&net.Dialer{Timeout: dialTime}).DialContext}
}

// lookup is the resolver's. It writes IPv4 addresses as IPv6 ones, which is no wish of whoever keeps the name.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found, err
}

// DialContext connects to the first address of the host that is permitted and answers.
func (g *guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := g.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	webPort := port == "80" || port == "443"
	err = &failure{kind: refused}
	for _, a := range addrs {
		if !(webPort && public(a)) && !g.allow.addr(a) && !g.allow.host(host) {
			continue
		}
		conn, dialErr := g.dial(ctx, network, net.JoinHostPort(a.String(), port))
		if dialErr == nil {
			return conn, nil
		}
		err = dialErr
	}
	return nil, err
}

func (g guard) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	addrs, err := g.lookup(ctx, host)
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return nil, &failure{kind: noSuchHost, err: err}
	}
	return addrs, err
}
