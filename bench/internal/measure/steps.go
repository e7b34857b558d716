package measure

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/openenv-go/openenv-go/bench/internal/load"
	"github.com/openenv-go/openenv-go/bench/internal/proc"
	"github.com/openenv-go/openenv-go/bench/internal/report"
)

// A contender is a server in a measurement, with its load.
type contender struct {
	server *proc.Server
	// load loads it for d and returns how long that took.
	load   func(ctx context.Context, d time.Duration, r *load.Recorder) (time.Duration, error)
	rounds []report.Round
	// failure is what ended its part, such as a reply that was wrong. The others go on, and the report tells.
	failure error
}

// compete has the contenders loaded in turns, for n rounds. A round has many short ones, in an order that changes.
func (b *Bench) compete(ctx context.Context, all []*contender, n int) error {
	s := b.settings
	for _, c := range all { // heaps and buffers find their sizes
		if c.failure == nil {
			_, c.failure = c.load(ctx, s.Turn, load.NewRecorder())
		}
	}
	for range n {
		rounds, latencies := make([]report.Round, len(all)), make([]*load.Recorder, len(all))
		order := make([]int, len(all))
		for i := range all {
			latencies[i], order[i] = load.NewRecorder(), i
		}
		for range s.Turns {
			for _, i := range order {
				// Who is so slow that a turn lasts as long as all of them has had enough.
				if all[i].failure == nil && rounds[i].Elapsed <= time.Duration(s.Turns)*s.Turn {
					all[i].failure = all[i].turn(ctx, s.Turn, &rounds[i], latencies[i])
				}
			}
			slices.Reverse(order)
		}
		for i, c := range all {
			sum(&rounds[i], latencies[i])
			c.rounds = append(c.rounds, rounds[i])
		}
	}
	if err := ctx.Err(); err != nil { // no failure of theirs
		return err
	}
	for _, c := range all {
		if c.failure != nil {
			b.logf("%s FAILED: %v; it wrote:\n%s", c.server.Name, c.failure, c.server.Output())
		}
	}
	return nil
}

func (c *contender) turn(ctx context.Context, d time.Duration, r *report.Round, latencies *load.Recorder) error {
	before, err := read(c.server)
	if err != nil {
		return err
	}
	elapsed, err := c.load(ctx, d, latencies)
	if err != nil {
		return err
	}
	return add(r, c.server, before, elapsed)
}

// outcome is its rounds, or why there are none that tell.
func (c *contender) outcome() (rounds []report.Round, failure string) {
	if c.failure != nil {
		return nil, c.failure.Error()
	}
	return c.rounds, ""
}

// ManyBytes is how much the texts of all sessions may be for servers to run side by side. With more they run one after the
// other, since what they hold of the messages of their own turns would fill the memory together; and ours is told to take
// as much, which it refuses by default, and to take its time.
const ManyBytes = 256 << 20

