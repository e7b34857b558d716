package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/interop/internal/kit"
)

// runTimeout is far beyond what a run takes: some ten seconds.
const runTimeout = 3 * time.Minute

// A run is one way to call the suite.
type run struct {
	name    string // as in baseline.txt
	release string // the package's alias in package.json
	args    []string
	scored  string // the revision whose scored scenarios alone must pass; "": all must
}

var (
	release01 = run{name: "0.1.16", release: "conformance-0.1", args: []string{"--suite", "all"}}
	stateful  = run{
		name: "0.2.0-alpha.12/2025-11-25", release: "conformance-0.2",
		args: []string{"--suite", "all", "--spec-version", "2025-11-25"},
	}
	stateless = run{
		name: "0.2.0-alpha.12/2026-07-28", release: "conformance-0.2",
		args: []string{"--requirements", "2026-07-28"}, scored: "2026-07-28",
	}
)

func TestConformance(t *testing.T) {
	kit.Need(t)
	known := readBaseline(t)
	kit.DependOnSources(t)
	suite := install(t)
	// The suite leaves sessions behind, which a stop need not wait for.
	url := kit.Start(t, kit.Build(t, "./examples/everything"), "-grace", "0").URL

	skipped := map[string]bool{}
	t.Run("runs", func(t *testing.T) { // returns when all parallel runs are over
		for _, r := range []run{release01, stateful} {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				suite.play(t, r, url+"/mcp", known)
			})
			t.Run(r.name+"/session", func(t *testing.T) {
				t.Parallel()
				suite.play(t, r, newSession(t, url), known)
			})
		}
		address := newSession(t, url)
		if reason := refusesStateless(t, address); reason != "" {
			skipped[stateless.name] = true
			t.Run(stateless.name+"/session", func(t *testing.T) { t.Skip(reason) })
			return
		}
		t.Run(stateless.name+"/session", func(t *testing.T) {
			t.Parallel()
			suite.play(t, stateless, address, known)
		})
	})
	if t.Failed() {
		return // a run that broke off has not seen all that may fail
	}
	for _, e := range known.stale(skipped) {
		t.Errorf("baseline.txt: %s no longer fails; take the entry out", e)
	}
}

// A check is one of those that the suite writes down for a scenario.
type check struct {
	ID           string `json:"id"`
	Status       string `json:"status"`
	Description  string `json:"description"`
	ErrorMessage string `json:"errorMessage"`
}

// bad reports whether the server has not done what it must or should. INFO and SKIPPED say that there was nothing to check.
func (c check) bad() bool {
	return c.Status != "SUCCESS" && c.Status != "INFO" && c.Status != "SKIPPED"
}

// play runs the suite against an address and holds all checks to the baseline.
func (s suite) play(t *testing.T, r run, address string, known *baseline) {
	scored := func(string) bool { return true }
	if r.scored != "" {
		required := s.required(t, r)
		scored = func(scenario string) bool { return required[scenario] }
	}
	results := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	args := append([]string{filepath.Join(s.modules, r.release, "dist", "index.js"), "server", "--url", address, "--output-dir", results}, r.args...)
	cmd := exec.CommandContext(ctx, s.node, args...)
	cmd.Dir = results
	cmd.Env = kit.Environ()
	cmd.WaitDelay = time.Second
	out, runErr := cmd.CombinedOutput()

	passed, failed, excused, unscored := 0, 0, 0, 0
	played := readResults(t, results)
	for scenario, checks := range played {
		for _, c := range checks {
			switch {
			case c.Status == "SUCCESS":
				passed++
			case !c.bad():
			case known.excuses(entry{r.name, scenario, c.ID}):
				excused++
			case !scored(scenario):
				unscored++
				t.Logf("not scored: %s: %s: %s", scenario, c.ID, c.ErrorMessage)
			default:
				failed++
				t.Errorf("%s: %s is a %s: %s\n%s", scenario, c.ID, c.Status, c.Description, c.ErrorMessage)
			}
		}
	}
	began := runningPattern.FindAllSubmatch(out, -1)
	whole := len(began) > 0 && passed > 0
	for _, m := range began {
		if _, ok := played[string(m[1])]; !ok {
			t.Errorf("%s: broke off", m[1])
			whole = false
		}
	}
	t.Logf("%s on %s: %d scenarios; checks: %d passed, %d failed, %d known to fail, %d not scored",
		r.name, address, len(played), passed, failed, excused, unscored)

	// The suite's exit code is 1 when it has seen failures, be they known or not.
	var exit *exec.ExitError
	if runErr != nil && (!errors.As(runErr, &exit) || exit.ExitCode() != 1) {
		whole = false
	}
	if !whole {
		t.Errorf("the suite did not run to its end: %v\n%v\n%s", errors.Join(runErr, ctx.Err()), cmd, out)
	}
}

var (
	runningPattern = regexp.MustCompile(`(?m)^=== Running scenario: (\S+) ===`)
	resultsPattern = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)
)

