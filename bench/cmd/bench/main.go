// Command bench measures this project's server beside the reference and beside servers that do as little as can be done,
// prints what it found, and writes docs/performance.md with its plots. Run it in the bench directory.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/openenv-go/openenv-go/bench/internal/load"
	"github.com/openenv-go/openenv-go/bench/internal/measure"
	"github.com/openenv-go/openenv-go/bench/internal/proc"
	"github.com/openenv-go/openenv-go/bench/internal/report"
	"github.com/openenv-go/openenv-go/bench/internal/scale"
)

func main() {
	scale.Work()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		if ctx.Err() != nil { // whatever failed did so since it was told to end
			err = context.Cause(ctx)
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// A config is what the flags say.
type config struct {
	settings measure.Settings
	quick    bool
	parts    []string
	json     string
	write    string
	render   string
	profile  string
}

// Parts of a run.
var allParts = []string{"steps", "opens", "idle", "beside", "starts", "profile", "scale"}

// Those of them that measure this project's server alone.
var ourParts = []string{"beside", "profile", "scale"}

func parse(args []string) (c config, err error) {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.BoolVar(&c.quick, "quick", false, "some minutes: fewer and shorter measurements, good to see that all works")
	doors := fs.String("doors", "", "`names` of doors, with commas between; all if empty")
	sessions := fs.String("sessions", "", "`numbers` of sessions; 1,64,1000 if empty, or 1,64 with -quick")
	sizes := fs.String("sizes", "", "`sizes` of texts in bytes; 32,4096,1048576 if empty, or 32 with -quick")
	servers := fs.String("servers", "", "`names` of servers; all if empty")
	parts := fs.String("parts", "", "`what` to measure, of "+strings.Join(allParts, ",")+"; all if empty")
	reference := fs.Bool("reference", true, "measure the reference too, which needs Python and a package index the first time")
	rounds := fs.Int("rounds", 0, "how many rounds, of which the median is told; 0: 5, or 3 with -quick; beside idle sessions five times as many")
	turns := fs.Int("turns", 0, "turns of each server in a round; 0: 4, or 2 with -quick")
	turn := fs.Duration("turn", 0, "how long a turn is; 0: 500ms, or 100ms with -quick")
	idle := fs.Int("idle", 0, "idle sessions, at the reference a tenth of them and 1000 at most; 0: 10000, or 1000 with -quick")
	fs.StringVar(&c.json, "json", "", "`file` for the results as JSON")
	fs.StringVar(&c.render, "render", "", "measure nothing, and take the results of this `file`")
	fs.StringVar(&c.write, "write", "", "`directory` for performance.md and its plots, such as ../docs; none if empty")
	fs.StringVar(&c.profile, "profile", "", "measure nothing, and write a CPU profile to this `file`: of ours at 64 sessions with texts of 32 bytes over /ws, or of what -servers, -doors, -sessions and -sizes name first")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("%q is no flag; -help shows them", fs.Arg(0))
	}
	root, err := os.Getwd()
	if err != nil {
		return c, err
	}
	if _, err := os.Stat(filepath.Join(root, "servers", "ours")); err != nil {
		return c, errors.New("run it in the bench directory: go run ./cmd/bench")
	}
	s := measure.Settings{Rounds: 5, Turns: 4, Turn: 500 * time.Millisecond, Idle: 10_000, Starts: 5, Profiled: 15 * time.Second, Root: root, Log: os.Stderr}
	s.Sessions, s.Sizes = []int{1, 64, 1000}, []int{32, 4 << 10, 1 << 20}
	s.Servers = []string{report.Ours, report.Floor, report.HTTPEcho, report.MCPGo, report.GoSDK, report.Reference}
	if c.quick {
		s = quick(s)
	}
	for _, d := range load.Doors {
		s.Doors = append(s.Doors, d.Name)
	}
	c.parts = allParts
	if c.profile != "" {
		s.Sessions = []int{64}
		*servers = cmp.Or(*servers, report.Ours)
	}
	err = errors.Join(override(&s.Rounds, "rounds", *rounds), override(&s.Turns, "turns", *turns), override(&s.Turn, "turn", *turn),
		override(&s.Idle, "idle", *idle), choose(&s.Doors, *doors), choose(&s.Servers, *servers), choose(&c.parts, *parts),
		numbers(&s.Sessions, *sessions), numbers(&s.Sizes, *sizes))
	if !*reference {
		s.Servers = slices.DeleteFunc(s.Servers, func(name string) bool { return name == report.Reference })
	}
	c.settings = s
	return c, errors.Join(err, c.fit(*parts != ""), c.places())
}

// fit leaves out what the chosen servers do not have; where the parts were named that is an error.
func (c *config) fit(named bool) error {
	if len(c.settings.Servers) == 0 {
		return errors.New("no server is left to measure: -reference=false leaves out the one that -servers names")
	}
	if slices.Contains(c.settings.Servers, report.Ours) {
		return nil
	}
	alone := func(part string) bool { return slices.Contains(ourParts, part) }
	if named && slices.ContainsFunc(c.parts, alone) {
		return fmt.Errorf("%s measure %s alone: name it in -servers, or leave them out of -parts", strings.Join(ourParts, ", "), report.Ours)
	}
	c.parts = slices.DeleteFunc(slices.Clone(c.parts), alone)
	return nil
}

// places tells at the start, and not after an hour, that there is no place to write to.
func (c config) places() error {
	for _, file := range []string{c.json, c.profile} {
		if file == "" {
			continue
		}
		if err := writable(file); err != nil {
			return fmt.Errorf("nothing can be written to %s: %w", file, err)
		}
	}
	if c.write == "" {
		return nil
	}
	if err := os.MkdirAll(c.write, 0o755); err != nil {
		return fmt.Errorf("-write %s: want a directory: %w", c.write, err)
	}
	return nil
}

// writable tries a file, and leaves what is there.
func writable(file string) error {
	_, before := os.Stat(file)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err == nil {
		err = f.Close()
	}
	if err == nil && before != nil {
		err = os.Remove(file)
	}
	return err
}

func quick(s measure.Settings) measure.Settings {
	s.Rounds, s.Turns, s.Turn, s.Idle, s.Starts, s.Profiled = 3, 2, 100*time.Millisecond, 1_000, 3, time.Second
	s.Sessions, s.Sizes = []int{1, 64}, []int{32}
	return s
}

func override[T int | time.Duration](to *T, name string, with T) error {
	if with < 0 {
		return fmt.Errorf("-%s %v: want a positive one", name, with)
	}
	*to = cmp.Or(with, *to)
	return nil
}

// choose replaces all by those that are named.
func choose(all *[]string, named string) error {
	if named == "" {
		return nil
	}
	chosen := strings.Split(named, ",")
	for _, name := range chosen {
		if !slices.Contains(*all, name) {
			return fmt.Errorf("there is no %q; there are %s", name, strings.Join(*all, ", "))
		}
	}
	*all = chosen
	return nil
}

func numbers(to *[]int, text string) error {
	if text == "" {
		return nil
	}
	*to = nil
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no positive number", field)
		}
		*to = append(*to, n)
	}
	return nil
}

