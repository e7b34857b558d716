package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type asked struct {
	Q string `json:"q,omitempty"`
}

func askLive(*desk, context.Context, asked) (string, error)   { panic("the live function was called") }
func otherLive(*desk, context.Context, asked) (string, error) { panic("the live function was called") }

// tapeOf is a cassette of calls spelled "session/episode tool q answer".
func tapeOf(t *testing.T, calls ...string) *Cassette {
	t.Helper()
	var b strings.Builder
	b.WriteString(cassetteHead)
	for _, call := range calls {
		var session, episode int
		var tool, q, answer string
		if _, err := fmt.Sscanf(call, "%d/%d %s %s %s", &session, &episode, &tool, &q, &answer); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, `{"session":%d,"episode":%d,"tool":%q,"arguments":{"q":%q},"value":%q}`+"\n", session, episode, tool, q, answer)
	}
	c := ReadCassette(strings.NewReader(b.String()))
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// A theatre replays the tools ask and other, but not third.
type theatre struct {
	*studio
	tools map[string]Tool[*desk]
}

func newTheatre(t *testing.T, c *Cassette) *theatre {
	t.Helper()
	th := &theatre{tools: map[string]Tool[*desk]{
		"ask":   Modes("ask", "", Simulation(Replay(c, askLive))),
		"other": Modes("other", "", Simulation(Replay(c, otherLive))),
		"third": Func("third", "", func(*desk, context.Context, asked) (string, error) { return "live", nil }),
	}}
	th.studio = replaying(t, New(th.tools["ask"], th.tools["other"], th.tools["third"]))
	return th
}

// play calls "tool q", one after another, and gives the answers, or the words of the errors.
func (th *theatre) play(calls ...string) (answers []string) {
	th.t.Helper()
	for _, call := range calls {
		tool, q, _ := strings.Cut(call, " ")
		res, err := th.call(th.tools[tool], `{"q":"`+q+`"}`)
		if err != nil {
			answers = append(answers, err.Error())
			continue
		}
		answers = append(answers, res.Content[0].(*mcp.TextContent).Text)
	}
	return answers
}

