package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openenv-go/openenv-go/bench/internal/proc"
)

// Names of the measured servers.
const (
	Ours      = "openenv-go"
	Reference = "openenv (Python)"
	Floor     = "floor"
	HTTPEcho  = "net/http echo"
	MCPGo     = "mcp-go"
	GoSDK     = "go-sdk"
)

// MaxInFlight is how many bytes of messages ours is told to hold where a thousand sessions send a mebibyte each at once.
const MaxInFlight = 16 << 30

// Results are those of one run.
type Results struct {
	Machine  proc.Machine
	Began    time.Time
	Took     time.Duration
	Quick    bool
	Rounds   int
	Turns    int           // of each server in a round
	Turn     time.Duration // how long one is
	Versions []string      // of what is measured

	Steps  []Steps
	Opens  []Opens
	Idle   []Idle
	Beside []Steps // of ours, none and Sessions idle sessions beside; Door tells which
	Starts []Start
	Scale  []Scale

	Profiles []Profile
}

// Err is that a measurement of ours has failed. Those of others stand in the report alone.
func (r Results) Err() error {
	var failed []error
	note := func(what, server, failure string) {
		if server == Ours && failure != "" {
			failed = append(failed, fmt.Errorf("%s: %s", what, failure))
		}
	}
	for _, s := range slices.Concat(r.Steps, r.Beside) {
		note(fmt.Sprintf("%s, %d sessions, %d bytes", s.Door, s.Sessions, s.Size), s.Server, s.Failure)
	}
	for _, o := range r.Opens {
		note("opening sessions", o.Server, o.Failure)
	}
	for _, i := range r.Idle {
		note("idle sessions", i.Server, i.Failure)
	}
	for _, s := range r.Scale {
		if lost := s.Sessions - s.Succeeded; lost > 0 {
			failed = append(failed, fmt.Errorf("%d of %d sessions at once failed", lost, s.Sessions))
		}
	}
	return errors.Join(failed...)
}

// A Profile is where ours spends its CPU under steps by one door.
type Profile struct {
	Door     string
	Sessions int
	Top      []Spent // what takes the most by itself, the most first
}

// Spent is a function's share of all CPU time: by itself, and with what it calls.
type Spent struct {
	Function  string
	Flat, Cum float64 // 0 to 1
}

// Steps are those of one server by one door.
type Steps struct {
	Door     string
	Sessions int
	Size     int // of the texts, in bytes
	Server   string
	Rounds   []Round
	RSS      int64  // at the end
	Failure  string // what ended the measurement, where there are no rounds: a wrong reply, say
}

// A Round is a share of the measurement that is compared with the same round of others.
type Round struct {
	Count         int64
	Elapsed       time.Duration
	P50, P99, Max time.Duration
	CPU           time.Duration // of the server, in all
	ClientCPU     time.Duration // of the load generator
}

// PerSecond is how many there were in a second.
func (r Round) PerSecond() float64 { return float64(r.Count) / r.Elapsed.Seconds() }

// Cost is the server's CPU time of one.
func (r Round) Cost() time.Duration { return r.CPU / time.Duration(max(1, r.Count)) }

// Opens are openings of sessions at one server.
type Opens struct {
	Server  string
	Width   int // how many at once
	Rounds  []Round
	Failure string
}

// Idle is what a session costs that nobody uses.
type Idle struct {
	Server     string
	Sessions   int
	Asleep     int64   // bytes of resident memory per session, as they are some seconds after
	Collected  int64   // once garbage has been collected and free memory given back; 0: not known
	Goroutines float64 // per session; 0: not known
	Threads    float64 // per session
	Failure    string  // what ended the measurement; figures may be missing then
}

// Start is how a server starts.
type Start struct {
	Server string
	Times  []time.Duration // until it answered GET /health
	Binary int64           // size in bytes
	RSS    int64           // of the fresh process
}

// Scale is an experiment with many sessions at once.
type Scale struct {
	Sessions  int
	Wait      time.Duration // of the step
	Servers   int           // processes
	Clients   int           // processes
	Succeeded int
	Failures  []string // some
	Took      time.Duration
	Open      Phase // connect and reset
	Step      Phase
	Whole     Phase // from the start of all to the end of its close
	ServerCPU time.Duration
}

// Phase is how long a part took.
type Phase struct{ P50, P99, Max time.Duration }

// Rate is the share of sessions that succeeded.
func (s Scale) Rate() float64 { return float64(s.Succeeded) / float64(s.Sessions) }

// Median is the middle one; of an even number the upper of the two.
func Median[T cmp.Ordered](v []T) T {
	if len(v) == 0 {
		var zero T
		return zero
	}
	return slices.Sorted(slices.Values(v))[len(v)/2]
}

// over is the median of what f tells of each round.
func over[T cmp.Ordered](rounds []Round, f func(Round) T) T {
	var all []T
	for _, r := range rounds {
		all = append(all, f(r))
	}
	return Median(all)
}

// ratio is the median over all rounds of a's f in units of b's.
func ratio(a, b []Round, f func(Round) float64) float64 {
	var all []float64
	for i := range min(len(a), len(b)) {
		all = append(all, f(a[i])/f(b[i]))
	}
	return Median(all)
}

// find is the steps of a server in a cell.
func find(all []Steps, door string, sessions, size int, server string) (Steps, bool) {
	for _, s := range all {
		if s.Door == door && s.Sessions == sessions && s.Size == size && s.Server == server {
			return s, true
		}
	}
	return Steps{}, false
}