func run(ctx context.Context, args []string) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	var results report.Results
	switch {
	case c.render != "":
		if results, err = resultsOf(c.render); err != nil {
			return err
		}
	case c.profile != "":
		return profile(ctx, c)
	default:
		if results, err = measureAll(ctx, c); err != nil {
			return err
		}
	}
	fmt.Print(report.Text(results))
	if c.json != "" {
		text, err := json.MarshalIndent(results, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.json, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if c.write != "" {
		if err := report.Write(c.write, results); err != nil {
			return err
		}
	}
	if c.render != "" {
		return nil
	}
	return results.Err()
}

// resultsOf reads what -json has written.
func resultsOf(file string) (r report.Results, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err = json.Unmarshal(text, &r); err == nil && r.Began.IsZero() {
		err = errors.New("it does not say when it was measured")
	}
	if err != nil {
		err = fmt.Errorf("%s holds no results that -json wrote: %w", file, err)
	}
	return r, err
}

// profile takes the first of the servers, doors, sessions and sizes that were chosen.
func profile(ctx context.Context, c config) error {
	s := c.settings
	return withBench(ctx, s, func(b *measure.Bench) error {
		return b.Profile(ctx, c.profile, s.Servers[0], s.Doors[0], s.Sessions[0], s.Sizes[0], s.Profiled)
	})
}

// withBench builds the servers for as long as f runs.
func withBench(ctx context.Context, s measure.Settings, f func(*measure.Bench) error) error {
	dir, err := os.MkdirTemp("", "openenv-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := measure.New(ctx, dir, s)
	if err != nil {
		return err
	}
	return f(b)
}

func measureAll(ctx context.Context, c config) (r report.Results, err error) {
	s := c.settings
	wanted := max(s.Idle, slices.Max(s.Sessions)*len(s.Servers)) + 1000
	fit, err := proc.RaiseFiles(wanted)
	if err != nil {
		return r, err
	}
	if fit < wanted {
		return r, fmt.Errorf("a process may have %d connections here, and %d are wanted: raise the limit (ulimit -n) or choose fewer sessions", fit, wanted)
	}
	r = report.Results{Machine: proc.ThisMachine(), Began: time.Now(), Quick: c.quick, Rounds: s.Rounds, Turns: s.Turns, Turn: s.Turn}
	err = withBench(ctx, s, func(b *measure.Bench) error {
		if r.Versions, err = b.Versions(ctx); err != nil {
			return err
		}
		for _, part := range c.parts {
			if err := measurePart(ctx, b, s, part, &r); err != nil {
				return fmt.Errorf("%s: %w", part, err)
			}
		}
		return nil
	})
	r.Took = time.Since(r.Began)
	return r, err
}

// besides is how many sessions step while others are idle.
const besides = 64

func measurePart(ctx context.Context, b *measure.Bench, s measure.Settings, part string, r *report.Results) (err error) {
	switch part {
	case "steps":
		for _, cell := range cells(s) {
			steps, err := b.Steps(ctx, cell.door, cell.sessions, cell.size)
			if err != nil {
				return fmt.Errorf("%s, %d sessions, %d bytes: %w", cell.door, cell.sessions, cell.size, err)
			}
			r.Steps = append(r.Steps, steps...)
		}
	case "opens":
		r.Opens, err = b.Opens(ctx)
	case "idle":
		r.Idle, err = b.Idle(ctx)
	case "beside":
		r.Beside, err = b.Beside(ctx, besides)
	case "starts":
		r.Starts, err = b.Starts(ctx)
	case "profile":
		r.Profiles, err = b.Profiles(ctx)
	case "scale":
		r.Scale, err = b.Scale(ctx, scales(r.Quick))
	}
	return err
}

type cell struct {
	door           string
	sessions, size int
}

// cells are all that are measured. Streamable HTTP has one more, with the sessions that its verdict is on. What takes very
// long and would tell no more, a mebibyte of each of a thousand sessions, is measured by one door.
func cells(s measure.Settings) (all []cell) {
	for _, door := range s.Doors {
		if door == "streamable" && slices.Contains(s.Sizes, 32) && !slices.Contains(s.Sessions, report.StreamableSessions) {
			all = append(all, cell{door, report.StreamableSessions, 32})
		}
		for _, sessions := range s.Sessions {
			for _, size := range s.Sizes {
				if sessions*size <= measure.ManyBytes || door == "ws-step" {
					all = append(all, cell{door, sessions, size})
				}
			}
		}
	}
	return all
}

// scales are the experiments with many sessions at once.
func scales(quick bool) []scale.Settings {
	if quick {
		return []scale.Settings{{Sessions: 1_000, Wait: time.Second}}
	}
	return []scale.Settings{{Sessions: 1_024, Wait: time.Second}, {Sessions: 16_384, Wait: time.Second}, {Sessions: 65_536, Wait: 10 * time.Second}}
}
