package transport

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/gym"
)

// roundTrip is what the slow wire of these tests adds to a frame and its reply.
const roundTrip = 2 * time.Millisecond

const tenCalls = `
words = []
for i in range(10):
    words.append(say(text=str(i)))
result = ",".join(words)
`

// slowly is a connection to addr whose bytes arrive half a round trip later, in either direction.
func slowly(t *testing.T, addr string) net.Conn {
	t.Helper()
	far, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	near, client := net.Pipe()
	carry := func(to io.WriteCloser, from io.Reader) {
		defer to.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			if n > 0 {
				time.Sleep(roundTrip / 2)
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	go carry(far, near)
	go carry(near, far)
	return client
}

// TestTenCallsInCodeBeatThreeSteps: over a wire with latency, code that calls ten tools is answered before three steps are.
func TestTenCallsInCodeBeatThreeSteps(t *testing.T) {
	if RaceDetector {
		t.Skip("the race detector makes everything dear, and not by the same factor")
	}
	var log stepsLog
	_, base := start(t, codeEnv(&log, codemode.Limits{}), labOptions(false))
	addr := strings.TrimPrefix(base, "http://")
	dialSlowly := func() wsClient {
		web := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return slowly(t, addr), nil }}}
		return dialOver(t, base+"/ws", &websocket.DialOptions{HTTPClient: web})
	}
	slow, fast := dialSlowly(), dial(t, base+"/ws")
	timed := func(c wsClient, frame string, times int) time.Duration {
		begin := time.Now()
		for range times {
			if reply := c.ask(frame); !strings.Contains(reply, `"is_error":false`) {
				t.Fatal(reply)
			}
		}
		return time.Since(begin)
	}
	step, code := stepFrame("say", `{"text":"x"}`), stepFrame(gym.CodeTool, codeArgs(t, tenCalls))
	median := func(all []time.Duration) time.Duration { slices.Sort(all); return all[len(all)/2] }
	for try := range 5 { // a noisy moment is no verdict: code takes two processes, and steps one
		var steps, codes, own []time.Duration
		for range 21 {
			steps = append(steps, timed(slow, step, 3))
			codes = append(codes, timed(slow, code, 1))
			own = append(own, timed(fast, code, 1))
		}
		three, ten, cost := median(steps), median(codes), median(own)
		t.Logf("%d: three steps %v, code with ten calls %v; without latency the code takes %v, %v a call", try, three, ten, cost, cost/10)
		if ten < three {
			return
		}
	}
	t.Error("code with ten calls takes longer than three steps")
}

// BenchmarkCode is what code costs by /ws, beside a step.
func BenchmarkCode(b *testing.B) {
	for name, frame := range map[string]string{
		"calls=0":  `{"type":"step","data":{"type":"execute_code","code":"1"}}`,
		"calls=10": `{"type":"step","data":{"type":"execute_code","code":"for i in range(10): say(text=str(i))"}}`,
		"step":     stepFrame("say", `{"text":"x"}`),
	} {
		b.Run(name, func(b *testing.B) {
			env := labEnv()
			env.CodeMode = &codemode.Limits{}
			srv, err := New(b.Context(), env, Options{})
			if err != nil {
				b.Fatal(err)
			}
			web := httptest.NewServer(srv)
			defer web.Close()
			defer srv.Close(context.Background())
			c, _, err := websocket.Dial(b.Context(), web.URL+"/ws", nil)
			if err != nil {
				b.Fatal(err)
			}
			defer c.CloseNow()
			for b.Loop() {
				if err := c.Write(b.Context(), websocket.MessageText, []byte(frame)); err != nil {
					b.Fatal(err)
				}
				if _, reply, err := c.Read(b.Context()); err != nil || !bytes.Contains(reply, []byte(`"is_error":false`)) {
					b.Fatal(string(reply), err)
				}
			}
		})
	}
}
