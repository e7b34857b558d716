package transport

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Clients that send as slowly as they can, in fake time.

// dribble begins to write bytes one by one, with a pause before each, until that fails or the test ends.
func dribble(t *testing.T, c net.Conn, text string, pause time.Duration) {
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range len(text) {
			time.Sleep(pause)
			if _, err := io.WriteString(c, text[i:i+1]); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		c.Close()
		writing.Wait()
	})
}

// lorisServer serves the lab in a bubble, and returns how to connect to it.
func lorisServer(t *testing.T) (srv *Server, connect func() net.Conn) {
	t.Helper()
	srv, ln := listenInMemory(t, labEnv(), counted())
	return srv, func() net.Conn {
		c, err := ln.Dial(context.Background(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
}

// Whoever dribbles the head of a request is cut off, has no session, and holds nobody up.
func TestDribbledHeads(t *testing.T) {
	for name, head := range map[string]string{
		"/ws":        "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Pad: ",
		"POST /mcp":  "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Pad: ",
		"no request": "",
		"one line":   "GET /",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, connect := lorisServer(t)
				c, begun := connect(), time.Now()
				dribble(t, c, head+strings.Repeat("x", 1000), time.Second)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if n := srv.Sessions().Active(); n != 0 {
					t.Errorf("%d slots are taken", n)
				}
				if status := healthOver(t, connect()); status != http.StatusOK {
					t.Errorf("another got %d meanwhile", status)
				}
				if _, err := io.ReadAll(c); err != nil { // until it is closed
					t.Error(err)
				}
				if took := time.Since(begun); took > headTime+2*time.Second {
					t.Errorf("it was cut off after %v", took)
				}
			})
		})
	}
}

// headTime is how long a head may take, from its first byte on; one that never begins has as long.
const headTime = 10 * time.Second

// Whoever dribbles a body is answered with 408 in the time that the server gives to one of that length.
func TestDribbledBodies(t *testing.T) {
	for path, body := range map[string]string{
		"/mcp": rpcCall("say", `{"text":"`, ""), "/step": `{"action":{"type":"call_tool","tool_name":"say","arguments":{"text":"`,
		"/reset": `{"x":"`, "/mcp?session_id=nosuch": initializeBody[:40],
	} {
		for _, pause := range []time.Duration{time.Second, readTimeout - time.Second, readTimeout + time.Second} {
			for length, framing := range map[string]string{"known": "Content-Length: 100000", "unknown": "Transfer-Encoding: chunked"} {
				t.Run(fmt.Sprintf("%s/a byte in %v/length %s", path, pause, length), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv, connect := lorisServer(t)
						c := connect()
						fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n\r\n", path, framing)
						stream, most := body+strings.Repeat("x", 5000), timeFor(100_000)
						if length == "unknown" {
							stream, most = "fffff\r\n"+stream, timeFor(srv.opts.MaxMessage)
						}
						begun := time.Now()
						dribble(t, c, stream, pause)
						time.Sleep(3 * time.Second)
						if status := healthOver(t, connect()); status != http.StatusOK || srv.Sessions().Active() != 0 {
							t.Errorf("meanwhile another got %d, and %d slots were taken", status, srv.Sessions().Active())
						}
						res, err := http.ReadResponse(bufio.NewReader(c), nil)
						if err != nil || res.StatusCode != http.StatusRequestTimeout {
							t.Fatalf("got %v, %v", res, err)
						}
						if _, err := io.ReadAll(res.Body); err != nil {
							t.Error(err)
						}
						if took := time.Since(begun); took > max(most, readTimeout)+time.Second {
							t.Errorf("that took %v, more than %v", took, most)
						}
						if n := srv.Sessions().Active(); n != 0 {
							t.Errorf("%d slots are taken", n)
						}
					})
				})
			}
		}
	}
}

// healthOver asks for /health on a connection.
func healthOver(t *testing.T, c net.Conn) int {
	t.Helper()
	defer c.Close()
	fmt.Fprint(c, "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}
