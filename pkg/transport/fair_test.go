//go:build unix

package transport_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/pkg/transport"
)

// However many clients call without a pause, each has its turn. (A handler of net/http's that hands its work to another goroutine
// lets some hundred connections go in circles while others wait for as long as there is load.) The server is a child process:
// clients in its own would share its scheduler, and so its turns.
func TestBusyHTTPClientsTakeTurns(t *testing.T) {
	if transport.RaceDetector {
		t.Skip("too slow with the race detector")
	}
	const clients, lasting = 1000, 2 * time.Second
	addr := startChild(t, ownServer).addr
	conns, requests := make([]net.Conn, clients), make([]string, clients)
	for i := range conns { // each has a session of its own, since calls of one wait for each other
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var created struct {
			Result struct {
				ID string `json:"session_id"`
			}
		}
		_, reply := roundTrip(t, conn, postRPC(addr, `{"jsonrpc":"2.0","id":1,"method":"openenv/session/create"}`))
		if err := json.Unmarshal(reply, &created); err != nil || created.Result.ID == "" {
			t.Fatalf("%v: %s", err, reply)
		}
		conns[i], requests[i] = conn, postRPC(addr, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo_message","arguments":{"message":"x"},"session_id":"`+created.Result.ID+`"}}`)
	}
	whole, _ := roundTrip(t, conns[0], requests[0])
	answers := make([]int, clients)
	end := time.Now().Add(lasting)
	var wg sync.WaitGroup
	for i, conn := range conns {
		conn.SetDeadline(end.Add(20 * time.Second)) // it is not to hang where one gets no answer
		wg.Go(func() {                              // with as little effort as can be: the server is to be the busy one
			reply := make([]byte, len(whole))
			for time.Now().Before(end) {
				io.WriteString(conn, requests[i])
				if _, err := io.ReadFull(conn, reply); err != nil || !bytes.HasSuffix(reply, []byte("}}")) {
					t.Errorf("%v: %s", err, reply)
					return
				}
				answers[i]++
			}
		})
	}
	wg.Wait()
	slices.Sort(answers)
	t.Logf("answers %d median %d max %d", answers[0], answers[clients/2], answers[clients-1])
	if answers[0] < answers[clients/2]/4 {
		t.Errorf("one client had %d answers, half of them %d and more", answers[0], answers[clients/2])
	}
}

// postRPC is a request with that body, as it goes over the wire.
func postRPC(addr, body string) string {
	return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", addr, len(body), body)
}

// roundTrip returns the whole reply to a request, and its body.
func roundTrip(t *testing.T, conn net.Conn, request string) (whole, body []byte) {
	t.Helper()
	io.WriteString(conn, request)
	var all bytes.Buffer
	res, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &all)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err = io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", res.Status, err, body)
	}
	return all.Bytes(), body
}
