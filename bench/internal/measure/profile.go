package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/openenv-go/openenv-go/bench/internal/load"
	"github.com/openenv-go/openenv-go/bench/internal/report"
)

const (
	// told is how many functions of a profile the report has.
	told = 20
	// busy is how many sessions are stepping meanwhile.
	busy = 64
)

// Profiles are where ours spends its CPU, by the doors that bars are on.
func (b *Bench) Profiles(ctx context.Context) (all []report.Profile, err error) {
	for _, door := range []string{wsStep, postMCP, streamable} {
		if !slices.Contains(b.settings.Doors, door) {
			continue
		}
		file := filepath.Join(b.dir, door+".pprof")
		if err := b.Profile(ctx, file, report.Ours, door, busy, smallText, b.settings.Profiled); err != nil {
			return nil, err
		}
		p := report.Profile{Door: door, Sessions: busy}
		if p.Top, err = topOf(file, told); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// topOf are the functions of a profile that take the most time by themselves.
func topOf(file string, n int) ([]report.Spent, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		return nil, err
	}
	var all int64
	flat, cum := map[string]int64{}, map[string]int64{}
	for _, s := range p.Sample {
		spent := s.Value[len(s.Value)-1] // nanoseconds; the first is how many samples
		all += spent
		above := map[string]bool{} // a function counts once, however often it is on the stack
		for _, l := range s.Location {
			for _, line := range l.Line {
				name := named(line.Function.Name)
				if len(above) == 0 {
					flat[name] += spent
				}
				if !above[name] {
					above[name] = true
					cum[name] += spent
				}
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(flat), func(a, b string) int {
		return cmp.Or(cmp.Compare(flat[b], flat[a]), strings.Compare(a, b))
	})
	var top []report.Spent
	for _, name := range names[:min(n, len(names))] {
		share := func(d int64) float64 { return float64(d) / float64(max(1, all)) }
		top = append(top, report.Spent{Function: name, Flat: share(flat[name]), Cum: share(cum[name])})
	}
	return top, nil
}

// named is a function's name without the types that it was made for, which can be very long.
func named(function string) string {
	if begin, end := strings.Index(function, "["), strings.LastIndex(function, "]"); 0 <= begin && begin < end {
		return function[:begin] + "[…]" + function[end+1:]
	}
	return function
}

// Profile writes a CPU profile of a Go server under steps by one door to a file.
func (b *Bench) Profile(ctx context.Context, file, name, door string, sessions, size int, d time.Duration) error {
	b.logf("a profile of %s, steps by %s: %d sessions, %d bytes", name, door, sessions, size)
	into, err := load.DoorOf(door)
	if err != nil {
		return err
	}
	if _, ok := b.programs[name].doors[door]; !ok {
		return fmt.Errorf("%s has no door %s", name, door)
	}
	server, err := b.start(ctx, name)
	if err != nil {
		return err
	}
	defer server.Stop()
	if !server.Profiles() {
		return fmt.Errorf("%s is no Go program, of which a profile could be taken", name)
	}
	group, err := load.Open(ctx, into, b.target(server, door, size), sessions)
	if err != nil {
		return err
	}
	defer group.Cut()
	if _, err := group.Run(ctx, time.Second, load.NewRecorder()); err != nil { // heaps and buffers find their sizes
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	profiled := make(chan error, 1)
	go func() { profiled <- server.Profile(ctx, d, f) }()
	_, err = group.Run(ctx, d+time.Second, load.NewRecorder())
	return errors.Join(err, <-profiled, f.Close())
}
