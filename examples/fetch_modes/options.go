package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
)

// options are what this program's own flags say. The others are transport.Main's.
type options struct {
	allow  allowList
	record bool     // the first argument is record
	rest   []string // flags of transport.Main, or addresses to record
}

// recordingFile is where recordings go, from the top of the repository, without its .yaml. They are compiled in.
const recordingFile = "examples/fetch_modes/testdata/web"

// parseOptions takes -fetch-allow out of args, or its variable.
func parseOptions(args []string, getenv func(string) string) (options, error) {
	o := options{rest: []string{}}
	if len(args) > 0 && args[0] == "record" {
		o.record, args = true, args[1:]
	}
	allow := getenv("FETCH_ALLOW")
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, value, joined := strings.Cut(arg, "=")
		if name != "-fetch-allow" && name != "--fetch-allow" {
			o.rest = append(o.rest, arg)
			continue
		}
		if !joined && len(args) == 0 {
			return o, fmt.Errorf("%s needs a value: hosts, addresses or ranges with commas between them", name)
		}
		if !joined {
			value, args = args[0], args[1:]
		}
		allow = value
	}
	var err error
	if o.allow, err = parseAllowList(allow); err != nil {
		return o, fmt.Errorf("-fetch-allow: %w", err)
	}
	return o, nil
}

// recordMain records the addresses given, or else the museum's pages, and returns the exit code.
func recordMain(o options) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var err error
	if len(o.rest) == 0 {
		err = recordMuseum(ctx, recordingFile, log)
	} else {
		network := newTransport(newGuard(o.allow))
		defer network.CloseIdleConnections()
		err = record(ctx, recordingFile, browser{transport: network, time: fetchTime, log: log}, o.rest)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	fmt.Printf("recorded into %s.yaml; the next build replays it\n", recordingFile)
	return 0
}
