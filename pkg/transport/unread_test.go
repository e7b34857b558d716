package transport

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const upgradeHead = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

// Whoever announces a body to a request that needs none, and does not send it, has an answer in time and holds no slot.
func TestBodiesThatDoNotCome(t *testing.T) {
	for _, c := range []struct {
		line, head string
		want       int
		within     time.Duration
	}{
		{"GET /health", "", http.StatusRequestTimeout, readTimeout},
		{"GET /openapi.json", "", http.StatusRequestTimeout, readTimeout},
		{"GET /ws", upgradeHead, http.StatusRequestTimeout, readTimeout},
		{"GET /ws?announce=1", upgradeHead, http.StatusRequestTimeout, readTimeout},
		{"GET /mcp", upgradeHead, http.StatusRequestTimeout, readTimeout},
		{"DELETE /mcp", "Mcp-Session-Id: nosuch\r\n", http.StatusRequestTimeout, readTimeout},
		{"POST /nosuch", "", http.StatusNotFound, hurryTime},
		{"POST /health", "", http.StatusMethodNotAllowed, hurryTime},
		{"POST /mcp", "Content-Encoding: gzip\r\n", http.StatusUnsupportedMediaType, hurryTime},
		{"POST /mcp", "Origin: http://evil.example\r\n", http.StatusForbidden, hurryTime},
	} {
		for _, framing := range []string{"Content-Length: 10", "Transfer-Encoding: chunked"} {
			t.Run(c.line+"/"+framing, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, connect := lorisServer(t)
					conn, begun := connect(), time.Now()
					fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n\r\n", c.line, c.head, framing)
					time.Sleep(time.Second)
					synctest.Wait()
					if n := srv.Sessions().Active(); n != 0 {
						t.Errorf("%d slots are taken", n)
					}
					_ = conn.SetReadDeadline(begun.Add(time.Hour))
					from := bufio.NewReader(conn)
					res, err := http.ReadResponse(from, nil)
					if err != nil {
						t.Fatal(err)
					}
					if res.StatusCode != c.want {
						t.Errorf("got %d, want %d", res.StatusCode, c.want)
					}
					if _, err := io.Copy(io.Discard, res.Body); err != nil {
						t.Error(err)
					}
					if _, err := from.ReadByte(); err != io.EOF {
						t.Errorf("the connection goes on: %v", err)
					}
					if took := time.Since(begun); took > c.within+2*time.Second {
						t.Errorf("that took %v", took)
					}
				})
			})
		}
	}
}

// It is not kept either: with no room for any message it is passed over all the same, and so is one that comes slowly. A long
// one is refused.
func TestBodiesThatNobodyNeedsAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := counted()
		o.MaxInFlight = 1
		srv, ln := listenInMemory(t, labEnv(), o)
		for length, want := range map[int]int{maxUnneeded: http.StatusOK, maxUnneeded + 1: http.StatusRequestEntityTooLarge} {
			conn, err := ln.Dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			var writing sync.WaitGroup
			defer writing.Wait()
			writing.Go(func() {
				fmt.Fprintf(conn, "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", length)
				for range 4 {
					io.WriteString(conn, strings.Repeat("x", length/4))
					time.Sleep(time.Second)
				}
				io.WriteString(conn, strings.Repeat("x", length%4))
			})
			time.Sleep(time.Second)
			synctest.Wait()
			if n := srv.budget.used.Load(); n != 0 {
				t.Errorf("%d bytes are held", n)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != want {
				t.Errorf("%d bytes: got %d, want %d", length, res.StatusCode, want)
			}
		}
	})
}

// A body that nobody needs costs no answer, and the connection serves the next request.
func TestBodiesThatNobodyNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, connect := lorisServer(t)
		conn := connect()
		from := bufio.NewReader(conn)
		for _, line := range []string{"GET /health", "GET /openapi.json", "POST /nosuch", "DELETE /mcp", "GET /health"} {
			fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", line)
			res, err := http.ReadResponse(from, nil)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				t.Error(err)
			}
			if strings.HasPrefix(line, "GET") && res.StatusCode != http.StatusOK {
				t.Errorf("%s: got %d", line, res.StatusCode)
			}
		}
	})
}
