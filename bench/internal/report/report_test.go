package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/bench/internal/report"
)

// rounds are three with so much CPU, in microseconds, for each of a thousand steps.
func rounds(cpu ...int) (all []report.Round) {
	for _, c := range cpu {
		all = append(all, report.Round{
			Count: 1000, Elapsed: time.Second, P50: time.Millisecond, P99: 3 * time.Millisecond, Max: time.Second,
			CPU: time.Duration(c) * time.Millisecond, ClientCPU: time.Millisecond,
		})
	}
	return all
}

var results = report.Results{
	Rounds: 3,
	Steps: []report.Steps{
		{Door: "ws-step", Sessions: 1, Size: 32, Server: report.Ours, Rounds: rounds(30, 31, 32)},
		{Door: "ws-step", Sessions: 64, Size: 32, Server: report.Ours, Rounds: rounds(20, 90, 22)},
		{Door: "ws-step", Sessions: 64, Size: 32, Server: report.Floor, Rounds: rounds(16, 16, 16)},
		{Door: "ws-step", Sessions: 64, Size: 32, Server: report.Reference, Failure: "it gave up | here\nand wrote more"},
	},
	Idle: []report.Idle{{Server: report.Ours, Sessions: 10, Asleep: 33 << 10}, {Server: report.Floor, Sessions: 10, Asleep: 32 << 10}},
	Beside: []report.Steps{
		{Door: "alone", Server: report.Ours, Rounds: rounds(20, 20, 20, 20, 20, 20, 20, 20, 20)},
		{Door: "beside 10", Server: report.Ours, Rounds: rounds(20, 28, 21, 27, 22, 26, 23, 25, 24)},
	},
	Profiles: []report.Profile{{Door: "ws-step", Sessions: 64, Top: []report.Spent{{Function: "main.busy[…]", Flat: 0.123, Cum: 0.5}}}},
	Scale:    []report.Scale{{Sessions: 65_536, Wait: 10 * time.Second, Servers: 4, Clients: 4, Succeeded: 65_500}},
}

func TestText(t *testing.T) {
	text := oneSpaced(report.Text(results))
	for _, want := range []string{
		"CPU per step, of the floor's ≤ 1.50 × 1.38 × met 1.25 ×, 5.62 ×, 1.38 ×", // the median of the rounds' ratios
		"CPU per step with idle sessions (beside 10), of that without ≤ 1.10 × 1.20 × **not met** 9 rounds, half of them from 1.10 × to 1.30 ×",
		"resident memory of an idle session ≤ 32 KiB 33 KiB **not met**",
		"≤ 1.30 × 1.03 × met",
		"≥ 99.9 % 99.945 % met",
		"failed: it gave up / here",
		"Where the CPU goes: `step` frames over `/ws`, 64 sessions function by itself with what it calls `main.busy[…]` 12.3 % 50.0 %",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "reference's") {
		t.Error("there is a verdict without a measurement")
	}
}

// A run in which a server of ours failed is no success, whatever the others did.
func TestErr(t *testing.T) {
	others := results
	others.Scale = nil
	if err := others.Err(); err != nil {
		t.Errorf("the reference has failed: %v", err)
	}
	ours := report.Results{
		Steps: []report.Steps{{Door: "ws-step", Sessions: 64, Size: 32, Server: report.Ours, Failure: "wrong reply"}},
		Opens: []report.Opens{{Server: report.Ours, Failure: "refused"}},
		Idle:  []report.Idle{{Server: report.Ours, Failure: "lost"}},
		Scale: []report.Scale{{Sessions: 10, Succeeded: 9}},
	}
	err := ours.Err()
	for _, want := range []string{"ws-step, 64 sessions, 32 bytes: wrong reply", "opening sessions: refused", "idle sessions: lost", "1 of 10 sessions at once"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("there is no %q in %v", want, err)
		}
	}
	if text := oneSpaced(report.Text(ours)); !strings.Contains(text, "failed: lost") || strings.Contains(text, "resident memory of an idle session") {
		t.Errorf("the idle sessions that failed are told so:\n%s", text)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := report.Write(dir, results); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "](performance/cpu.svg)") {
		t.Error("the report shows no plot")
	}
	plot, err := os.ReadFile(filepath.Join(dir, "performance", "cpu.svg"))
	if err != nil || !strings.Contains(string(plot), "<svg") {
		t.Errorf("the plot is %.100q, %v", plot, err)
	}
}

// oneSpaced has one space where a table has many.
func oneSpaced(text string) string { return strings.Join(strings.Fields(text), " ") }
