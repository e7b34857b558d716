package transport

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// heapVariable has the test's own binary be a process that keeps little and throws away much.
const heapVariable = "OPENENV_TEST_HEAP"

// percentVariable says when that process sets the collector's percentage by itself.
const percentVariable = "OPENENV_TEST_PERCENT"

const thrownAway = 256 << 20

// TestHeapRoom counts collections in processes that keep their hands off GOGC, and in one whose operator has set it.
func TestHeapRoom(t *testing.T) {
	if os.Getenv(heapVariable) != "" {
		when := os.Getenv(percentVariable)
		if when == "before" {
			debug.SetGCPercent(50)
		}
		keepHeapRoom()
		if runtime.GC(); when == "after" {
			debug.SetGCPercent(50)
		}
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		for range thrownAway >> 10 {
			waste = make([]byte, 1<<10)
		}
		runtime.ReadMemStats(&end)
		os.Stdout.WriteString("collections: " + strconv.Itoa(int(end.NumGC-start.NumGC)) + "\n")
		return
	}
	collections := func(variables ...string) int {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestHeapRoom$")
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "GOGC=") {
				cmd.Env = append(cmd.Env, v)
			}
		}
		cmd.Env = append(append(cmd.Env, heapVariable+"=1"), variables...)
		out, err := cmd.CombinedOutput()
		_, figure, _ := strings.Cut(string(out), "collections: ")
		n, convErr := strconv.Atoi(strings.SplitN(figure, "\n", 2)[0])
		if err != nil || convErr != nil {
			t.Fatalf("%v, %v: %s", err, convErr, out)
		}
		return n
	}
	if n := collections(); n > thrownAway/heapRoom+1 {
		t.Errorf("%d collections for %d MiB, want one for %d MiB at most", n, thrownAway>>20, heapRoom>>20)
	}
	if n := collections("GOGC=100"); n < 2*thrownAway/heapRoom {
		t.Errorf("%d collections for %d MiB with GOGC=100, which is to be followed", n, thrownAway>>20)
	}
	for _, when := range []string{"before", "after"} {
		if n := collections(percentVariable + "=" + when); n < 2*thrownAway/heapRoom {
			t.Errorf("%d collections for %d MiB where the program has set a percentage %s, which is to be followed", n, thrownAway>>20, when)
		}
	}
	if n := collections("GOMEMLIMIT=16MiB"); n < 2*thrownAway/heapRoom {
		t.Errorf("%d collections for %d MiB with GOMEMLIMIT=16MiB, which is to be followed", n, thrownAway>>20)
	}
}

var waste []byte

func TestCollectorPercent(t *testing.T) {
	for _, c := range []struct {
		kept uint64
		want int
	}{{0, 1700}, {4 << 20, 1700}, {16 << 20, 500}, {128 << 20, 150}, {1 << 40, 100}} {
		if got := collectorPercent(c.kept); got != c.want {
			t.Errorf("%d bytes kept: %d%%, want %d%%", c.kept, got, c.want)
		}
	}
}
