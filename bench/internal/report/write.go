package report

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Write writes performance.md into a directory of documents, and its plots into performance/ there.
func Write(docs string, r Results) error {
	plots := filepath.Join(docs, "performance")
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	for _, c := range charts(r) {
		if err := c.draw(plots); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(docs, "performance.md"), []byte(markdown(r)), 0o644)
}

const intro = `# Performance

Written by ` + "`task bench`" + `, which starts this server, the reference and some servers that do as little as can be done,
each as a process of its own, and drives them with one load generator in one run on one machine.

| server | what it is |
|---|---|
| openenv-go | this project, as ` + "`transport.Main`" + ` serves it, with its defaults but the number of sessions; its log goes to a file |
| openenv (Python) | the reference, openenv 0.10.0 on uvicorn with uvloop and httptools, without an access log and with as many sessions as are asked for |
| floor | a bare loop over coder/websocket that decodes the whole frame with encoding/json and writes the same reply, byte for byte, from a typed struct |
| net/http echo | a bare handler that decodes the whole request with encoding/json and writes the same reply, byte for byte, from a typed struct |
| mcp-go | mark3labs/mcp-go, its stock Streamable HTTP server, with a typed tool |
| go-sdk | modelcontextprotocol/go-sdk, its stock Streamable HTTP handler, with a tool of its generic ` + "`AddTool`" + ` |

All have a tool that echoes a text. A client has a connection and a session of its own, and one request under way at a time.
No two requests carry the same text, and every reply is compared, byte for byte, with what it must be: the first one of a
server is decoded and judged, and all others must equal it but for their text and id.

The load generator shares the cores with the servers, so that steps per second and latencies are those of both together;
what a server costs is its CPU time per step, user and system, by the kernel's clock of its process. The servers are loaded in
turns, in an order that changes, so that what slows one slows the others; a ratio is taken within a round of such turns, and
what is told is the median of all rounds, of their p50, p99 and max too. A server that is so slow that its first turn lasts as
long as all turns of a round has but that one.

Where a thousand sessions send a mebibyte each, the servers run one after the other, for want of memory, and this one is told
to hold 16 GiB of messages (` + "`Options.MaxInFlight`" + `): by default it refuses to hold more than one; and to give a call more than 30 s.
That takes very long, and is measured over ` + "`/ws`" + ` alone.

`

func markdown(r Results) string {
	var b strings.Builder
	b.WriteString(intro)
	machineText(&b, r)
	tables := tables(r)
	for i, t := range tables {
		if i == 1 {
			plotsText(&b, r)
		}
		fmt.Fprintf(&b, "\n## %s\n\n", t.title)
		fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(t.head, " | "), strings.Repeat("---|", len(t.head)))
		for _, row := range t.rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
		b.WriteString(notes(t.title, r))
	}
	b.WriteString("\n" + tried)
	return b.String()
}

// tried is what was found in profiles and done about it, which no run can tell.
//
//go:embed tried.md
var tried string

func machineText(b *strings.Builder, r Results) {
	m := r.Machine
	fmt.Fprintf(b, "Measured on %s, in %.0f minutes, on %s with %d cores, %s of memory, %s, %s. Load averages at the start: %s. ",
		r.Began.UTC().Format(time.DateOnly), r.Took.Minutes(), m.CPU, m.Cores, size(m.Memory), m.Kernel, m.Go, m.Load)
	fmt.Fprintf(b, "%d rounds of %d turns of %v each. %s.\n", r.Rounds, r.Turns, r.Turn, strings.Join(r.Versions, ", "))
	if r.Quick {
		b.WriteString("\n**A quick run: too short for its numbers to be good.**\n")
	}
}

func plotsText(b *strings.Builder, r Results) {
	for _, c := range charts(r) {
		fmt.Fprintf(b, "\n![%s](performance/%s.svg)\n", c.title, c.file)
	}
}

// notes are what must be known to read a table.
func notes(title string, r Results) string {
	switch title {
	case idleTitle:
		return "\nResident memory is as it is five seconds after the last step, less that of the same process before; it has garbage in it.\n" +
			"After a collection all garbage is gone and free memory given back. The reference has a thread for each session.\n"
	case scaleTitle:
		return scaleNote(r)
	case besideTitle:
		return "\nThere are more rounds than elsewhere, since there is little between the two. The idle clients answer pings, and do nothing else.\n"
	case startsTitle:
		return "\nThe size is that of the program; of the reference, of all that is installed in its virtual environment.\n"
	}
	return ""
}

func scaleNote(r Results) string {
	text := "\nAll sessions begin at once, and the whole is told from there: it has in it how long a session waits for its turn to connect.\n" +
		"Each process of clients has 256 sessions between connecting and the reply to their reset; the others wait.\n"
	for _, s := range r.Scale {
		if s.Servers > 1 {
			text += fmt.Sprintf("On this machine a process may have %d files open, so %s sessions needed %d servers, and %d processes of clients.\n",
				r.Machine.Files, number(float64(s.Sessions)), s.Servers, s.Clients)
		}
		for _, f := range s.Failures {
			text += fmt.Sprintf("Of %s sessions: `%s`\n", number(float64(s.Sessions)), f)
		}
	}
	return text
}
