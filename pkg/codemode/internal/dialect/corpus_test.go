package dialect_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/dialect"
)

const corpus = "../../testdata"

// A snippet is a file of the corpus.
type snippet struct {
	name     string
	sections map[string]string
}

var marker = regexp.MustCompile(`(?m)^-- (\w+) --\n`)

func snippets(t testing.TB, dir string) (out []snippet) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus, dir, "*.txtar"))
	if err != nil || files == nil {
		t.Fatal("no corpus", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := snippet{strings.TrimSuffix(filepath.Base(file), ".txtar"), map[string]string{}}
		marks := marker.FindAllSubmatchIndex(data, -1)
		for i, m := range marks {
			end := len(data)
			if i+1 < len(marks) {
				end = marks[i+1][0]
			}
			s.sections[string(data[m[2]:m[3]])] = strings.TrimSuffix(string(data[m[1]:end]), "\n")
		}
		out = append(out, s)
	}
	return out
}

var builtins = strings.Fields(`None True False abs all any bool chr dict dir divmod enumerate fail filter float format hash hex bin oct int
	isinstance len list map max min next ord pow print range repr reversed round set sorted str sum tuple type zip
	json math re collections try_call call_tool list_tools help
	Exception ValueError KeyError IndexError TypeError RuntimeError ZeroDivisionError AssertionError ToolError`)

var hidden = strings.Fields(`$attr $method $callee $keywords $generator $neg $pos $invert $index $slice $setindex $del $key $add $iadd $sub $mul $and $or $ior $xor $lshift $rshift $eq $ne $lt $le $gt $ge $in $notin $div $floordiv $mod $pow $is $iter $fstring $format $concat $set $dict $unpack $enter
	$raise $try $BREAK $CONTINUE $returned $value $isreturn $cell $get $store $unset $stop`)

// environment is what the corpus's code finds.
func environment(t testing.TB) dialect.Options {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(corpus, "tools.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tools []struct{ Name string }
	if err := json.Unmarshal(data, &tools); err != nil {
		t.Fatal(err)
	}
	o := dialect.Options{Known: append([]string(nil), builtins...), Functions: map[string]string{}}
	for _, tool := range tools {
		name := strings.ReplaceAll(tool.Name, "-", "_")
		if name == "import" {
			name += "_"
		}
		o.Known = append(o.Known, name)
		o.Functions[tool.Name] = name
	}
	return o
}

// compile reports whether Starlark takes a program.
func compile(p *dialect.Program, o dialect.Options) error {
	known := map[string]bool{}
	for _, n := range append(append([]string(nil), hidden...), o.Known...) {
		known[n] = true
	}
	_, err := starlark.FileProgram(p.File, func(name string) bool { return known[name] })
	return err
}

type expected struct {
	Kind   string
	Line   int
	Column int
	Says   []string
	Limit  []string
}

func says(lines []string, e *dialect.Error, words []string) error {
	source := ""
	if e.Line >= 1 && e.Line <= len(lines) {
		source = lines[e.Line-1]
	}
	all := strings.ToLower(e.Message + "\n" + e.Hint + "\n" + source)
	for _, w := range words {
		if !strings.Contains(all, strings.ToLower(w)) {
			return fmt.Errorf("%v\ndoes not say %q", e, w)
		}
	}
	return nil
}

// TestCorpus: what the corpus expects to be refused is, with its words and at its place; all else is read and compiled.
func TestCorpus(t *testing.T) {
	o := environment(t)
	for _, s := range snippets(t, "snippets") {
		t.Run(s.name, func(t *testing.T) {
			var want expected
			if text := s.sections["error"]; text != "" {
				if err := json.Unmarshal([]byte(text), &want); err != nil {
					t.Fatal(err)
				}
			}
			p, err := dialect.Parse(s.sections["code"], o)
			if want.Kind != "syntax" {
				if err == nil {
					err = compile(p, o)
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *dialect.Error
			if !errors.As(err, &e) {
				t.Fatalf("%v", err)
			}
			if want.Line > 0 && e.Line != want.Line || want.Column > 0 && e.Column != want.Column {
				t.Errorf("%v; want line %d, column %d", e, want.Line, want.Column)
			}
			if err := says(strings.Split(s.sections["code"], "\n"), e, want.Says); err != nil {
				t.Error(err)
			}
			t.Log(e)
		})
	}
}

// expand writes out @{N*TEXT}. TEXT may hold braces, so it ends at the last } before the next @{ that leaves them in pairs.
func expand(code string) string { return expandAtMost(code, math.MaxInt) }

func expandAtMost(code string, most int) string {
	var b strings.Builder
	for {
		at := strings.Index(code, "@{")
		if at < 0 {
			return b.String() + code
		}
		count, rest, ok := strings.Cut(code[at+2:], "*")
		n, err := strconv.Atoi(count)
		if !ok || err != nil {
			b.WriteString(code[:at+2])
			code = code[at+2:]
			continue
		}
		b.WriteString(code[:at])
		text, after, _ := strings.Cut(rest, "}")
		if unquoted, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`); err == nil {
			text = unquoted
		}
		b.WriteString(strings.Repeat(text, min(n, most)))
		code = after
	}
}

// codeLimit is the size of code that a run refuses before it is read.
const codeLimit = 256 << 10

// TestEscapes: each attempt is read and compiled, or refused as it may be, and soon.
func TestEscapes(t *testing.T) {
	o := environment(t)
	for _, s := range snippets(t, "escape") {
		t.Run(s.name, func(t *testing.T) {
			code := expand(s.sections["code"])
			if len(code) > codeLimit {
				t.Skip("refused for its size")
			}
			begun := time.Now()
			p, err := dialect.Parse(code, o)
			if err == nil {
				err = compile(p, o)
			}
			if d := time.Since(begun); d > 2*time.Second {
				t.Errorf("took %v", d)
			}
			if err == nil {
				return
			}
			var e *dialect.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			for _, line := range strings.Split(s.sections["ends"], "\n") {
				var end struct{ Error *expected }
				if err := json.Unmarshal([]byte(line), &end); err != nil {
					t.Fatal(err)
				}
				if end.Error == nil {
					continue
				}
				for _, limit := range end.Error.Limit {
					if limit == e.Limit {
						return
					}
				}
				if end.Error.Kind == "syntax" && (end.Error.Line == 0 || end.Error.Line == e.Line) && says(strings.Split(code, "\n"), e, end.Error.Says) == nil {
					return
				}
			}
			t.Errorf("%v\nis none of %s", e, s.sections["ends"])
		})
	}
}
