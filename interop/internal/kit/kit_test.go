package kit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
)

func TestCutterCutsWhatIsOpen(t *testing.T) {
	streams := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		streams <- struct{}{}
		if r.URL.Path == "/stream" {
			<-r.Context().Done() // which the cut ends
		}
	}))
	defer server.Close()
	cutter := NewCutter(t, Server{URL: server.URL})
	get := func(path string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cutter.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		<-streams
		return res
	}

	stream := get("/stream")
	defer stream.Body.Close()
	if n := cutter.Cut(); n != 1 {
		t.Errorf("%d connections were cut, want 1", n)
	}
	if _, err := io.ReadAll(stream.Body); err == nil {
		t.Error("the stream ended as if it were whole")
	}
	again := get("/") // a connection of its own
	defer again.Body.Close()
	if _, err := io.ReadAll(again.Body); err != nil {
		t.Error(err)
	}
}

func TestCacheIsFilledOnceOrNotAtAll(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "cache", "filled")
	if err := fillBeside(t.Context(), dir, func(_ context.Context, build string) error {
		return errors.Join(os.WriteFile(filepath.Join(build, "half"), nil, 0o600), errors.New("no network"))
	}); err == nil {
		t.Error("the failure is not told")
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 0 {
		t.Errorf("a failure leaves %v (%v)", left, err)
	}

	synctest.Test(t, func(t *testing.T) { // in which both are at it at once
		ready := make(chan struct{})
		var fillers sync.WaitGroup
		for range 2 {
			fillers.Go(func() {
				if err := fillBeside(t.Context(), dir, func(_ context.Context, build string) error {
					<-ready
					return os.WriteFile(filepath.Join(build, "whole"), nil, 0o600)
				}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(ready)
		fillers.Wait()
	})
	if _, err := os.Stat(filepath.Join(dir, "whole")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
		t.Errorf("beside it lie %v (%v)", left, err)
	}
}