func TestFreeOrder(t *testing.T) {
	c := tapeOf(t,
		"1/0 ask a one", "2/0 ask a uno", "2/0 ask b B", "1/0 ask a two", "2/0 ask a due", "2/0 ask a tre", "3/1 other a O", "1/1 ask a eins")
	for range 2 {
		th := newTheatre(t, c)
		for range 2 {
			got := th.play("other a", "ask b", "ask a", "third x", "ask a", "ask a", "ask a", "ask b", "ask z", "ask a")
			none := `the recording has no call of tool "ask" with the arguments {"q":"z"}; call it as it was recorded, or record this call`
			if diff := cmp.Diff([]string{"O", "B", "one", "live", "two", "tre", "tre", "B", none, "tre"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			th.player.Rewind()
		}
	}
	th := newTheatre(t, tapeOf(t))
	_, err := th.call(th.tools["ask"], `{}`)
	var missing *NotRecordedError
	if !errors.As(err, &missing) || missing.Tool != "ask" || missing.Recorded != 0 || string(missing.Arguments) != `{}` {
		t.Errorf("%#v", err)
	}
	if typed, ok := errors.AsType[*Error](err); !ok || typed.Type != ExecutionError || typed.Message != `the recording has no call of tool "ask"; record one` {
		t.Errorf("%#v", err)
	}
}

func TestStrictOrder(t *testing.T) {
	c := tapeOf(t,
		"1/0 ask a one", "2/0 ask a uno", "1/0 third t T", "1/0 other b two", "2/0 ask c tre", "1/0 ask a three").Strict()
	th := newTheatre(t, c)
	for _, test := range []struct{ calls, want []string }{
		{[]string{"ask a", "other b", "third x", "ask a"}, []string{"one", "two", "live", "three"}},
		{[]string{"ask a", "ask c"}, []string{"one", "tre"}},
		{[]string{"other b", "ask a"}, []string{
			`the call diverges from the recording (line 2): tool "other" with {"q":"b"} was not recorded here; the server's log has what was`, "one"}},
		{[]string{"ask a", "ask a", "other b", "other b"}, []string{"one",
			`the call diverges from the recording (line 5): tool "ask" with {"q":"a"} was not recorded here; the server's log has what was`, "two",
			`the call diverges from the recording (line 7): tool "other" with {"q":"b"} was not recorded here; the server's log has what was`}},
		{[]string{"ask a", "ask c", "ask c"}, []string{"one", "tre",
			`the call diverges from the recording: the recorded episode is over (line 6), got tool "ask" with {"q":"c"}; reset to begin again`}},
	} {
		if diff := cmp.Diff(test.want, th.play(test.calls...)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.calls, diff)
		}
		th.player.Rewind()
	}
	_, err := th.call(th.tools["ask"], `{"q":"z"}`)
	var d *DivergenceError
	if !errors.As(err, &d) {
		t.Fatalf("%#v", err)
	}
	want := &DivergenceError{"ask", []byte(`{"q":"z"}`), "ask", []byte(`{"q":"a"}`), 2}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := d.Error(); got != `the call diverges from the recording (line 2): want tool "ask" with {"q":"a"}, got tool "ask" with {"q":"z"}` {
		t.Errorf("the log has %s", got)
	}
	if got := newTheatre(t, c.Free()).play("other b", "ask c"); strings.Join(got, " ") != "two tre" {
		t.Errorf("%q", got)
	}
}

func TestReplayedFailuresAndErrors(t *testing.T) {
	live := func(_ *desk, _ context.Context, in asked) (string, error) {
		switch in.Q {
		case "fail":
			return "", fmt.Errorf("asking: %w", Fail("no such page"))
		case "invalid":
			return "", fmt.Errorf("asking: %w", &InputError{[]FieldError{{"value_error", []any{"q", 3}, "no", map[string]any{"a": 1}}}})
		case "gone":
			return "", &Error{Type: TransportError, Message: "gone"}
		}
		return "", errors.New("dead")
	}
	s := newStudio(t)
	calls := []string{"fail", "invalid", "gone", "dead"}
	var want []string
	for _, q := range calls {
		want = append(want, s.text(Func("t", "", live), `{"q":"`+q+`"}`))
	}
	tool := Modes("t", "", Simulation(Replay(s.cassette(), live)))
	r := replaying(t, New(tool))
	for i, q := range calls {
		if got := r.text(tool, `{"q":"`+q+`"}`); got != want[i] {
			t.Errorf("%s, want %s", got, want[i])
		}
	}
}

func TestReplayErrorsOfAuthors(t *testing.T) {
	withValue := func(value string) *Cassette {
		return ReadCassette(strings.NewReader(cassetteHead + `{"session":1,"episode":0,"tool":"t","arguments":{},` + value + "}\n"))
	}
	path := filepath.Join(t.TempDir(), "none.jsonl")
	for _, test := range []struct {
		name string
		tool Tool[*desk]
		want string // "": it is fine
	}{
		{"nil cassette", Modes("t", "", Simulation(Replay(nil, askLive))), "the cassette is nil: make it with OpenCassette or ReadCassette"},
		{"nil and strict", Modes("t", "", Simulation(Replay((*Cassette)(nil).Strict(), askLive))), "the cassette is nil"},
		{"zero cassette", Modes("t", "", Simulation(Replay(&Cassette{}, askLive))), "the cassette is empty: make it"},
		{"no file", Modes("t", "", Simulation(Replay(OpenCassette(path), askLive))), path + ": there is no such file; record it with -mode production -record " + path},
		{"broken", Modes("t", "", Simulation(Replay(withValue(`"failure":5`).Strict(), askLive))), "the cassette: line 2: failure: a number does not fit string"},
		{"another type", Modes("t", "", Simulation(Replay(withValue(`"value":5`), askLive))), "line 2: the recorded value does not fit the type string"},
		{"too many members", Modes("t", "", Simulation(Replay(withValue(`"value":{"X":1,"Y":2,"Z":3}`), func(*desk, context.Context, None) (point, error) {
			return point{}, nil
		}))), `line 2: the recorded value {"X":1,"Y":2,"Z":3} would come back as {"X":1,"Y":2} from the type tools.point`},
		{"an interface", Modes("t", "", Simulation(Replay(withValue(`"value":{}`), func(*desk, context.Context, None) (struct{ E error }, error) {
			return struct{ E error }{}, nil
		}))), "the output type cannot be replayed"},
		{"a bound", Modes("t", "", Simulation(Replay(withValue(`"value":{"N":2}`), func(*desk, context.Context, None) (v struct {
			N int `maximum:"1"`
		}, err error) {
			return v, nil
		}))), "line 2: the recorded value cannot be returned again"},
		{"a value for a whole result", Modes("t", "", Simulation(Replay(withValue(`"value":[5]`), func(*desk, context.Context, None) (*mcp.CallToolResult, error) {
			return nil, nil
		}))), ""},
		{"a whole result for a value", Modes("t", "", Simulation(Replay(withValue(`"result":{"content":[],"structuredContent":{"result":"x"},"_meta":{"fastmcp":{"wrap_result":true}}}`), askLive))), ""},
		{"options", Modes("t", "", Simulation(Replay(withValue(`"value":5`), askLive))).With(Title("T")), "line 2: the recorded value does not fit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := New(test.tool)
			err := set.Register(newServer(), ModeSimulation)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if err := set.Register(newServer(), ModeProduction); err != nil {
				t.Errorf("in production: %v", err)
			}
		})
	}
	// A replay that its set cannot see is a failed call.
	fn := Replay(tapeOf(t), askLive)
	_, err := newTheatre(t, tapeOf(t)).call(Func("alone", "", fn), `{}`)
	if err == nil || !strings.Contains(err.Error(), "its set does not know, since it is not an argument of tools.Simulation; replayed are ask, other") {
		t.Error(err)
	}
	if _, err := invoke(t, Func("t", "", fn), &desk{}, `{}`); err == nil || !strings.Contains(err.Error(), "outside of a session") {
		t.Error(err)
	}
}

