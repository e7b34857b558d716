package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Recorder collects latencies, to three digits, from a microsecond to an hour. It may be used concurrently.
type Recorder struct{ shards [shards]shard }

const shards = 8

type shard struct {
	mu sync.Mutex
	h  *hdrhistogram.Histogram
}

const (
	unit    = time.Microsecond
	longest = time.Hour
	digits  = 3
)

// NewRecorder returns an empty one.
func NewRecorder() *Recorder {
	r := &Recorder{}
	for i := range r.shards {
		r.shards[i].h = newHistogram()
	}
	return r
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(longest/unit), digits)
}

// Record adds one. Those who record at the same time should have numbers that differ.
func (r *Recorder) Record(by int, d time.Duration) {
	s := &r.shards[by%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.h.RecordValue(max(1, int64(min(d, longest)/unit)))
}

// Merge adds what another has, as by [Recorder.Export].
func (r *Recorder) Merge(s *hdrhistogram.Snapshot) {
	r.shards[0].mu.Lock()
	defer r.shards[0].mu.Unlock()
	r.shards[0].h.Merge(hdrhistogram.Import(s))
}

// Export is all that was recorded.
func (r *Recorder) Export() *hdrhistogram.Snapshot { return r.all().Export() }

func (r *Recorder) all() *hdrhistogram.Histogram {
	all := newHistogram()
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		all.Merge(s.h)
		s.mu.Unlock()
	}
	return all
}

// Latencies sum a [Recorder] up.
type Latencies struct {
	Count         int64
	P50, P99, Max time.Duration
}

// Sum sums up.
func (r *Recorder) Sum() Latencies {
	h := r.all()
	at := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)) * unit }
	return Latencies{h.TotalCount(), at(50), at(99), time.Duration(h.Max()) * unit}
}
