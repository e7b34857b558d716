package transport

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Exit codes of [Main].
const (
	exitOK     = 0
	exitFailed = 1 // it ran, and did not stop cleanly
	exitUsage  = 2 // a flag, a variable, the address or the environment itself is wrong
)

// Main is an environment's main function: it reads flags and OPENENV_* variables, serves env until the process is told to
// stop, and exits. SIGINT stops at once, SIGTERM drains first; a second signal ends the process where it is. Run a program
// with -help for the flags.
//
// Memory: unless GOGC is set, the heap may grow by 64 MiB more than Go lets it before garbage is collected, which costs that much
// memory and saves a fifth of a step's CPU where sessions are few. GOGC and GOMEMLIMIT work as for any Go program.
//
// Each of flags may define flags of the environment's own, which -help shows, and which have variables like the others: they
// are set before env is compiled. A name of the server's own flags panics.
func Main(env gym.Definition, flags ...func(*flag.FlagSet)) {
	keepHeapRoom()
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if <-signals == syscall.SIGTERM {
			stop(ErrDrain)
		} else {
			stop(context.Canceled)
		}
		<-signals
		os.Exit(exitFailed)
	}()
	os.Exit(Run(ctx, env, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr, flags...))
}

// Run is [Main] without the process: it serves until ctx ends, as [Server.Serve] does, and returns the exit code. Addresses
// and what to try go to stdout, the log and errors to stderr. With -stdio it serves a client who writes to stdin and reads
// stdout, where nothing else goes then, until stdin or ctx ends; what waits for either is left behind.
func Run(ctx context.Context, env gym.Definition, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer, flags ...func(*flag.FlagSet)) int {
	c, err := parseConfig(args, getenv, stdout, flags...)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return usage(stderr, err)
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{ReplaceAttr: clip}))
	c.options.Logger = log
	if c.stdio && stdout == io.Writer(os.Stdout) {
		os.Stdout = os.Stderr                                   // what an author prints must not break the stream
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a client that has gone is an error of the write, not the end
	}
	if c.record != "" {
		if c.options.Recorder, err = tools.OpenRecorder(c.record); err != nil {
			return usage(stderr, fmt.Errorf("-record: %w", err))
		}
		defer endRecording(c.options.Recorder, log)
	}
	srv, err := New(ctx, env, c.options)
	if err != nil {
		return usage(stderr, err)
	}
	if c.code != "" && !srv.class.RunsCode() {
		srv.Close(context.WithoutCancel(ctx))
		return usage(stderr, fmt.Errorf("-%s: the environment %s has no code mode", c.code, srv.class.Metadata.Name))
	}
	if c.stdio {
		log.Info("serving", "event", "serving", "env", srv.class.Metadata.Name, "version", srv.class.Metadata.Version, "addr", "stdio",
			"mode", c.options.Mode, "tool_timeout", c.options.Sessions.ToolTimeout, "record", c.record, "code_bound", srv.class.CodeBound())
		return srv.runStdio(ctx, log, stdin, stdout, stderr)
	}
	var ln, control net.Listener
	giveUp := func(err error) int {
		for _, l := range []net.Listener{ln, control} {
			if l != nil {
				l.Close()
			}
		}
		srv.Close(context.WithoutCancel(ctx))
		return usage(stderr, err)
	}
	if ln, err = net.Listen("tcp", c.addr); err != nil {
		return giveUp(listenError("-addr", c.addr, err))
	}
	controlAddr := ""
	if c.control != "" {
		if control, err = net.Listen("tcp", c.control); err != nil {
			return giveUp(listenError("-control-addr", c.control, err))
		}
		controlAddr = control.Addr().String()
	}
	if err := srv.checkOpen(c.access.insecure, ln.Addr()); err != nil {
		return giveUp(err)
	}
	if control != nil {
		srv.warnControl(control.Addr())
	}
	greet(stdout, srv, ln.Addr(), controlAddr)
	o := c.options
	log.Info("serving", "event", "serving", "env", srv.class.Metadata.Name, "version", srv.class.Metadata.Version,
		"addr", ln.Addr().String(), "control_addr", controlAddr, "mode", o.Mode, "max_sessions", srv.sessions.Max(),
		"session_timeout", max(o.Sessions.IdleTimeout, 0), "tool_timeout", o.Sessions.ToolTimeout, "tls", o.TLS != nil,
		"control_tokens", len(o.Access.ControlTokens), "agent_tokens", len(o.Access.AgentTokens), "issuer", c.access.issuer, "record", c.record,
		"code_bound", srv.class.CodeBound())
	if err := srv.Serve(ctx, ln, control); err != nil {
		fmt.Fprintln(stderr, "error:", oneLine(err))
		return exitFailed
	}
	log.Info("stopped", "event", "stopped")
	return exitOK
}

