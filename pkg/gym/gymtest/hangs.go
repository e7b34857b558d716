package gymtest

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// lastWords is how long before the test's deadline a bubble that hangs is given up, at most.
const lastWords = 5 * time.Second

var inSomeBubble = regexp.MustCompile(`^goroutine \d+ \[[^\]]*synctest bubble`)

// hangs ends the process with a message that can be read, if the bubble still runs shortly before the test's deadline: a
// goroutine that waits for the real world stops the fake clock, and the test package would print the stacks of all. The
// returned function says that the bubble has ended.
func hangs(t *testing.T, b *bench) func() {
	deadline, ok := t.Deadline()
	if !ok {
		return func() {}
	}
	name := t.Name()
	left := time.Until(deadline)
	timer := time.AfterFunc(left-min(lastWords, left/4), func() {
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		var stacks []string
		for g := range strings.SplitSeq(string(buf), "\n\n") {
			if inSomeBubble.MatchString(g) && !strings.Contains(g, "(durable)") && !strings.Contains(g, "synctest.Run(") {
				stacks = append(stacks, g)
			}
		}
		panic(fmt.Sprintf("%s hangs in %s mode. A goroutine of the environment waits for the real world (a process, a network, a lock), "+
			"and fake time stands still meanwhile. These are at it:\n\n%s", name, b.mode, strings.Join(stacks, "\n\n")))
	})
	return func() { timer.Stop() }
}
