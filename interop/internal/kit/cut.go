package kit

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Cutter stands before a server and cuts connections, as a network does.
type Cutter struct {
	URL     string // the server's address behind the cutter
	Control string // POST /cut there cuts all connections that are open, and answers with their number

	mu   sync.Mutex
	open map[net.Conn]bool
}

// NewCutter starts a cutter before a server, until the end of the test.
func NewCutter(t *testing.T, server Server) *Cutter {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cutter{URL: "http://" + ln.Addr().String(), open: map[net.Conn]bool{}}
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, c.Cut())
	}))
	c.Control = control.URL
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() { c.pass(client, strings.TrimPrefix(server.URL, "http://")) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		control.Close()
		c.Cut()
		running.Wait()
	})
	return c
}

// Cut ends all connections that are open and returns their number.
func (c *Cutter) Cut() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.open)
	for conn := range c.open {
		conn.Close()
	}
	clear(c.open)
	return n
}

func (c *Cutter) pass(client net.Conn, address string) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	c.mu.Lock()
	c.open[client] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.open, client)
		c.mu.Unlock()
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(server, client)
		server.Close() // which ends the other direction
	}()
	io.Copy(client, server)
	client.Close()
	<-done
}