// endRecording closes the recording when the server has ended.
func endRecording(r *tools.Recorder, log *slog.Logger) {
	if err := r.Close(); err != nil {
		log.Error("the recording may not be whole", "event", "record_error", "error", err)
	}
}

// usage prints one line and returns the exit code of a wrong start.
func usage(stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, "error:", oneLine(err))
	return exitUsage
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// maxLogged bounds a text in the log, and maxStack a stack: what clients and authors hand in may be of any length.
const (
	maxLogged = 4 << 10
	maxStack  = 64 << 10
)

// clip shortens what is too long for a log line.
func clip(_ []string, a slog.Attr) slog.Attr {
	limit := maxLogged
	if a.Key == "stack" {
		limit = maxStack
	}
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	if a.Value.Kind() == slog.KindString && len(a.Value.String()) > limit {
		a.Value = slog.StringValue(strings.ToValidUTF8(a.Value.String()[:limit], "") + "…")
	}
	return a
}

func listenError(flag, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("address %s is in use; choose another with %s, or %s %s:0 for any free port", addr, flag, flag, hostOf(addr))
	}
	if _, _, split := net.SplitHostPort(addr); split != nil {
		return fmt.Errorf("%s %s: want host:port, such as 127.0.0.1:8000 or :8000", flag, addr)
	}
	return fmt.Errorf("cannot listen on %s: %w", addr, err)
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "127.0.0.1"
	}
	return host
}

// A config is what flags and variables say.
type config struct {
	addr    string
	control string // "": none
	stdio   bool
	record  string   // "": nothing is recorded
	code    string   // a flag of code mode that was given; "": none
	own     []string // flags of the environment's own
	access  accessFlags
	options Options
}

