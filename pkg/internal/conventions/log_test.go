package conventions

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	eventInSource = regexp.MustCompile(`"event", "([^"]*)"`)
	eventRow      = regexp.MustCompile("(?m)^\\| ((?:`[a-z_]+`(?:, )?)+) \\| (?:debug|info|warn|error)")
	quotedName    = regexp.MustCompile("`([a-z_]+)`")
)

// TestLogEventsAreDocumented: the events that the packages log are those of the table in docs/reliability.md.
func TestLogEventsAreDocumented(t *testing.T) {
	logged := map[string]bool{}
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range eventInSource.FindAllStringSubmatch(string(text), -1) {
				logged[m[1]] = true
			}
			if n := strings.Count(string(text), `"event",`); n != len(eventInSource.FindAllString(string(text), -1)) {
				t.Errorf("%s: an event's name is not a literal beside the word event", name)
			}
		}
	}
	doc, err := os.ReadFile(filepath.Join(root(t), "docs/reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range eventRow.FindAllStringSubmatch(string(doc), -1) {
		for _, m := range quotedName.FindAllStringSubmatch(row[1], -1) {
			if documented[m[1]] {
				t.Errorf("docs/reliability.md has %s twice", m[1])
			}
			documented[m[1]] = true
		}
	}
	if len(documented) == 0 {
		t.Fatal("docs/reliability.md has no table of events")
	}
	for event := range logged {
		if !documented[event] {
			t.Errorf("docs/reliability.md lacks the event %s", event)
		}
	}
	for event := range documented {
		if !logged[event] {
			t.Errorf("docs/reliability.md has the event %s, which nothing logs", event)
		}
	}
}

var testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)`")

// TestTestsOfTheDocumentsExist: tests that a document names are there.
func TestTestsOfTheDocumentsExist(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), "pkg/*/*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := filepath.Glob(filepath.Join(root(t), "pkg/internal/*/*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range append(files, inner...) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	docs, err := filepath.Glob(filepath.Join(root(t), "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range append(docs, filepath.Join(root(t), "README.md")) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(all.String(), "func "+m[1]+"(") {
				t.Errorf("%s names %s, which does not exist", filepath.Base(doc), m[1])
			}
		}
	}
}
