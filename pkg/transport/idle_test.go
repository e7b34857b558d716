package transport

import (
	"context"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// What a tool's depth needs of a stack is not kept while the socket is idle.
func TestIdleSocketsHaveSmallStacks(t *testing.T) {
	const sockets, deep, small = 50, 256 << 10, 64 << 10
	env := gym.Environment[*lab]{
		Name:  "deep",
		New:   func(context.Context, *gym.Session) (*lab, error) { return &lab{}, nil },
		Tools: tools.New(tools.Do("dive", "Needs a stack.", func(*lab, context.Context, struct{}) error { dive(deep); return nil })),
	}
	_, open := inMemoryOf(t, env, Options{})
	before := stacks()
	for range sockets {
		c := open()
		if err := c.Write(t.Context(), websocket.MessageText, []byte(stepFrame("dive", "{}"))); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if each := (stacks() - before) / sockets; each > small {
		t.Errorf("the stacks of an idle socket have %d bytes, where its tool needed %d once", each, deep)
	}
}

// dive needs so many bytes of stack.
func dive(n int) byte {
	var b [1 << 10]byte
	if n > 0 {
		b[n%len(b)] = dive(n-len(b)) + 1
	}
	return b[(n+1)%len(b)]
}

// stacks is how many bytes of memory stacks have.
func stacks() int64 {
	runtime.GC()
	s := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
