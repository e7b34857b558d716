//go:build unix

package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

	"github.com/openenv-go/openenv-go/pkg/transport"
)

// What one tool call through /ws may cost.
const (
	maxCPURatio = 2.0  // server CPU, in units of the floor's
	maxAllocs   = 34.0 // 30 when it was last looked at
)

var connectionCounts = []int{1, 64}

// BenchmarkStepWS is one tool call through /ws. ns/op is what the client waits, divided by the connections that it has;
// server-cpu-ns/op and server-allocs/op are what the server's process spends. What -benchmem adds is the client's.
func BenchmarkStepWS(b *testing.B) { benchmarkSteps(b, ownServer) }

// BenchmarkFloorWS is the same frames and the same answers without the server around them.
func BenchmarkFloorWS(b *testing.B) { benchmarkSteps(b, floorServer) }

func benchmarkSteps(b *testing.B, kind string) {
	server := startChild(b, kind)
	for _, n := range connectionCounts {
		b.Run(fmt.Sprintf("conns=%d", n), func(b *testing.B) {
			c := dialClients(b, server, n)
			c.step(b, warmUp)
			before := server.spent(b)
			b.ResetTimer()
			c.step(b, b.N)
			b.StopTimer()
			cost := server.spent(b).since(before)
			b.ReportMetric(float64(cost.CPU)/float64(b.N), "server-cpu-ns/op")
			b.ReportMetric(float64(cost.Allocs)/float64(b.N), "server-allocs/op")
		})
	}
}

// TestStepCostAgainstFloor holds the server to what a tool call may cost. Only costs of one run are compared, for they
// are the machine's as much as the server's.
//
// On a busy machine the same work costs half as much CPU again from one second to the next. So both servers take their
// steps in turns of some milliseconds, and what slows one slows the other. A round is long enough for dozens of turns and
// of collections; the ratio is taken within it, and the verdict is the median's over all rounds, of which a slow
// machine takes fewer. Where it would be against the server, there are more of them, so that a noisy minute is no verdict.
func TestStepCostAgainstFloor(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("takes some seconds")
	case transport.RaceDetector:
		t.Skip("the race detector makes everything dear, and not by the same factor")
	case testing.CoverMode() != "":
		t.Skip("only one of the servers counts its coverage")
	}
	const (
		rounds   = 5
		turns    = 24 // of each server in a round
		enough   = 6 * time.Second
		patience = 25 * time.Second
	)
	floor, own := startChild(t, floorServer), startChild(t, ownServer)
	for _, n := range connectionCounts {
		t.Run(fmt.Sprintf("conns=%d", n), func(t *testing.T) {
			floorClients, ownClients := dialClients(t, floor, n), dialClients(t, own, n)
			floorClients.step(t, warmUp)
			ownClients.step(t, warmUp)
			turn := max(100, 4*n)
			steps := turns * turn
			var ratios, allocs []float64
			for begin, i := time.Now(), 0; i < 3 || i < rounds && time.Since(begin) < enough || median(ratios) > maxCPURatio && time.Since(begin) < patience; i++ {
				floorBefore, ownBefore := floor.spent(t), own.spent(t)
				for range turns {
					floorClients.step(t, turn)
					ownClients.step(t, turn)
				}
				f, o := floor.spent(t).since(floorBefore), own.spent(t).since(ownBefore)
				ratios = append(ratios, float64(o.CPU)/float64(f.CPU))
				allocs = append(allocs, float64(o.Allocs)/float64(steps))
				t.Logf("a step costs the floor %v and %.1f allocations, the server %v and %.1f: %.2f times the CPU",
					f.CPU/time.Duration(steps), float64(f.Allocs)/float64(steps), o.CPU/time.Duration(steps), allocs[i], ratios[i])
			}
			if r := median(ratios); r > maxCPURatio {
				t.Errorf("a step costs %.2f times the CPU of the floor; want at most %.2f", r, maxCPURatio)
			}
			if a := median(allocs); a > maxAllocs {
				t.Errorf("a step costs %.1f allocations; want at most %.0f", a, maxAllocs)
			}
		})
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// TestFloorAnswersAlike shows that the floor writes what the server writes, byte for byte.
func TestFloorAnswersAlike(t *testing.T) {
	for _, kind := range []string{floorServer, ownServer} {
		t.Run(kind, func(t *testing.T) { dialClients(t, startChild(t, kind), 2).step(t, 2*framesPerClient) })
	}
}

// ---- clients ----

// warmUp is how many steps go before a measurement: heaps have found their size then, and buffers theirs.
const warmUp = 500

// clients are connections to one server, each with one step under way at a time.
type clients []client

type client struct {
	conn      *websocket.Conn
	exchanges []exchange // taken in turn
}

// An exchange is a step and its answer. No two of one clients are alike, so that no answer passes for another's.
type exchange struct{ frame, reply []byte }

const framesPerClient = 16

func dialClients(t testing.TB, server child, n int) clients {
	t.Helper()
	var c clients
	for i := range n {
		conn, _, err := websocket.Dial(t.Context(), "ws://"+server.addr+"/ws", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.CloseNow() })
		cl := client{conn: conn}
		for j := range framesPerClient {
			f := newStepFrame(fmt.Sprintf("message %d of client %d: naïve \"café\"", j, i))
			frame, err1 := json.Marshal(f)
			reply, err2 := json.Marshal(newEchoReply(f))
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			cl.exchanges = append(cl.exchanges, exchange{frame, reply})
		}
		c = append(c, cl)
	}
	return c
}

// step takes n steps in all, spread over the clients, and checks every answer.
func (c clients) step(t testing.TB, n int) {
	t.Helper()
	var g errgroup.Group
	for i, cl := range c {
		share := n / len(c)
		if i < n%len(c) {
			share++
		}
		g.Go(func() error { return cl.step(share) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// stuck is how long a client waits for all of its answers.
const stuck = time.Minute

func (c client) step(n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	defer cancel()
	for i := range n {
		x := c.exchanges[i%len(c.exchanges)]
		if err := c.conn.Write(ctx, websocket.MessageText, x.frame); err != nil {
			return err
		}
		_, reply, err := c.conn.Read(ctx)
		if err != nil {
			return err
		}
		if !bytes.Equal(reply, x.reply) {
			return fmt.Errorf("step %s is answered %s, want %s", x.frame, reply, x.reply)
		}
	}
	return nil
}
