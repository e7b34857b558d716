package host

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
)

// DebugVariable asks a program, when it is set, for the debug listener.
const DebugVariable = "BENCH_DEBUG"

// Figures are what GET /figures of the debug listener answers.
type Figures struct {
	Goroutines int    // those of the debug listener included
	HeapBytes  uint64 // live and not yet collected
	Mallocs    uint64 // objects allocated since the start
	GCs        uint32
}

// Debug starts the debug listener where [DebugVariable] asks for it, and prints its address. GET /gc collects garbage
// first and gives free memory back; /debug/pprof/ is as usual.
func Debug() {
	if os.Getenv(DebugVariable) == "" {
		return
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /figures", func(w http.ResponseWriter, _ *http.Request) { writeFigures(w) })
	mux.HandleFunc("GET /gc", func(w http.ResponseWriter, _ *http.Request) {
		debug.FreeOSMemory()
		writeFigures(w)
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	fmt.Printf("debug listener: http://%v\n", ln.Addr())
	go http.Serve(ln, mux)
}

func writeFigures(w http.ResponseWriter) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	json.NewEncoder(w).Encode(Figures{runtime.NumGoroutine(), m.HeapAlloc, m.Mallocs, m.NumGC})
}

// Serve serves a handler at -addr until SIGTERM or SIGINT, and exits.
func Serve(handler http.Handler) {
	addr := flag.String("addr", "127.0.0.1:0", "`address` to listen on")
	flag.Parse()
	Debug()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		fail(err)
	}
	fmt.Printf("listening on http://%v\n", ln.Addr())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	server := http.Server{Handler: handler}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(ln); ctx.Err() == nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
