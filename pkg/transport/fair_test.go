package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fairVariable has the test's own binary be a server until its standard input ends: clients in its process would share its
// scheduler, and so its turns.
const fairVariable = "OPENENV_TEST_FAIR"

// However many clients call without a pause, each has its turn. (A handler of net/http's that hands its work to another goroutine
// lets some hundred connections go in circles while others wait for as long as there is load.)
func TestBusyHTTPClientsTakeTurns(t *testing.T) {
	if os.Getenv(fairVariable) != "" {
		ctx, stop := context.WithCancelCause(context.Background())
		go func() {
			io.Copy(io.Discard, os.Stdin)
			stop(errors.New("the test is over"))
		}()
		os.Exit(Run(ctx, labEnv(), []string{"-addr", "127.0.0.1:0"}, func(string) string { return "" }, nil, os.Stdout, os.Stderr))
	}
	if RaceDetector {
		t.Skip("too slow with the race detector")
	}
	const clients, lasting = 1000, 2 * time.Second
	base := startChild(t)
	addr := strings.TrimPrefix(base, "http://")
	conns, requests := make([]net.Conn, clients), make([]string, clients)
	for i := range conns {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		body := rpcCall("say", `{"text":"x"}`, createSession(t, base))
		conns[i] = conn
		requests[i] = fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", addr, len(body), body)
	}
	length := len(exchange(t, conns[0], requests[0]))
	answers := make([]int, clients)
	end := time.Now().Add(lasting)
	var wg sync.WaitGroup
	for i, conn := range conns {
		conn.SetDeadline(end.Add(20 * time.Second)) // it is not to hang where one gets no answer
		wg.Go(func() {                              // with as little effort as can be: the server is to be the busy one
			reply := make([]byte, length)
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

// exchange returns all bytes of the reply to a request.
func exchange(t *testing.T, conn net.Conn, request string) []byte {
	io.WriteString(conn, request)
	var all bytes.Buffer
	res, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &all)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", res.Status, err, body)
	}
	return all.Bytes()
}

var listeningOn = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// startChild starts the server in a process of its own, and returns where it is.
func startChild(t *testing.T) (base string) {
	cmd := exec.Command(os.Args[0], "-test.run", "^TestBusyHTTPClientsTakeTurns$")
	cmd.Env = append(os.Environ(), fairVariable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(out)
	for base == "" && lines.Scan() {
		base = listeningOn.FindString(lines.Text())
	}
	if base == "" {
		t.Fatal("the server did not say where it listens")
	}
	go io.Copy(io.Discard, out)
	return base
}