// readResults reads what the suite has written down, by scenario: a directory for each, named after it and the time.
func readResults(t *testing.T, dir string) map[string][]check {
	played := map[string][]check{}
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		m := resultsPattern.FindStringSubmatch(name)
		if m == nil {
			t.Errorf("results of an unknown kind: %s", name)
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var checks []check
		if err := json.Unmarshal(text, &checks); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		played[m[1]] = append(played[m[1]], checks...)
	}
	return played
}

// required reads which scenarios a revision scores: the list under "server" in the suite's file of it.
func (s suite) required(t *testing.T, r run) map[string]bool {
	text, err := os.ReadFile(filepath.Join(s.modules, r.release, "requirements", r.scored+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	scenarios := map[string]bool{}
	inServer := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		switch scenario, isItem := strings.CutPrefix(strings.TrimSpace(line), "- "); {
		case line != "" && line[0] != ' ' && line[0] != '#' && line[0] != '-':
			inServer = line == "server:"
		case inServer && isItem:
			scenarios[scenario] = true
		}
	}
	const fewest = 30 // there are 37 for 2026-07-28, and the list is frozen
	if len(scenarios) < fewest {
		t.Fatalf("read %d scored scenarios of %s; want %d at least", len(scenarios), r.scored, fewest)
	}
	return scenarios
}

// An entry is a check that is known to fail.
type entry struct{ run, scenario, check string }

func (e entry) String() string { return e.run + " " + e.scenario + " " + e.check }

// A baseline is what is known to fail. Safe for concurrent use.
type baseline struct {
	mu    sync.Mutex
	known map[entry]bool // true once it has failed
}

func (b *baseline) excuses(e entry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.known[e]; !ok {
		return false
	}
	b.known[e] = true
	return true
}

// stale lists the entries that have not failed, save those of runs that were skipped.
func (b *baseline) stale(skipped map[string]bool) []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	var unused []entry
	for e, failed := range b.known {
		if !failed && !skipped[e.run] {
			unused = append(unused, e)
		}
	}
	return unused
}

func readBaseline(t *testing.T) *baseline {
	text, err := os.ReadFile("baseline.txt")
	if err != nil {
		t.Fatal(err)
	}
	b := &baseline{known: map[entry]bool{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		what, reason, _ := strings.Cut(line, ": ")
		fields := strings.Fields(what)
		if len(fields) != 3 || strings.TrimSpace(reason) == "" {
			t.Fatalf("baseline.txt:%d: want a run, a scenario, a check, a colon and a reason", n)
		}
		e := entry{fields[0], fields[1], fields[2]}
		if _, twice := b.known[e]; twice {
			t.Errorf("baseline.txt:%d: %s is there twice", n, e)
		}
		if e.run != release01.name && e.run != stateful.name && e.run != stateless.name {
			t.Errorf("baseline.txt:%d: there is no run %s", n, e.run)
		}
		b.known[e] = false
	}
	return b
}

// TestBaseline holds the file to its form on machines that do not run the suite too.
func TestBaseline(t *testing.T) { readBaseline(t) }

// TestLockFileNamesNoRegistry: whoever installs takes the packages from the registry of their own configuration.
func TestLockFileNamesNoRegistry(t *testing.T) {
	text, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(`"resolved"`)) {
		t.Error(`package-lock.json has "resolved" addresses; write it anew beside .npmrc: rm package-lock.json; npm install --package-lock-only`)
	}
}

// newSession opens a session and returns the address that its trainer would give to an agent.
func newSession(t *testing.T, url string) string {
	var session struct {
		ID string `json:"session_id"`
	}
	var agent struct {
		URL string `json:"url"`
	}
	ask(t, url+"/mcp", "openenv/session/create", map[string]any{}, &session)
	ask(t, url+"/mcp", "openenv/session/agent", map[string]any{"session_id": session.ID}, &agent)
	return agent.URL
}

// refusesStateless says why a run of the stateless revision is of no use, or "" if the address serves it.
func refusesStateless(t *testing.T, address string) string {
	const version = "2026-07-28"
	body, status := post(t, address, "server/discover", map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion":    version,
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
	}}, http.Header{"Mcp-Protocol-Version": {version}, "Mcp-Method": {"server/discover"}})
	if status == http.StatusOK && bytes.Contains(body, []byte(`"supportedVersions"`)) && bytes.Contains(body, []byte(`"`+version+`"`)) {
		return ""
	}
	return fmt.Sprintf("the server does not serve %s on a handle yet: server/discover is answered %d %.200s", version, status, body)
}

func ask(t *testing.T, address, method string, params, result any) {
	t.Helper()
	body, status := post(t, address, method, params, nil)
	var answer struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error != nil || answer.Result == nil {
		t.Fatalf("%s: %d %s", method, status, body)
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		t.Fatalf("%s: %v: %s", method, err, body)
	}
}
