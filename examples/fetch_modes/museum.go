package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// museumPages are what to record of the museum: pages, redirects, and failures of every kind.
var museumPages = []string{
	"http://museum.example/",
	"http://museum.example/hours",
	"http://museum.example/old-hours",
	"http://museum.example/visit",
	"http://museum.example/exhibits",
	"http://museum.example/exhibits/tide-clock",
	"http://museum.example/exhibits/fog-organ",
	"http://museum.example/exhibits/eel-lift",
	"http://museum.example/exhibits/moon-dial",
	"http://museum.example/people/ilse-marrow",
	"http://museum.example/tickets.json",
	"http://museum.example/diary.txt",
	"http://museum.example/catalogue",
	"http://museum.example/plan.png",
	"http://museum.example/guestbook",
	"http://museum.example/archive",
	"http://museum.example/sounds",
	"http://museum.example/loop",
	"http://shop.museum.example/",
}

// museumTime is how long the recording of the museum waits for a page that never comes.
const museumTime = 2 * time.Second

//go:embed site
var site embed.FS

// recordMuseum records the museum, which is served for that on the loopback interface and nowhere else.
func recordMuseum(ctx context.Context, name string, log *slog.Logger) (tally, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return tally{}, err
	}
	srv := &http.Server{Handler: museum()}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	network := newTransport(museumNetwork(ln.Addr()))
	t, err := record(ctx, name, browser{transport: network, room: newRoom(), time: museumTime, log: log}, museumPages)
	network.CloseIdleConnections()
	err = errors.Join(err, srv.Close())
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return t, err
}

// museumNetwork is a guarded network in which museum.example is all there is.
func museumNetwork(at net.Addr) *guard {
	g := newGuard(allowList{hosts: []string{"museum.example"}})
	g.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "museum.example" {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	dial := g.dial
	g.dial = func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, at.String()) }
	return g
}

// museum serves the museum's pages.
func museum() http.Handler {
	mux := http.NewServeMux()
	pages := map[string]string{"/{$}": "index.html", "/hours": "hours.html", "/visit": "visit.html", "/exhibits": "exhibits.html",
		"/exhibits/tide-clock": "tide-clock.html", "/exhibits/fog-organ": "fog-organ.html", "/exhibits/eel-lift": "eel-lift.html",
		"/people/ilse-marrow": "ilse-marrow.html", "/tickets.json": "tickets.json"}
	for path, file := range pages {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { send(w, file) })
	}
	mux.Handle("/old-hours", http.RedirectHandler("/hours", http.StatusMovedPermanently))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.HandleFunc("/diary.txt", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=iso-8859-1")
		send(w, "diary.txt")
	})
	mux.HandleFunc("/plan.png", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		fmt.Fprint(w, "\x89PNG\r\n\x1a\n")
	})
	mux.HandleFunc("/catalogue", catalogue)
	mux.HandleFunc("/guestbook", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "The guest book is full.", http.StatusInternalServerError)
	})
	mux.HandleFunc("/archive", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/sounds", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4096")
		fmt.Fprint(w, "<p>Listen to the fog organ")
		panic(http.ErrAbortHandler) // breaks off
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		send(w, "not-found.html")
	})
	return mux
}

func send(w http.ResponseWriter, file string) {
	content, err := fs.ReadFile(site, "site/"+file)
	if err != nil {
		panic(err) // it is compiled in
	}
	w.Write(content)
}

// catalogue is larger than what fetch reads unless it is told to read more.
func catalogue(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, "<!doctype html><title>Catalogue of small machines</title>\n<h1>Catalogue of small machines</h1>\n<ol>\n")
	kinds := []string{"winch", "float gauge", "bell", "sluice key", "lamp", "valve", "pennant mast"}
	for n := range 900 {
		fmt.Fprintf(w, "<li>Nr. S-%04d: %s, found %d in cellar %d</li>\n", n+1, kinds[n%len(kinds)], 1890+n*7%80, 1+n%6)
	}
	fmt.Fprint(w, "</ol>\n<p>The last cellar was emptied by Odo Verhulst.</p>\n")
}
