package measure

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/openenv-go/openenv-go/bench/internal/load"
	"github.com/openenv-go/openenv-go/bench/internal/proc"
	"github.com/openenv-go/openenv-go/bench/internal/report"
)

// Settings say how much is measured.
type Settings struct {
	Doors    []string
	Sessions []int
	Sizes    []int
	Servers  []string // names of report
	Rounds   int
	Turns    int           // of each server in a round
	Turn     time.Duration // how long one is
	Idle     int           // idle sessions
	Starts   int           // of each server
	Profiled time.Duration // how long a profile is taken
	Root     string        // the directory of the bench module
	Log      io.Writer     // says what is under way
}

// A Bench is servers that can be started and measured.
type Bench struct {
	settings Settings
	dir      string // for what is built and written
	programs map[string]program
}

// A program is a server that can be started.
type program struct {
	args []string
	// doors are those that it has, with the path where it is not the door's own.
	doors map[string]string
	bare  bool // see load.Target
	size  int64
}

// maxSessions is more than any measurement opens at one server.
const maxSessions = 70_000

// Doors, by the names of package load.
const (
	wsStep     = "ws-step"
	wsMCPFrame = "ws-mcp-frame"
	wsMCP      = "ws-mcp"
	postMCP    = "post-mcp"
	streamable = "streamable"
)

// New builds the servers into dir.
func New(ctx context.Context, dir string, s Settings) (*Bench, error) {
	b := &Bench{s, dir, map[string]program{}}
	everyDoor := map[string]string{}
	for _, d := range load.Doors {
		everyDoor[d.Name] = ""
	}
	referenceDoors := maps.Clone(everyDoor)
	delete(referenceDoors, streamable)
	delete(referenceDoors, "post-step") // the reference has no session there
	for name, p := range map[string]program{
		report.Ours:      {args: []string{"ours", "-addr", "127.0.0.1:0", "-max-sessions", strconv.Itoa(maxSessions)}, doors: everyDoor},
		report.Floor:     {args: []string{"floor"}, doors: map[string]string{wsStep: ""}, bare: true},
		report.HTTPEcho:  {args: []string{"httpecho"}, doors: map[string]string{postMCP: "/bare", streamable: "/mcp"}, bare: true},
		report.MCPGo:     {args: []string{"mcpgo"}, doors: map[string]string{streamable: ""}},
		report.GoSDK:     {args: []string{"gosdk"}, doors: map[string]string{streamable: ""}},
		report.Reference: {doors: referenceDoors},
	} {
		if !slices.Contains(s.Servers, name) {
			continue
		}
		b.logf("building %s", name)
		var err error
		if name == report.Reference {
			p.args, p.size, err = b.reference(ctx)
		} else if p.args[0], err = proc.Build(ctx, dir, p.args[0]); err == nil {
			p.size, err = proc.SizeOf(p.args[0])
		}
		if err != nil {
			return nil, err
		}
		b.programs[name] = p
	}
	return b, nil
}

// reference makes the reference's Python. Its size is that of all that is installed.
func (b *Bench) reference(ctx context.Context) (args []string, size int64, err error) {
	dir := filepath.Join(b.settings.Root, "servers", "reference")
	python, err := proc.Venv(ctx, filepath.Join(dir, "requirements.txt"), filepath.Join(dir, "../../../interop/python/requirements.txt"))
	if err != nil {
		return nil, 0, err
	}
	size, err = proc.SizeOf(filepath.Dir(filepath.Dir(python)))
	return []string{python, "-B", filepath.Join(dir, "server.py")}, size, err
}

func (b *Bench) logf(format string, args ...any) {
	fmt.Fprintf(b.settings.Log, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

func (b *Bench) start(ctx context.Context, name string, args ...string) (*proc.Server, error) {
	return proc.Start(ctx, name, nil, slices.Concat(b.programs[name].args, args)...)
}

// having are the servers that have a door, in one order.
func (b *Bench) having(door string) (names []string) {
	for _, name := range b.settings.Servers {
		if _, ok := b.programs[name].doors[door]; ok {
			names = append(names, name)
		}
	}
	return names
}

func (b *Bench) target(s *proc.Server, door string, size int) load.Target {
	p := b.programs[s.Name]
	return load.Target{Addr: s.Addr, Path: p.doors[door], Size: size, Bare: p.bare}
}

// A meter reads what a server and this process have used.
type meter struct{ server, client time.Duration }

func read(s *proc.Server) (m meter, err error) {
	if m.server, err = proc.CPU(s.PID); err != nil {
		return m, err
	}
	m.client, err = proc.CPU(os.Getpid())
	return m, err
}

// add adds what was used since before, and what was done meanwhile.
func add(r *report.Round, s *proc.Server, before meter, elapsed time.Duration) error {
	after, err := read(s)
	r.Elapsed += elapsed
	r.CPU += after.server - before.server
	r.ClientCPU += after.client - before.client
	return err
}

// sum completes a round.
func sum(r *report.Round, latencies *load.Recorder) {
	l := latencies.Sum()
	r.Count, r.P50, r.P99, r.Max = l.Count, l.P50, l.P99, l.Max
}
