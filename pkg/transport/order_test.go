package transport

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A clerk serves one at a time.
type clerk struct {
	busy   atomic.Bool
	served map[string]int
}

type customer struct {
	Who string `json:"who"`
}

// serveTime is how long a clerk takes for each.
const serveTime = time.Second

func (c *clerk) serve(_ context.Context, in customer) (string, error) {
	if c.busy.Swap(true) {
		return "", fmt.Errorf("two at once")
	}
	defer c.busy.Store(false)
	time.Sleep(serveTime)
	c.served[in.Who]++
	return in.Who, nil
}

var clerkEnv = gym.Environment[*clerk]{
	Name:  "clerk",
	New:   func(context.Context, *gym.Session) (*clerk, error) { return &clerk{served: map[string]int{}}, nil },
	Tools: tools.New(tools.Func("serve", "Serve a customer.", (*clerk).serve)),
	State: gym.StateOf(func(c *clerk) struct {
		Served map[string]int `json:"served"`
	} {
		return struct {
			Served map[string]int `json:"served"`
		}{c.served}
	}),
	After: func(*clerk, context.Context, gym.ToolCall) gym.Score { return gym.Score{Reward: gym.Number(1)} },
}

// Eight HTTP callers beside a stepper on one session: one at a time, each in its turn, none passed over, all counted.
func TestCallsTakeTurnsWhateverTheirDoor(t *testing.T) {
	const callers, rounds = 8, 50
	synctest.Test(t, func(t *testing.T) {
		srv, client := serveInMemory(t, clerkEnv, Options{})
		ws, _, err := websocket.Dial(t.Context(), "ws://localhost/ws?announce=1", &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		defer ws.CloseNow()
		live := srv.Sessions().List()[0].ID
		// Nobody waits for more than one turn of each of the others, and its own.
		const longest = (callers + 1) * serveTime
		timed := func(who string, call func() string) {
			for range rounds {
				start := time.Now()
				if got := call(); !strings.Contains(got, `"data":"`+who+`"`) {
					t.Errorf("%s got %s", who, got)
				}
				if d := time.Since(start); d > longest {
					t.Errorf("%s waited %v, more than %v", who, d, longest)
				}
			}
		}
		start := time.Now()
		var wg sync.WaitGroup
		for i := range callers {
			who := fmt.Sprintf("caller %d", i)
			url, body := "http://localhost/mcp?session_id="+live, rpcCall("serve", `{"who":"`+who+`"}`, "")
			if i%2 == 1 {
				url = "http://localhost/step?session_id=" + live
				body = `{"action":{"type":"call_tool","tool_name":"serve","arguments":{"who":"` + who + `"}}}`
			}
			wg.Go(func() {
				timed(who, func() string {
					res, err := client.Post(url, "application/json", strings.NewReader(body))
					if err != nil {
						return err.Error()
					}
					defer res.Body.Close()
					b, _ := io.ReadAll(res.Body)
					return string(b)
				})
			})
		}
		ask := func(frame string) string {
			if err := ws.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
				return err.Error()
			}
			_, b, err := ws.Read(t.Context())
			if err != nil {
				return err.Error()
			}
			return string(b)
		}
		wg.Go(func() { timed("stepper", func() string { return ask(stepFrame("serve", `{"who":"stepper"}`)) }) })
		wg.Wait()
		const all = (callers + 1) * rounds
		if d := time.Since(start); d != all*serveTime {
			t.Errorf("%d calls of %v took %v: the clerk was idle, or served two at once", all, serveTime, d)
		}
		var state struct {
			Data struct {
				Step_count   int
				Reward_total float64
				Served       map[string]int
			}
		}
		unmarshal(t, ask(`{"type":"state"}`), &state)
		if state.Data.Step_count != all || state.Data.Reward_total != all || len(state.Data.Served) != callers+1 {
			t.Errorf("counted %d steps and a reward of %v for %d customers", state.Data.Step_count, state.Data.Reward_total, len(state.Data.Served))
		}
		for who, n := range state.Data.Served {
			if n != rounds {
				t.Errorf("%s was served %d times, want %d", who, n, rounds)
			}
		}
	})
}
