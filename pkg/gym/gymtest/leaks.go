package gymtest

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing/synctest"
	"time"
)

// quiet is how long goroutines have to end after the server has: those of the connections take a second.
const quiet = 5 * time.Second

// leaks are the goroutines of this bubble that are left after the server has stopped, one problem for each place that
// started some. The bubble would report them itself, by a panic that nobody can read.
func leaks() []problem {
	synctest.Wait()
	time.Sleep(quiet)
	synctest.Wait()
	var out []problem
	seen := map[string]bool{}
	for _, g := range others() {
		by := startedBy(g)
		if seen[by] {
			continue
		}
		seen[by] = true
		out = append(out, problem{
			key: "leak " + by,
			text: fmt.Sprintf("a goroutine outlives its session: it was started by %s, and still runs after the value was closed and the server has stopped.\n"+
				"Stop in Close what New and the tools have started, and wait for it there.\n%s", by, indent(shortened(g))),
		})
	}
	return out
}

var bubbleID = regexp.MustCompile(`^goroutine (\d+) \[[^\]]*synctest bubble (\d+)`)

// others are the stacks of the other goroutines of this bubble, but for the two that run it.
func others() []string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true) // the caller's own comes first
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := strings.Split(strings.TrimSpace(string(buf)), "\n\n")
	own := bubbleID.FindStringSubmatch(all[0])
	if own == nil {
		return nil
	}
	var out []string
	for _, g := range all[1:] {
		id := bubbleID.FindStringSubmatch(g)
		if id == nil || id[2] != own[2] || strings.Contains(g, "internal/synctest.Run(") || strings.Contains(g, ".testingSynctestTest(") {
			continue
		}
		out = append(out, g)
	}
	return out
}

// shortened is a goroutine's stack without its middle.
func shortened(stack string) string {
	lines := strings.Split(stack, "\n")
	if len(lines) > stackLines {
		lines = append(append(lines[:stackLines-2:stackLines-2], "..."), lines[len(lines)-2:]...)
	}
	return strings.Join(lines, "\n")
}

// startedBy is the function that started a goroutine, by its stack.
func startedBy(stack string) string {
	_, by, ok := strings.Cut(stack, "created by ")
	if !ok {
		return "an unknown function"
	}
	by, place, _ := strings.Cut(by, "\n")
	by, _, _ = strings.Cut(by, " in goroutine")
	place, _, _ = strings.Cut(strings.TrimSpace(place), " ")
	return by + " at " + place
}