// parseConfig reads flags, and variables where a flag is not given.
func parseConfig(args []string, getenv func(string) string, stdout io.Writer, flags ...func(*flag.FlagSet)) (config, error) {
	var c config
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	for _, define := range flags {
		define(fs)
	}
	fs.VisitAll(func(f *flag.Flag) { c.own = append(c.own, f.Name) })
	fs.SetOutput(io.Discard) // errors are printed as one line by the caller
	fs.StringVar(&c.addr, "addr", "127.0.0.1:8000", "`address` to listen on")
	fs.StringVar(&c.control, "control-addr", "", "`address` of a second listener, for trainers and operators: all that the first serves, and /sessions; none if empty")
	fs.BoolVar(&c.stdio, "stdio", false, "serve one MCP client on standard input and output, in place of an address")
	mode := fs.String("mode", string(tools.ModeSimulation), "simulation or production")
	fs.IntVar(&c.options.Sessions.Max, "max-sessions", session.DefaultMax, "how many sessions at once")
	fs.IntVar(&c.options.Sessions.Queue, "queue", 0, "how many newcomers may wait for a session on a full server; 0 refuses them at once")
	fs.DurationVar(&c.options.Sessions.QueueWait, "queue-wait", session.DefaultQueueWait, "how long they wait")
	fs.IntVar(&c.options.Sessions.Warm, "warm", 0, "how many environments to build ahead, within -max-sessions")
	idle := fs.Duration("session-timeout", session.DefaultIdleTimeout, "end a session that no socket is attached to after this long without a call; 0 is never")
	fs.DurationVar(&c.options.Sessions.ToolTimeout, "tool-timeout", session.DefaultToolTimeout, "deadline of a tool call")
	fs.DurationVar(&c.options.Grace, "grace", DefaultGrace, "how long SIGTERM leaves live sessions before they are closed; 0 is not at all")
	fs.StringVar(&c.options.Advertise, "advertise", "", "the server's own `host:port` behind a load balancer: session ids begin with its hex, so that requests find their owner")
	c.access.define(fs)
	defineCode(fs, &c.options.Code)
	fs.StringVar(&c.record, "record", "", "`file` to record all tool calls in, for replay; a recording that is there is continued; none if empty")
	if err := fs.Parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			return c, fmt.Errorf("%w (see -help)", err)
		}
		fs.SetOutput(stdout)
		fmt.Fprintln(stdout, "Flags (each is also a variable: -max-sessions is OPENENV_MAX_SESSIONS):")
		fs.PrintDefaults()
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q; all options are flags (see -help)", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	c.code = codeFlag(given)
	if err := c.fromEnvironment(fs, getenv); err != nil {
		return c, err
	}
	if err := c.checkStdio(given); err != nil {
		return c, err
	}
	for _, name := range []string{"agent-token", "agent-token-file", "control-token", "control-token-file", "oauth-issuer"} {
		if given[name] && fs.Lookup(name).Value.String() == "" { // as of a shell's variable that is not set
			return c, fmt.Errorf("-%s is empty, and the server would ask nobody for a token: leave it away if that is meant", name)
		}
	}
	var err error
	if c.options.Mode, err = tools.ParseMode(strings.ToLower(*mode)); err != nil {
		return c, err
	}
	if _, _, err := net.SplitHostPort(c.options.Advertise); c.options.Advertise != "" && err != nil {
		return c, fmt.Errorf("-advertise %s: want host:port, such as 10.0.0.7:8000", c.options.Advertise)
	}
	switch {
	case c.options.Sessions.Max < 1:
		return c, fmt.Errorf("-max-sessions %d: want at least 1", c.options.Sessions.Max)
	case c.options.Sessions.Queue < 0:
		return c, fmt.Errorf("-queue %d: want 0 or more", c.options.Sessions.Queue)
	case c.options.Sessions.QueueWait <= 0:
		return c, fmt.Errorf("-queue-wait %v: want a duration such as 30s", c.options.Sessions.QueueWait)
	case c.options.Sessions.Warm < 0:
		return c, fmt.Errorf("-warm %d: want 0 or more", c.options.Sessions.Warm)
	case *idle < 0:
		return c, fmt.Errorf("-session-timeout %v: want a duration such as 15m, or 0 for never", *idle)
	case c.options.Sessions.ToolTimeout <= 0:
		return c, fmt.Errorf("-tool-timeout %v: want a duration such as 30s", c.options.Sessions.ToolTimeout)
	}
	if err := checkCode(c.options.Code); err != nil {
		return c, err
	}
	if c.options.Grace < 0 {
		return c, fmt.Errorf("-grace %v: want a duration such as 30s, or 0 for none", c.options.Grace)
	}
	if c.options.Grace == 0 {
		c.options.Grace = -1
	}
	asked := false
	fs.Visit(func(f *flag.Flag) { asked = asked || f.Name == "max-sessions" })
	if !asked {
		c.options.Sessions.Max = 0 // the environment's default
	}
	c.options.Sessions.IdleTimeout = *idle
	if *idle == 0 {
		c.options.Sessions.IdleTimeout = -1
	}
	if c.stdio { // whatever else does not apply is as nobody has set it
		c.options.Sessions.Max = 1
	}
	return c, c.access.apply(&c.options)
}

// applies reports whether a flag does anything, which few do beside -stdio.
func (c *config) applies(name string) bool {
	return !c.stdio || strings.HasPrefix(name, codePrefix) || slices.Contains(c.own, name) ||
		slices.Contains([]string{"stdio", "mode", "tool-timeout", "record"}, name)
}

// checkStdio refuses flags that are given beside -stdio and would do nothing.
func (c *config) checkStdio(given map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !c.applies(name) {
			return fmt.Errorf("-%s makes no sense with -stdio, which serves one client and no address", name)
		}
	}
	return nil
}

// fromEnvironment sets the flags that were not given from their OPENENV_* variables. A variable of a flag that would do nothing is
// passed over, since variables are for whatever is started beside the server, too.
func (c *config) fromEnvironment(fs *flag.FlagSet, getenv func(string) string) error {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var err error
	set := func(f *flag.Flag) {
		name := "OPENENV_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		v := getenv(name)
		if v == "" || given[f.Name] || err != nil || !c.applies(f.Name) {
			return
		}
		if e := fs.Set(f.Name, v); e != nil {
			kind, _ := flag.UnquoteUsage(f)
			err = fmt.Errorf("invalid value %q for %s (%s, see -help): %w", v, name, cmp.Or(kind, "true or false"), e)
		}
	}
	set(fs.Lookup("stdio")) // which says what applies
	fs.VisitAll(set)
	return err
}