func TestCassettesThatAreRefused(t *testing.T) {
	line := func(rest string) string {
		return cassetteHead + `{"session":1,"episode":0,"tool":"t","arguments":{}` + rest + "}\n"
	}
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "line 1: it is empty"},
		{"no header", cassetteLines[0] + "\n", "line 1: want the header"},
		{"another version", `{"openenv_cassette":2}` + "\n", "line 1: it is of version 2, and only 1 is understood"},
		{"another version later", cassetteHead + cassetteLines[0] + "\n" + `{"openenv_cassette":3}` + "\n", "line 3: it is of version 3"},
		{"an unknown member of the header", `{"openenv_cassette":1,"x":1}` + "\n", "line 1: want the header"},
		{"a blank line", cassetteHead + "\n", "line 2: invalid JSON"},
		{"a member twice", line(`,"value":1,"value":2`), `line 2: invalid JSON: member "value" appears twice`},
		{"an unknown member", line(`,"value":1,"x":1`), "line 2: x: unknown member"},
		{"a member by case", line(`,"Value":1`), "line 2: Value: unknown member"},
		{"no outcome", line(""), "line 2: want one of value, result, failure and error, got 0 of them"},
		{"two outcomes", line(`,"value":1,"failure":""`), "got 2 of them"},
		{"an error of another type", line(`,"error":{"type":"x","message":""}`), `line 2: error type "x"`},
		{"no object of arguments", strings.Replace(line(`,"value":1`), "{}", "[]", 1), "line 2: want arguments, an object"},
		{"no session", strings.Replace(line(`,"value":1`), `"session":1`, `"session":0`, 1), "line 2: want a session from 1 on"},
		{"no tool", strings.Replace(line(`,"value":1`), `"tool":"t"`, `"tool":""`, 1), "line 2: tool"},
		{"a result of another form", line(`,"result":{"content":5}`), "line 2: result"},
		{"not whole", strings.TrimSuffix(line(`,"value":1`), "\n"), "line 2: it does not end with a line break, so it may not be whole; remove this last line, and record its call again"},
		{"too deep", line(`,"value":` + strings.Repeat("[", maxCassetteDepth) + strings.Repeat("]", maxCassetteDepth)), "line 2: invalid JSON: objects and arrays nest deeper"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := ReadCassette(strings.NewReader(test.text)).Err()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	if long := ReadCassette(&endless{head: cassetteHead}).Err(); !errors.Is(long, errLongLine) {
		t.Errorf("a line without end: %v", long)
	}
}

