package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
)

// recordingFile is where recordings go, from the top of the repository, without its .yaml. They are compiled in.
const recordingFile = "examples/fetch_modes/testdata/web"

// Set reads the list from a flag.
func (l *allowList) Set(text string) (err error) {
	*l, err = parseAllowList(text)
	return err
}

// String is the list as a flag has it.
func (l *allowList) String() string {
	entries := append([]string{}, l.hosts...)
	for _, p := range l.prefixes {
		entries = append(entries, p.String())
	}
	return strings.Join(entries, ",")
}

// flags are the program's own.
func (g *guard) flags(fs *flag.FlagSet) {
	fs.Var(&g.allow, "fetch-allow", "comma-separated `hosts`, addresses or ranges that may be fetched although they are not public, on any port")
}

// recordMain records the addresses given, or else the museum's pages, and returns the exit code.
func recordMain(args []string) int {
	g := newGuard(allowList{})
	fs := flag.NewFlagSet("fetch_modes record [URL...]", flag.ContinueOnError)
	g.flags(fs)
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var t tally
	var err error
	if fs.NArg() == 0 {
		t, err = recordMuseum(ctx, recordingFile, log)
	} else {
		network := newTransport(g)
		defer network.CloseIdleConnections()
		t, err = record(ctx, recordingFile, browser{transport: network, room: newRoom(), time: fetchTime, log: log}, fs.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	fmt.Printf("%v; recorded into %s.yaml, and the next build replays it\n", t, recordingFile)
	return 0
}
