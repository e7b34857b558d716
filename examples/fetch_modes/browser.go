package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

const (
	maxRedirects = 5
	maxHeader    = 64 << 10 // bytes of a response's header
	maxURL       = 2048     // bytes of an address, redirects' too

	// fetchTime is what a fetch may take, redirects and all of the body included: less than a tool call has, so that the
	// model reads why it failed.
	fetchTime = 20 * time.Second
)

// A browser fetches pages by a transport, which is a network or a recording: redirects and limits are the same by either.
type browser struct {
	transport http.RoundTripper
	room      *semaphore.Weighted // of newRoom; all browsers of an environment have the same
	time      time.Duration
	log       *slog.Logger
}

// newTransport is HTTP over what the guard dials. No proxy: that would dial in the guard's stead.
func newTransport(g *guard) *http.Transport {
	return &http.Transport{
		DialContext:            g.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           8,
		IdleConnTimeout:        30 * time.Second,
	}
}

// fetch gets a page and renders it.
func (b browser) fetch(ctx context.Context, in Fetch) (Page, error) {
	var page Page
	err := b.do(ctx, http.MethodGet, in.URL, func(ctx context.Context, res *http.Response) (err error) {
		page, err = b.render(ctx, res, in)
		return err
	})
	return page, err
}

// head asks for a page's headers.
func (b browser) head(ctx context.Context, in Address) (Head, error) {
	var head Head
	err := b.do(ctx, http.MethodHead, in.URL, func(_ context.Context, res *http.Response) error {
		head = Head{URL: pageOf(res.Request.URL), Status: res.StatusCode,
			ContentType: valid(res.Header.Get("Content-Type")), LastModified: valid(res.Header.Get("Last-Modified"))}
		if res.ContentLength >= 0 {
			head.Length = &res.ContentLength
		}
		return nil
	})
	return head, err
}

// do sends a request, follows redirects, and has read take the response. Its error is one for the model, or that of ctx.
func (b browser) do(ctx context.Context, method, address string, read func(context.Context, *http.Response) error) error {
	at, err := parseURL(address)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, b.time)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, method, at.String(), nil)
	if err != nil {
		return tools.Failf("%.200q is no address: give one such as https://example.com/page", address)
	}
	req.Header.Set("User-Agent", "openenv-go-fetch/1.0")
	req.Header.Set("Accept", "text/html, text/*;q=0.9, application/json;q=0.8, */*;q=0.1")
	client := http.Client{Transport: b.transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		at = req.URL
		return checkRedirect(req, via)
	}}
	res, err := client.Do(req)
	if err == nil {
		err = read(limited, res)
		res.Body.Close()
	}
	var told *tools.Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &told):
		return tools.Fail(valid(told.Message)) // a redirect may have led anywhere
	case ctx.Err() != nil:
		return ctx.Err()
	}
	b.log.Info("fetch failed", "url", pageOf(at), "error", err)
	return tools.Fail(valid(kindOf(err).tell(at)))
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return tools.Failf("%s redirects more than %d times: try another page", pageOf(via[0].URL), maxRedirects)
	}
	return checkURL(req.URL)
}

// parseURL reads an address that a model gave.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme == "" || u.Opaque != "" {
		return nil, tools.Failf("%.200q is no address: give one such as https://example.com/page", address)
	}
	return u, checkURL(u)
}

// checkURL refuses addresses for what they say. What they lead to is checked where it is dialled.
func checkURL(u *url.URL) error {
	switch {
	case len(u.String()) > maxURL:
		return tools.Failf("an address, %.80s…, is longer than %d bytes: try another page", u.Redacted(), maxURL)
	case u.Scheme != "http" && u.Scheme != "https":
		return tools.Failf("%.20q addresses may not be fetched: only http and https may", u.Scheme)
	case u.Hostname() == "":
		return tools.Fail("the address names no host: give one such as https://example.com/page")
	case u.User != nil:
		return tools.Failf("the address of %s has a user's name in it: leave that out", u.Hostname())
	}
	return nil
}

// pageOf is the address of a page: without a fragment, and its host in one spelling.
func pageOf(u *url.URL) string {
	page := *u
	page.Fragment, page.RawFragment = "", ""
	page.Host = strings.ToLower(page.Host)
	if port := page.Port(); page.Scheme == "http" && port == "80" || page.Scheme == "https" && port == "443" {
		page.Host = strings.TrimSuffix(page.Host, ":"+port)
	}
	if page.Path == "" {
		page.Path = "/"
	}
	return valid(page.String())
}

// valid is a text that can be JSON. Servers may say anything.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// readBody reads at most limit bytes, as they are after decompression, and reports whether there are more.
func readBody(r io.Reader, limit int) (body []byte, more bool, err error) {
	body, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if len(body) > limit {
		return body[:limit], true, nil
	}
	return body, false, err
}
