package gymtest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing/synctest"
	"time"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/memnet"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

// base is the address of every server: they listen in memory.
const base = "http://localhost"

// served is an environment that is being served in a bubble.
type served struct {
	srv   *transport.Server
	class *gym.Class
	clock clock
	web   *http.Client
	stop  func() error // ends the server and its connections; idempotent
}

// firstSeed seeds sessions until a reset does, so that tools without a reset are reproducible too.
const firstSeed = 7

// serve serves env until stop.
func serve(env gym.Definition, mode tools.Mode, log *journal) (*served, error) {
	s := &served{}
	s.clock.restart()
	srv, err := transport.New(context.Background(), env, transport.Options{
		Mode: mode, Logger: slog.New(log),
		Sessions: session.Options{Now: s.clock.now, Seed: func() uint64 { return firstSeed }},
	})
	if err != nil {
		return nil, err
	}
	s.srv, s.class = srv, srv.Sessions().Class()
	ln := memnet.Listen()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, ln, nil) }()
	s.web = &http.Client{Transport: &http.Transport{DialContext: ln.Dial}}
	s.stop = sync.OnceValue(func() error {
		cancel()
		err := <-ended
		s.web.CloseIdleConnections()
		return err
	})
	return s, nil
}

// A clock is what Session.Now shows: it begins at the same time in every play, while time.Now goes on.
type clock struct {
	mu    sync.Mutex
	start time.Time
}

var epoch = time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)

func (c *clock) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start = time.Now()
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return epoch.Add(time.Since(c.start))
}

// settled waits until no session is left, for what a session has to end in anyway.
func (s *served) settled() error {
	const within = time.Minute
	synctest.Wait() // a socket that was cut at once may not have its session yet
	for end := time.Now().Add(within); s.srv.Sessions().Active() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%d sessions have not ended within %v after their sockets were closed", s.srv.Sessions().Active(), within)
		}
	}
	return nil
}
