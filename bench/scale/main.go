// Command scale runs the shape of the published experiment: N sessions at once, each connects, resets, takes one step that
// waits, and closes. It tells how many succeeded, and how long they took.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/openenv-go/openenv-go/bench/internal/proc"
	"github.com/openenv-go/openenv-go/bench/internal/report"
	"github.com/openenv-go/openenv-go/bench/internal/scale"
)

func main() {
	scale.Work()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && !errors.Is(err, flag.ErrHelp) {
		if ctx.Err() != nil { // whatever failed did so since it was told to end
			err = context.Cause(ctx)
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	fs := flag.NewFlagSet("scale", flag.ContinueOnError)
	var s scale.Settings
	fs.IntVar(&s.Sessions, "n", 16_384, "sessions at once, at most 65536")
	fs.DurationVar(&s.Wait, "wait", time.Second, "how long the step waits")
	fs.IntVar(&s.Servers, "servers", 0, "server `processes`; 0: as few as the limit of open files allows")
	if err := fs.Parse(os.Args[1:]); err != nil {
		return err
	}
	switch {
	case fs.NArg() > 0:
		return fmt.Errorf("%q is no flag; -help shows them", fs.Arg(0))
	case s.Sessions < 1 || s.Sessions > 65_536:
		return fmt.Errorf("-n %d: want 1 to 65536", s.Sessions)
	case s.Wait < 0 || s.Wait > time.Hour:
		return fmt.Errorf("-wait %v: want 0 to 1h", s.Wait)
	case s.Servers < 0 || s.Servers > s.Sessions:
		return fmt.Errorf("-servers %d: want 0 to as many as there are sessions, %d", s.Servers, s.Sessions)
	}
	dir, err := os.MkdirTemp("", "openenv-scale-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := proc.Build(ctx, dir, "ours")
	if err != nil {
		return err
	}
	timeout := max(30*time.Second, 2*s.Wait) // the server's default, which would end a longer step
	r, err := scale.Run(ctx, s, []string{program, "-addr", "127.0.0.1:0", "-max-sessions", strconv.Itoa(s.Sessions + 100), "-tool-timeout", timeout.String()})
	if err != nil {
		return err
	}
	fmt.Print(report.Text(report.Results{Scale: []report.Scale{r}}))
	fmt.Printf("\nIt took %v, and %v of the servers' CPU.\n", r.Took.Round(time.Millisecond), r.ServerCPU.Round(time.Millisecond))
	if r.Servers > 1 && s.Servers == 0 {
		fmt.Printf("A process may have too few files open for %d connections, so there were %d servers and %d processes of clients.\n", r.Sessions, r.Servers, r.Clients)
	}
	for _, f := range r.Failures {
		fmt.Println("failed:", f)
	}
	if failed := r.Sessions - r.Succeeded; failed > 0 {
		return fmt.Errorf("%d of %d sessions failed", failed, r.Sessions)
	}
	return nil
}
