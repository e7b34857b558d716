package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

func TestPublicUnicast(t *testing.T) {
	for _, text := range []string{
		"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "223.255.255.255", "192.0.1.1",
		"2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888", "2001:200::1",
	} {
		if !public(netip.MustParseAddr(text)) {
			t.Errorf("%s is refused", text)
		}
	}
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "100.127.255.255", "127.0.0.1", "127.255.255.255", "168.63.129.16",
		"169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
		"198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b:1::8.8.8.8",
		"100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
		"2002:7f00:1::1", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%lo", "fec0::1",
		"ff02::1", "2606:4700::1111%eth0",
	} {
		if public(netip.MustParseAddr(text)) {
			t.Errorf("%s is taken for a public address", text)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address at all is taken for a public one")
	}
}

func TestAllowList(t *testing.T) {
	l, err := parseAllowList(" Wiki.Intranet., 10.0.0.7 ,192.168.0.0/16,fd00::/8,, ::1")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"10.0.0.7": true, "10.0.0.8": false, "192.168.3.4": true, "fd12::1": true, "::1": true, "::2": false,
		"::ffff:10.0.0.7": false, "fd12::1%eth0": false,
	} {
		if got := l.addr(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: allowed %v", text, got)
		}
	}
	if !l.host("wiki.intranet") || !l.host("WIKI.intranet.") || l.host("intranet") || l.host("x.wiki.intranet") {
		t.Error("hosts are not matched by their whole name")
	}
	for _, wrong := range []string{"http://wiki", "10.0.0.0/33", "wiki:80", "a b"} {
		if _, err := parseAllowList(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// somewhere is a public address that is never dialled: a world has its server there.
var somewhere = netip.MustParseAddr("8.8.8.8")

// A world is a network of one server, which stands at every address, below the guard.
type world struct {
	*guard
	client  *http.Transport
	mu      sync.Mutex
	dialled []string
	names   map[string][]netip.Addr // what a name resolves to: one after another, then the last for ever; unless it is there, somewhere
}

func newWorld(t *testing.T, allow string, h http.Handler) *world {
	t.Helper()
	srv := httptest.NewServer(h)
	w := &world{names: map[string][]netip.Addr{}}
	list, err := parseAllowList(allow)
	if err != nil {
		t.Fatal(err)
	}
	w.guard = newGuard(list)
	w.lookup = w.resolveNext
	dial := w.dial
	w.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		w.mu.Lock()
		w.dialled = append(w.dialled, address)
		w.mu.Unlock()
		return dial(ctx, network, srv.Listener.Addr().String())
	}
	w.client = newTransport(w.guard)
	t.Cleanup(func() {
		w.client.CloseIdleConnections()
		srv.Close()
	})
	return w
}

func (w *world) resolveNext(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	addrs := w.names[host]
	if len(addrs) == 0 {
		return []netip.Addr{somewhere}, nil
	}
	if len(addrs) > 1 {
		w.names[host] = addrs[1:]
	}
	return addrs[:1], nil
}

func (w *world) browser() browser {
	return browser{transport: w.client, room: newRoom(), time: fetchTime, log: slog.New(slog.DiscardHandler)}
}

func (w *world) fetch(t *testing.T, url string) (Page, error) {
	t.Helper()
	return w.browser().fetch(t.Context(), Fetch{URL: url, MaxBytes: 4096, Format: formatText})
}

// refusedTo checks that err is the tool's own failure with a text in it, and without an address that it must not tell.
func refusedTo(t *testing.T, err error, words string) {
	t.Helper()
	told, ok := err.(*tools.Failure)
	if !ok || !strings.Contains(told.Message, words) {
		t.Errorf("got %v; want a failure with %q", err, words)
	}
}

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprint(w, "hello")
}

