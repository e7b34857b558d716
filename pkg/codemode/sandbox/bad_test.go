//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/codemode/sandbox"
)

const badChild = "bad-child-"

// misbehave is a child that has been taken over, in one way or another. It has no mark, so that it comes to TestMain.
func misbehave(kind string) {
	say := func(s string) {
		os.Stdout.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(s))), s...))
	}
	hear := func() {
		var n uint32
		if binary.Read(os.Stdin, binary.LittleEndian, &n) != nil {
			os.Exit(0)
		}
		io.CopyN(io.Discard, os.Stdin, int64(n))
	}
	silent := func() { io.Copy(io.Discard, os.Stdin) }
	hear()
	switch kind {
	case "refused":
		say(`{"fault":"no seccomp here"}`)
		return
	case "exit":
		os.Stderr.WriteString("last words")
		os.Exit(3)
	case "mute":
		silent()
		return
	case "early":
		say(`{"outcome":{"result":1,"stdout":"","calls":0,"steps":0}}`)
		silent()
		return
	}
	say(`{"ready":{"resident":1000000}}`)
	hear()
	if kind == "dies" {
		return
	}
	say(`{"began":true}`)
	switch kind {
	case "garbage":
		os.Stdout.Write(bytes.Repeat([]byte("garbage "), 10_000))
	case "giant":
		os.Stdout.Write([]byte{0xff, 0xff, 0xff, 0xff})
	case "flood": // a frame that is allowed, but holds too much
		say(`{"outcome":{"result":"` + strings.Repeat("x", 2<<20) + `","stdout":"","calls":0,"steps":0}}`)
	case "deep":
		say(`{"outcome":{"result":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`)
	case "twice":
		say(`{"outcome":{"result":{"a":1,"a":2},"stdout":"","calls":0,"steps":0}}`)
	case "unknown-member":
		say(`{"outcome":{"result":1},"extra":1}`)
	case "unknown-tool":
		say(`{"call":{"tool":"launch","args":{}}}`)
	case "args":
		say(`{"call":{"tool":"echo","args":[]}}`)
	case "calls":
		for {
			say(`{"call":{"tool":"echo","args":{}}}`)
			hear()
		}
	case "calls-unread": // does not wait for answers
		for {
			say(`{"call":{"tool":"echo","args":{}}}`)
		}
	case "denies": // what it has called
		say(`{"call":{"tool":"echo","args":{}}}`)
		hear()
		say(`{"outcome":{"result":1,"stdout":"","calls":0,"steps":0}}`)
	case "again":
		say(`{"began":true}`)
	case "hangs-up":
		os.Stdout.Close()
	case "hangs":
	case "answers":
		say(`{"outcome":{"result":1,"stdout":"","calls":0,"steps":0}}`)
	}
	silent()
}

func badPool(t *testing.T, kind string) *sandbox.Pool {
	t.Helper()
	p := newPool(t, sandbox.Options{Processes: 2})
	sandbox.Spoil(p, func() *exec.Cmd {
		return &exec.Cmd{Path: "/proc/self/exe", Args: []string{badChild + kind}}
	})
	return p
}

func TestChildThatBreaksRules(t *testing.T) {
	for _, kind := range []string{
		"early", "garbage", "giant", "flood", "deep", "twice", "unknown-member", "unknown-tool", "args", "calls", "calls-unread", "denies", "again",
	} {
		t.Run(kind, func(t *testing.T) {
			p := badPool(t, kind)
			calls := 0
			o, err := p.Run(t.Context(), codemode.Job{Tools: tools}, func(_ context.Context, _ string, args json.RawMessage) (codemode.Answer, error) {
				calls++
				return codemode.Answer{Value: args}, nil
			})
			if broken, ok := errors.AsType[*sandbox.BrokenError](err); !ok {
				t.Errorf("%+v, %v", o, err)
			} else {
				t.Log(broken)
			}
			if calls > codemode.Defaults().Calls {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

func TestChildThatDoesNotStart(t *testing.T) {
	for kind, says := range map[string]string{"refused": "no seccomp here", "exit": "exit status 3: last words", "dies": "two in a row ended"} {
		p := badPool(t, kind)
		if err := p.Warm(t.Context()); !isStartError(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	p := newPool(t, sandbox.Options{})
	sandbox.Spoil(p, func() *exec.Cmd { return exec.Command("/nowhere/to/be/found") })
	if err := p.Warm(t.Context()); !isStartError(err) || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

func isStartError(err error) bool {
	_, ok := errors.AsType[*sandbox.StartError](err)
	return ok
}

func TestChildThatDoesNotGreet(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
	defer cancel()
	if err := badPool(t, "mute").Warm(ctx); err == nil || err.Error() != "enough" {
		t.Error(err)
	}
}

// TestChildThatHangs: one that does not answer is killed when the time is over.
func TestChildThatHangs(t *testing.T) {
	p := badPool(t, "hangs")
	within(t, slice, func() time.Duration {
		o, took := timed(t, p, codemode.Job{Limits: codemode.Limits{Time: slice}}, echo)
		if e := o.Error; e == nil || e.Limit != "time" {
			t.Errorf("%+v", o)
		}
		return took
	})
	o := runJob(t, badPool(t, "hangs-up"), codemode.Job{})
	if e := o.Error; e == nil || e.Limit != "memory" {
		t.Errorf("%+v", o)
	}
}

// TestBadChildThatBehaves shows that the tests above fail for their own reasons.
func TestBadChildThatBehaves(t *testing.T) {
	if o := runJob(t, badPool(t, "answers"), codemode.Job{}); string(o.Result) != "1" {
		t.Errorf("%+v", o)
	}
}
