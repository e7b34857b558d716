package mount_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/mount"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A journal is a log whose texts can be waited for.
type journal struct{ lines chan string }

func newJournal() journal { return journal{make(chan string, 10000)} }

func (j journal) Write(b []byte) (int, error) {
	j.lines <- string(b)
	return len(b), nil
}

func (j journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// await returns the first line that has text in it.
func (j journal) await(t *testing.T, text string) string {
	t.Helper()
	for {
		select {
		case l := <-j.lines:
			if strings.Contains(l, text) {
				return l
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing with %q was logged", text)
		}
	}
}

func connect(t *testing.T, c gym.Connector, j journal) gym.Upstream {
	t.Helper()
	up, err := c.Connect(t.Context(), j.logger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := up.Close(); err != nil {
			t.Error(err)
		}
	})
	return up
}

func typeOf(err error) tools.ErrorType {
	var e *tools.Error
	if errors.As(err, &e) {
		return e.Type
	}
	return ""
}

func call(t *testing.T, up gym.Upstream, name string) error {
	t.Helper()
	_, err := up.CallTool(t.Context(), name, nil, nil)
	return err
}

func TestResultsPassAsTheyAre(t *testing.T) {
	up := connect(t, child(t, "plain"), newJournal())
	res, err := up.CallTool(t.Context(), "echo", []byte(`{"n":9007199254740993,"x":1.0,"e":1e400}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"_meta":{"big":9007199254740993},"content":[{"type":"image","mimeType":"image/png","data":"aGk="},{"type":"text","text":"hi"}],"structuredContent":{"n":9007199254740993,"x":1.0,"e":1e400}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if res, err := up.CallTool(t.Context(), "refuse", nil, nil); err != nil || !res.IsError {
		t.Errorf("got %v, %v; want a failure of the tool", res, err)
	}
	list, err := up.ListTools(t.Context())
	if err != nil || len(list) != len(childTools) {
		t.Fatal(list, err)
	}
	if s, _ := json.Marshal(list[0].InputSchema); !strings.Contains(string(s), "9007199254740993") {
		t.Errorf("the schema is %s", s)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	for name, want := range map[string]tools.ErrorType{
		"invalid": tools.InvalidArgs, "unknown": tools.ExecutionError, "broken": tools.ExecutionError,
		"gone": tools.ToolNotFound, "crash": tools.TransportError, "garbage": tools.TransportError,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := connect(t, child(t, "plain"), newJournal())
			err := call(t, up, name)
			if got := typeOf(err); got != want {
				t.Fatalf("got %q: %v", got, err)
			}
			if want != tools.TransportError {
				if err := call(t, up, "count"); err != nil {
					t.Errorf("the next call: %v", err)
				}
				return
			}
			<-up.Lost()
			if errors.Is(err, gym.ErrNotSent) {
				t.Error("the call is said not to have been sent")
			}
			if err := call(t, up, "count"); typeOf(err) != tools.TransportError {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

func TestCrashSaysHow(t *testing.T) {
	up := connect(t, child(t, "plain"), newJournal())
	if err := call(t, up, "crash"); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
}

// A grandchild that holds the pipes neither hides the end of its parent nor outlives it, unless it has left the process
// group: then it is left alone.
func TestGrandchildren(t *testing.T) {
	for kind, outlives := range map[string]bool{"plain": false, "setsid": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			c := child(t, kind)
			c.Env = append(c.Env, addrVariable+"="+ln.Addr().String())
			up, err := c.Connect(t.Context(), newJournal().logger())
			if err != nil {
				t.Fatal(err)
			}
			if err := call(t, up, "fork"); typeOf(err) != tools.TransportError || !strings.Contains(err.Error(), "exit status 0") {
				t.Error(err)
			}
			if err := up.Close(); err != nil {
				t.Error(err)
			}
			conn, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if !outlives {
				if _, err := conn.Read(make([]byte, 1)); err == nil {
					t.Error("the grandchild is still there")
				}
			}
			conn.Close() // ends the one that has left
		})
	}
}

// gone waits for the end of a process: a signal can't be sent to one that has been reaped.
func gone(t *testing.T, line string) {
	t.Helper()
	_, after, _ := strings.Cut(line, "pid=")
	number, _, _ := strings.Cut(after, " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("no pid in %s", line)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	if err := p.Signal(syscall.Signal(0)); err == nil {
		t.Errorf("process %d is still there", pid)
	}
}

func TestAnswerBeforeTheEnd(t *testing.T) {
	up := connect(t, child(t, "plain"), newJournal())
	if err := call(t, up, "last"); err != nil {
		t.Errorf("got %v; want the answer that was written before the process ended", err)
	}
}

func TestFailedStarts(t *testing.T) {
	for kind, words := range map[string]string{
		"mute": "too late", "dead": "exit status 4", "noise": "this is no message",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			j := newJournal()
			ctx, cancel := context.WithCancelCause(t.Context())
			if kind == "mute" {
				go func() {
					j.await(t, "I say nothing")
					cancel(errors.New("too late"))
				}()
			}
			up, err := child(t, kind).Connect(ctx, j.logger())
			if err == nil {
				up.Close()
			}
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("got %v; want %q in it", err, words)
			}
			cancel(nil)
		})
	}
	if _, err := mount.Command("/no/such/server").Connect(t.Context(), newJournal().logger()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
	for _, bad := range []string{"", "localhost:9000", "ftp://x/y"} {
		if _, err := mount.URL(bad).Connect(t.Context(), newJournal().logger()); err == nil || !strings.Contains(err.Error(), "no URL") {
			t.Error(err)
		}
	}
}

func TestBannersArePassedOver(t *testing.T) {
	j := newJournal()
	up := connect(t, child(t, "banner"), j)
	if err := call(t, up, "count"); err != nil {
		t.Error(err)
	}
	j.await(t, "Welcome to the server!")
}

// A call whose context ends returns at once, and the server is told.
func TestCancel(t *testing.T) {
	j := newJournal()
	up := connect(t, child(t, "plain"), j)
	cause := errors.New("out of patience")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		j.await(t, "hanging")
		cancel(cause)
	}()
	if _, err := up.CallTool(ctx, "hang", nil, nil); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	j.await(t, "cancelled 2")
	if err := call(t, up, "count"); err != nil {
		t.Error(err)
	}
}

// A server that reads no more holds neither calls nor the close up.
func TestServerThatDoesNotRead(t *testing.T) {
	j := newJournal()
	up := connect(t, child(t, "deaf"), j)
	for i, size := range []int{1, 1 << 20, 1 << 20} {
		ctx, cancel := context.WithCancel(t.Context())
		if i == 0 {
			go func() { j.await(t, "hanging"); cancel() }()
		} else {
			time.AfterFunc(time.Millisecond, cancel)
		}
		if _, err := up.CallTool(ctx, "hang", fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", size)), nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestStubbornServersAreKilled(t *testing.T) {
	j := newJournal()
	up, err := child(t, "stubborn").Connect(t.Context(), j.logger())
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Close(); err != nil {
		t.Error(err)
	}
	gone(t, j.await(t, "mount_killed"))
	if err := up.Close(); err != nil {
		t.Error(err)
	}
	if err := call(t, up, "count"); typeOf(err) != tools.TransportError {
		t.Error(err)
	}
}

func TestRequestsOfServersAreRefused(t *testing.T) {
	up := connect(t, child(t, "plain"), newJournal())
	res, err := up.CallTool(t.Context(), "ask", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "-32601") || !strings.Contains(text, "elicitation/create") {
		t.Errorf("the server was told %s", text)
	}
}

// Progress comes before the result, all of it.
func TestProgress(t *testing.T) {
	up := connect(t, child(t, "plain"), newJournal())
	var got []float64
	_, err := up.CallTool(t.Context(), "progress", nil, func(p *mcp.ProgressNotificationParams) { got = append(got, p.Progress) })
	if diff := cmp.Diff([]float64{0, 1, 2}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if err := call(t, up, "progress"); err != nil {
		t.Error(err)
	}
}