// TestRebinding: a name that resolves to a public address first, and to a private one next.
func TestRebinding(t *testing.T) {
	w := newWorld(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // each fetch resolves anew
		hello(w, r)
	}))
	w.names["rebind.test"] = []netip.Addr{somewhere, netip.MustParseAddr("127.0.0.1")}
	page, err := w.fetch(t, "http://rebind.test/")
	if err != nil || page.Text != "hello" {
		t.Fatalf("%+v, %v", page, err)
	}
	_, err = w.fetch(t, "http://rebind.test/")
	refusedTo(t, err, "only public hosts")
	if strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("the failure tells what the name resolved to: %v", err)
	}
	if want := []string{"8.8.8.8:80"}; !slices.Equal(w.dialled, want) {
		t.Errorf("dialled %v; want %v", w.dialled, want)
	}
}

// TestRedirectToPrivate: each of these is where a public page redirects to.
func TestRedirectToPrivate(t *testing.T) {
	for _, target := range []string{
		"http://127.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:8.8.8.8]/", "http://[64:ff9b::7f00:1]/",
		"http://[fe80::1%25lo]/", "http://169.254.169.254/latest/meta-data/", "http://0/", "http://2130706433/", "http://localhost/",
		"http://inner.test/", "http://public.test:8080/", "http://public.test:22/",
	} {
		w := newWorld(t, "", http.RedirectHandler(target, http.StatusFound))
		for _, name := range []string{"inner.test", "localhost", "0", "2130706433"} { // as the system's resolver has the last two
			w.names[name] = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		}
		_, err := w.fetch(t, "http://public.test/")
		refusedTo(t, err, "only public hosts")
		if want := []string{"8.8.8.8:80"}; !slices.Equal(w.dialled, want) {
			t.Errorf("%s: dialled %v; want %v", target, w.dialled, want)
		}
	}
	for target, words := range map[string]string{
		"file:///etc/passwd": `"file" addresses`, "gopher://public.test/": `"gopher" addresses`, "http://root:secret@public.test/": "user's name",
		"http:///path": "names no host", "//127.0.0.1/": "only public hosts", "/" + strings.Repeat("x", maxURL): "longer than",
	} {
		w := newWorld(t, "", http.RedirectHandler(target, http.StatusFound))
		_, err := w.fetch(t, "http://public.test/")
		refusedTo(t, err, words)
		if strings.Contains(fmt.Sprint(err), "secret") || len(w.dialled) != 1 {
			t.Errorf("%s: %v, dialled %v", target, err, w.dialled)
		}
	}
}

func TestWhatTheAllowListPermits(t *testing.T) {
	for allow, at := range map[string]string{
		"10.0.0.0/8": "http://10.1.2.3:8080/", "wiki.intranet": "http://wiki.intranet:9000/", "::1": "http://[::1]:8080/", "8.8.8.8": "http://public.test:81/",
	} {
		w := newWorld(t, allow, http.HandlerFunc(hello))
		w.names["wiki.intranet"] = []netip.Addr{netip.MustParseAddr("192.168.0.9")}
		if page, err := w.fetch(t, at); err != nil || page.Text != "hello" {
			t.Errorf("%s allowed, %s: %v", allow, at, err)
		}
		_, err := w.fetch(t, "http://192.168.0.9/") // an address is not allowed for the name of its host
		refusedTo(t, err, "only public hosts")
	}
}

// TestNextAddress: of a host's addresses, those that are refused are passed over.
func TestNextAddress(t *testing.T) {
	w := newWorld(t, "", http.HandlerFunc(hello))
	w.guard.lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1"), somewhere}, nil
	}
	conn, err := w.guard.DialContext(t.Context(), "tcp", "both.test:443")
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if want := []string{"8.8.8.8:443"}; !slices.Equal(w.dialled, want) {
		t.Errorf("dialled %v", w.dialled)
	}
}

// TestNoProxy: a proxy, such as the environment may name, would dial in the guard's stead.
func TestNoProxy(t *testing.T) {
	if newTransport(&guard{}).Proxy != nil {
		t.Error("the transport may use a proxy")
	}
}
