package transport

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// heapRoom is how many bytes a server's process may allocate between two garbage collections, beside what is live.
	//
	// Go collects whenever what is live has doubled. A server of few sessions keeps some MiB, so that under load it would
	// collect a hundred times a second, and each time shrink the stacks of its connections, which then grow again: together a
	// fifth of a step's CPU. Where ten thousand sessions are idle, all of them are marked each time, which was a seventh of it.
	heapRoom = 64 << 20
	// goPercent is the growth that Go collects at when nobody tells it otherwise.
	goPercent = 100
	// leastKept is what Go takes to be live, at least.
	leastKept = 4 << 20
)

// keepHeapRoom leaves [heapRoom] between two garbage collections, from now on and for the whole process. GOGC goes before
// it, as debug.SetGCPercent does, whenever that is called; the limit of GOMEMLIMIT holds.
func keepHeapRoom() {
	if os.Getenv("GOGC") == "" {
		tuneCollector(goPercent)
	}
}

// tuneCollector sets the collector's percentage for what is live now, and again after each collection, as long as nobody else
// has changed it from what it was last.
func tuneCollector(last int) {
	kept, now := collector()
	if now != last {
		return
	}
	percent := collectorPercent(kept)
	if percent != last {
		debug.SetGCPercent(percent)
	}
	runtime.AddCleanup(new(unused), tuneCollector, percent)
}

// An unused value is found by the next collection. The pointer keeps it out of Go's blocks of tiny values, which live longer.
type unused struct{ _ *unused }

// collectorPercent is by how much of kept bytes the heap may grow: what Go lets it, and [heapRoom].
func collectorPercent(kept uint64) int {
	return goPercent + int(100*heapRoom/max(kept, leastKept))
}

// collector tells how many bytes the last collection left, with the stacks and globals that the collector counts to them,
// and the percentage that is set; -1 is none.
func collector() (kept uint64, percent int) {
	samples := []metrics.Sample{
		{Name: "/gc/gogc:percent"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}
	metrics.Read(samples)
	number := func(s metrics.Sample) uint64 {
		if s.Value.Kind() != metrics.KindUint64 { // of a Go that does not tell it
			return 0
		}
		return s.Value.Uint64()
	}
	for _, s := range samples[1:] {
		kept += number(s)
	}
	return kept, int(int32(number(samples[0]))) // none is the largest number there is
}