// endless is a line that does not end.
type endless struct{ head string }

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.head)
	e.head = e.head[n:]
	for i := n; i < len(b); i++ {
		b[i] = ' '
	}
	return len(b), nil
}

// TestCassetteErrorsNameTheFile: whatever is wrong with a file, and however it is found, its name and line are told.
func TestCassetteErrorsNameTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	line := `{"session":1,"episode":0,"tool":"ask","arguments":{},`
	for file, test := range map[string]struct {
		text string
		line int
	}{
		"testdata/empty.jsonl":  {"", 1},
		"testdata/broken.jsonl": {cassetteHead + line + `"value":`, 2},
		"testdata/other.jsonl":  {cassetteHead + line + `"value":"x"}` + "\n" + line + `"value":5}` + "\n", 3},
		"testdata/none.jsonl":   {line: 0},
		"testdata":              {line: 1},
	} {
		if file != "testdata" && test.line > 0 {
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []*Cassette{OpenCassette(file), OpenCassette(file).Strict(), OpenCassette(file).Strict().Free()} {
			err := New(Modes("ask", "", Simulation(Replay(c, askLive)))).Register(newServer(), ModeSimulation)
			at, ok := errors.AsType[*CassetteError](err)
			if !ok || at.Name != file || at.Line != test.line || strings.Count(err.Error(), file) > 2 {
				t.Errorf("%s: %#v, %v", file, at, err)
			}
			if missing := errors.Is(err, os.ErrNotExist); missing != (test.line == 0) ||
				missing && !(strings.Contains(err.Error(), "in the working directory /") && strings.HasSuffix(err.Error(), "; record it with -mode production -record "+file)) {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// A file is not recorded into by who replays it, by whatever name either has it.
func TestReplayedFilesAreNotRecordedInto(t *testing.T) {
	t.Chdir(t.TempDir())
	open := func(name string) *Recorder {
		t.Helper()
		r, err := OpenRecorder(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	if err := open("calls.jsonl").Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("calls.jsonl", "link.jsonl"); err != nil {
		t.Skip(err)
	}
	set := New(Modes("ask", "", Simulation(Replay(OpenCassette("calls.jsonl").Strict(), askLive)), Production(askLive)))
	simulated, live := set.Replays(ModeSimulation), set.Replays(ModeProduction)
	same := open("link.jsonl")
	err := simulated.Recordable(same)
	if at, ok := errors.AsType[*CassetteError](err); !ok || at.Name != "calls.jsonl" || !strings.Contains(err.Error(), `tool "ask" replays it in this mode`) {
		t.Errorf("%v", err)
	}
	memory, err := NewRecorder(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(live.Recordable(same), simulated.Recordable(open("other.jsonl")), simulated.Recordable(memory), simulated.Recordable(nil)); err != nil {
		t.Error(err)
	}
}