// Steps measures steps by one door.
func (b *Bench) Steps(ctx context.Context, door string, sessions, size int) (out []report.Steps, err error) {
	b.logf("steps by %s: %d sessions, %d bytes", door, sessions, size)
	servers := b.having(door)
	if len(servers) == 0 {
		b.logf("none of the servers that were chosen has this door")
	}
	if sessions*size <= ManyBytes {
		return b.steps(ctx, door, sessions, size, servers)
	}
	for _, name := range servers {
		one, err := b.steps(ctx, door, sessions, size, []string{name})
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	return out, nil
}

// steps has some servers compete.
func (b *Bench) steps(ctx context.Context, door string, sessions, size int, servers []string) (out []report.Steps, err error) {
	d, err := load.DoorOf(door)
	if err != nil {
		return nil, err
	}
	var all []*contender
	defer func() {
		for _, c := range all {
			c.server.Stop()
		}
	}()
	for _, name := range servers {
		var args []string
		if name == report.Ours && sessions*size > ManyBytes {
			args = []string{"-max-in-flight", strconv.Itoa(report.MaxInFlight), "-tool-timeout", "10m"}
		}
		server, err := b.start(ctx, name, args...)
		if err != nil {
			return nil, err
		}
		c := &contender{server: server}
		all = append(all, c)
		group, err := load.Open(ctx, d, b.target(server, door, size), sessions)
		if c.failure = err; err != nil {
			continue
		}
		defer group.Cut()
		c.load = group.Run
	}
	if err := b.compete(ctx, all, b.settings.Rounds); err != nil {
		return nil, err
	}
	for _, c := range all {
		status, err := proc.StatusOf(c.server.PID)
		if err != nil {
			return nil, err
		}
		one := report.Steps{Door: door, Sessions: sessions, Size: size, Server: c.server.Name, RSS: status.RSS}
		one.Rounds, one.Failure = c.outcome()
		out = append(out, one)
	}
	return out, nil
}

// opening is how many sessions are opened at once where openings are measured.
const opening = 32

// Opens measures openings of sessions over /ws: connect, reset, first reply; then close.
func (b *Bench) Opens(ctx context.Context) (out []report.Opens, err error) {
	b.logf("openings of sessions")
	d, err := load.DoorOf(wsStep)
	if err != nil {
		return nil, err
	}
	var all []*contender
	defer func() {
		for _, c := range all {
			c.server.Stop()
		}
	}()
	for _, name := range b.having(wsStep) {
		server, err := b.start(ctx, name)
		if err != nil {
			return nil, err
		}
		c := &contender{server: server}
		all = append(all, c)
		clients, err := load.NewClients(ctx, d, b.target(server, wsStep, smallText))
		c.failure = err
		c.load = func(ctx context.Context, turn time.Duration, r *load.Recorder) (time.Duration, error) {
			return clients.Churn(ctx, opening, turn, r)
		}
	}
	if err := b.compete(ctx, all, b.settings.Rounds); err != nil {
		return nil, err
	}
	for _, c := range all {
		one := report.Opens{Server: c.server.Name, Width: opening}
		one.Rounds, one.Failure = c.outcome()
		out = append(out, one)
	}
	return out, nil
}

// smallText is the size of texts where it is of no matter.
const smallText = 32

// besideRounds is how many rounds there are where others have one.
const besideRounds = 5

// Beside measures steps of ours over /ws with idle sessions beside, and without.
func (b *Bench) Beside(ctx context.Context, sessions int) (out []report.Steps, err error) {
	idle := b.settings.Idle
	b.logf("steps beside %d idle sessions", idle)
	d, err := load.DoorOf(wsStep)
	if err != nil {
		return nil, err
	}
	var all []*contender
	lost := func() int64 { return 0 }
	for _, beside := range []int{0, idle} {
		server, err := b.start(ctx, report.Ours)
		if err != nil {
			return nil, err
		}
		defer server.Stop()
		target := b.target(server, wsStep, smallText)
		if beside > 0 {
			group, err := load.Open(ctx, d, target, beside)
			if err != nil {
				return nil, err
			}
			defer group.Cut()
			lost = group.Rest()
		}
		group, err := load.Open(ctx, d, target, sessions)
		if err != nil {
			return nil, err
		}
		defer group.Cut()
		all = append(all, &contender{server: server, load: group.Run})
	}
	// There is little between the two, so that each round, which is short, says little.
	if err := b.compete(ctx, all, besideRounds*b.settings.Rounds); err != nil {
		return nil, err
	}
	if n := lost(); n > 0 {
		return nil, fmt.Errorf("%d of %d idle sessions were lost", n, idle)
	}
	for i, door := range []string{"alone", fmt.Sprintf("beside %d", idle)} {
		one := report.Steps{Door: door, Sessions: sessions, Size: smallText, Server: report.Ours}
		one.Rounds, one.Failure = all[i].outcome()
		out = append(out, one)
	}
	return out, nil
}
