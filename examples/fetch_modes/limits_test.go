package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestDecompressionBomb: the body never ends, and is zeros, gzipped. Bytes are counted as they are after decompression.
func TestDecompressionBomb(t *testing.T) {
	gone := make(chan struct{})
	w := newWorld(t, "", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(gone)
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		zeros := make([]byte, 1<<20)
		for z := gzip.NewWriter(w); ; {
			if _, err := z.Write(zeros); err != nil {
				return
			}
		}
	}))
	page, err := w.browser().fetch(t.Context(), Fetch{URL: "http://public.test/", MaxBytes: 1000, Format: "raw"})
	if err != nil || !page.Truncated || len(page.Text) != 1000 {
		t.Errorf("%d bytes, truncated %v, %v", len(page.Text), page.Truncated, err)
	}
	<-gone // the connection is closed, not read to its end
}

func TestForeignCompression(t *testing.T) {
	for _, coding := range []string{"br", "gzip, gzip", "deflate"} {
		w := newWorld(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", coding)
			hello(w, r)
		}))
		_, err := w.fetch(t, "http://public.test/")
		refusedTo(t, err, "compressed by")
	}
}

func TestTimeLimit(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"no header": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"no end": func(w http.ResponseWriter, r *http.Request) {
			hello(w, r)
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		w := newWorld(t, "", handler)
		b := w.browser()
		b.time = 50 * time.Millisecond
		_, err := b.fetch(t.Context(), Fetch{URL: "http://public.test/", MaxBytes: 100, Format: formatText})
		t.Log(name)
		refusedTo(t, err, "took too long")
	}
}

// TestCancel: the caller's end is the caller's, and no failure of the page.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorld(t, "", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	if _, err := w.browser().fetch(ctx, Fetch{URL: "http://public.test/", MaxBytes: 100}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestHostileServers(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		words   string
	}{
		"a header without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeader))
		}, "could not be reached"},
		"breaks off": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			hello(w, r)
			panic(http.ErrAbortHandler)
		}, "broke off"},
		"is no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				io.WriteString(conn, "SSH-2.0-banner\r\n")
				conn.Close()
			}
		}, "could not be reached"},
		"redirects for ever": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, "more than 5 times"},
		"a picture": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
		}, "is of type"},
		"a picture that does not say so": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "\x89PNG\r\n\x1a\n")
		}, "is of type"},
		"a type that is none": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", ";;;")
		}, "is of type"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", c.handler)
			_, err := w.fetch(t, "http://public.test/")
			refusedTo(t, err, c.words)
		})
	}
}

func TestRedirects(t *testing.T) {
	w := newWorld(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left := r.URL.Path[1:]; left != "" {
			http.Redirect(w, r, r.URL.Path[:len(left)], http.StatusFound)
			return
		}
		hello(w, r)
	}))
	if page, err := w.fetch(t, "http://public.test/xxxxx"); err != nil || page.URL != "http://public.test/" {
		t.Errorf("5 redirects: %+v, %v", page, err)
	}
	_, err := w.fetch(t, "http://public.test/xxxxxx")
	refusedTo(t, err, "more than 5 times")
}

func TestFailuresOfTheNetwork(t *testing.T) {
	w := newWorld(t, "", http.HandlerFunc(hello))
	w.guard.dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("dial tcp 10.9.8.7:80: connection refused")
	}
	b := w.browser()
	b.transport = newTransport(w.guard)
	_, err := b.fetch(t.Context(), Fetch{URL: "http://public.test/"})
	refusedTo(t, err, "could not be reached")
	if strings.Contains(err.Error(), "10.9.8.7") {
		t.Errorf("the failure tells an address: %v", err)
	}
}

// TestNoText: what a server says need not be UTF-8, and must not break the answer.
func TestNoText(t *testing.T) {
	w := newWorld(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := map[string]string{"/": "/\xff?\xff", "/away": "http://me@a\xff/"}[r.URL.Path]; to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, "<title>\xff</title>\xff&#xD800;\x00")
	}))
	page, err := w.fetch(t, "http://public.test/")
	if err != nil || !utf8.ValidString(page.URL+page.Title+page.Text) || page.Title != "\uFFFD" {
		t.Errorf("%+v, %v", page, err)
	}
	_, err = w.fetch(t, "http://public.test/away")
	refusedTo(t, err, "user's name")
	if !utf8.ValidString(err.Error()) {
		t.Errorf("%q is no UTF-8", err)
	}
}

func TestCertificate(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	w := newWorld(t, "", http.HandlerFunc(hello))
	w.guard.dial = func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("tcp", srv.Listener.Addr().String())
	}
	b := w.browser()
	b.transport = newTransport(w.guard)
	_, err := b.fetch(t.Context(), Fetch{URL: "https://public.test/"})
	refusedTo(t, err, "no valid certificate")
}

func TestWrongAddresses(t *testing.T) {
	w := newWorld(t, "", http.HandlerFunc(hello))
	for url, words := range map[string]string{
		"": "no address", "public.test/page": "no address", "http:public.test": "no address", "http://": "no host", "ht tp://x/": "no address",
		"ftp://public.test/": "only http and https", "http://me:secret@public.test/": "user's name", "http://[::1": "no address",
		"javascript:alert(1)": "no address", "http://x/\x00": "no address",
	} {
		_, err := w.fetch(t, url)
		refusedTo(t, err, words)
	}
	if len(w.dialled) > 0 {
		t.Errorf("dialled %v", w.dialled)
	}
}

func TestSizes(t *testing.T) {
	body := strings.Repeat("é", 98) + "🙂"
	w := newWorld(t, "", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, body)
	}))
	for limit, want := range map[int]int{1: 0, 2: 2, 196: 196, 198: 196, 199: 196, 200: 200, 5000: 200} {
		page, err := w.browser().fetch(t.Context(), Fetch{URL: "http://public.test/", MaxBytes: limit, Format: "raw"})
		if err != nil || len(page.Text) != want || page.Truncated != (limit < 200) || !utf8.ValidString(page.Text) {
			t.Errorf("limit %d: %d bytes, truncated %v, %v", limit, len(page.Text), page.Truncated, err)
		}
	}
}

func TestHead(t *testing.T) {
	w := newWorld(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "image/png")
		w.Header().Set("Content-Length", "12345")
		w.Header().Set("X-Method", r.Method)
	}))
	head, err := w.browser().head(t.Context(), Address{"http://public.test/old"})
	if err != nil || head.URL != "http://public.test/new" || head.Length == nil || *head.Length != 12345 || head.ContentType != "image/png" {
		t.Errorf("%s, %v", fmt.Sprint(head), err)
	}
	_, err = w.browser().head(t.Context(), Address{"http://127.0.0.1/"})
	refusedTo(t, err, "only public hosts")
}
