package codemodetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

// A Snippet is a piece of code as a model writes it, and what must come of it.
type Snippet struct {
	Name   string // of its file, without the extension
	Code   string
	Result json.RawMessage // nil where it must fail
	Stdout string
	Calls  []Call // those that reached a tool
	Error  *Fault // nil where it must not fail
}

// A Fault is how code must fail.
type Fault struct {
	Kind   codemode.Kind `json:"kind"`
	Line   int           `json:"line"`   // 0: any
	Column int           `json:"column"` // 0: any
	Says   []string      `json:"says"`   // what message, hint and source line must hold together, by any case
	Tool   string        `json:"tool"`
	Type   string        `json:"type"`
}

// An Escape is code that wants more than is due, and the ends it may come to.
type Escape struct {
	Name string
	Code string
	Ends []End // the one to prefer first
}

// An End is one that an escape may come to: a result, or an error.
type End struct {
	Result json.RawMessage `json:"result"` // nil: an error
	Error  *struct {
		Kind  codemode.Kind `json:"kind"`
		Limit []string      `json:"limit"` // any of them
		Line  int           `json:"line"`
		Says  []string      `json:"says"`
	} `json:"error"`
}

// Snippets reads the snippets of a corpus, by name.
func Snippets(dir string) ([]Snippet, error) {
	return read(filepath.Join(dir, "snippets"), func(name string, sections map[string]string) (Snippet, error) {
		s := Snippet{Name: name, Code: sections["code"], Stdout: sections["stdout"]}
		for line := range strings.Lines(sections["calls"]) {
			var c Call
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				return s, err
			}
			s.Calls = append(s.Calls, c)
		}
		if text, ok := sections["error"]; ok {
			return s, json.Unmarshal([]byte(text), &s.Error)
		}
		s.Result = json.RawMessage(strings.TrimSpace(sections["result"]))
		return s, nil
	})
}

// Escapes reads the escapes of a corpus, by name.
func Escapes(dir string) ([]Escape, error) {
	return read(filepath.Join(dir, "escape"), func(name string, sections map[string]string) (Escape, error) {
		e := Escape{Name: name, Code: expand(sections["code"])}
		for line := range strings.Lines(sections["ends"]) {
			var end End
			if err := json.Unmarshal([]byte(line), &end); err != nil {
				return e, err
			}
			e.Ends = append(e.Ends, end)
		}
		return e, nil
	})
}

func read[T any](dir string, parse func(name string, sections map[string]string) (T, error)) ([]T, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no .txtar files: pass the directory of the corpus", dir)
	}
	var all []T
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		one, err := parse(strings.TrimSuffix(filepath.Base(f), ".txtar"), sections(string(text)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		all = append(all, one)
	}
	return all, err
}

var header = regexp.MustCompile(`(?m)^-- (\w+) --\n`)

func sections(text string) map[string]string {
	all := map[string]string{}
	places := header.FindAllStringSubmatchIndex(text, -1)
	for i, at := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		all[text[at[2]:at[3]]] = text[at[1]:end]
	}
	return all
}

var repeated = regexp.MustCompile(`@\{([0-9]+)\*(.*?)\}`)

var escaped = regexp.MustCompile(`\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}`)

// expand puts TEXT N times in the place of @{N*TEXT}.
func expand(code string) string {
	return repeated.ReplaceAllStringFunc(code, func(s string) string {
		m := repeated.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[1]) // digits, and few
		return strings.Repeat(escaped.ReplaceAllStringFunc(m[2], func(s string) string {
			c, _ := strconv.ParseUint(s[2:], 16, 32) // hexadecimal, as matched
			return string(rune(c))
		}), n)
	})
}
