package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"
)

// A studio calls tools as a session does, and records what they come to.
type studio struct {
	t      testing.TB
	out    bytes.Buffer
	record *Recording
	player *Player
}

func newStudio(t testing.TB) *studio {
	s := &studio{t: t}
	r, err := NewRecorder(&s.out)
	if err != nil {
		t.Fatal(err)
	}
	s.record = r.Session()
	return s
}

// replaying is a studio whose tools are those of a set in simulation.
func replaying(t testing.TB, set *Set[*desk]) *studio {
	t.Helper()
	s := newStudio(t)
	if err := set.Register(newServer(), ModeSimulation); err != nil {
		t.Fatal(err)
	}
	s.player = set.Replays(ModeSimulation).Player()
	return s
}

func (s *studio) call(tool Tool[*desk], args string) (*mcp.CallToolResult, error) {
	s.t.Helper()
	ctx := WithPlayer(WithEnvironment(context.Background(), &desk{}), s.player)
	res, err := serve(tool.spec.Name, tool.handlers[ModeSimulation])(ctx, &mcp.CallToolRequest{
		Params: &mcp.CallToolParamsRaw{Name: tool.spec.Name, Arguments: json.RawMessage(args)},
	})
	var fault *Error
	if errors.As(err, &fault); err != nil && fault == nil {
		s.t.Fatalf("%T is no *Error", err)
	}
	if failed := s.record.Call(tool.spec, []byte(args), res, fault); failed != nil {
		s.t.Fatal(failed)
	}
	return res, err
}

// text is what a call came to, for comparisons.
func (s *studio) text(tool Tool[*desk], args string) string {
	s.t.Helper()
	res, err := s.call(tool, args)
	var v any = res
	if err != nil {
		v = map[string]any{"type": err.(*Error).Type, "message": err.Error(), "fields": err.(*Error).Fields}
	}
	b, failed := json.Marshal(v)
	if failed != nil {
		s.t.Fatal(failed)
	}
	return string(b)
}

// lines are the recording's, without the header.
func (s *studio) lines() []string {
	return strings.Split(strings.TrimSpace(s.out.String()), "\n")[1:]
}

func (s *studio) cassette() *Cassette {
	s.t.Helper()
	c := ReadCassette(bytes.NewReader(s.out.Bytes()))
	if err := c.Err(); err != nil {
		s.t.Fatalf("%v in\n%s", err, s.out.String())
	}
	return c
}

// manyKinds has a field of each kind that survives its own JSON.
type manyKinds struct {
	B  bool             `json:"b"`
	I  int64            `json:"i"`
	U  uint64           `json:"u"`
	F  float64          `json:"f"`
	G  float32          `json:"g"`
	S  string           `json:"s"`
	P  *int             `json:"p"`
	L  []string         `json:"l"`
	A  [2]int8          `json:"a"`
	M  map[string][]int `json:"m"`
	K  map[int]bool     `json:"k"`
	X  json.RawMessage  `json:"x"`
	N  json.Number      `json:"n"`
	Q  int64            `json:"q,string"`
	Y  []byte           `json:"y"`
	T  time.Time        `json:"t"`
	D  time.Duration    `json:"d"`
	E  *big.Int         `json:"e"`
	O  string           `json:"o,omitempty"`
	In *manyInner       `json:"in"`
	manyInner
}

type manyInner struct {
	Deep []map[string]float64 `json:"deep"`
	Any  any                  `json:"any"`
}

func drawMany(t *rapid.T) manyKinds {
	inner := func(label string) manyInner {
		return manyInner{
			Deep: rapid.SliceOfN(rapid.MapOfN(rapid.String(), rapid.Float64(), 0, 3), 0, 3).Draw(t, label+" deep"),
			Any: rapid.OneOf(rapid.Just[any](nil), rapid.Just[any](true), rapid.Map(rapid.String(), func(s string) any { return s }),
				rapid.Map(rapid.Float64(), func(f float64) any { return f })).Draw(t, label+" any"),
		}
	}
	v := manyKinds{
		B: rapid.Bool().Draw(t, "b"), I: rapid.Int64().Draw(t, "i"), U: rapid.Uint64().Draw(t, "u"),
		F: rapid.Float64().Draw(t, "f"), G: rapid.Float32().Draw(t, "g"), S: rapid.String().Draw(t, "s"),
		P: rapid.Ptr(rapid.Int(), true).Draw(t, "p"), L: rapid.SliceOf(rapid.String()).Draw(t, "l"),
		A: [2]int8{rapid.Int8().Draw(t, "a0"), rapid.Int8().Draw(t, "a1")},
		M: rapid.MapOfN(rapid.String(), rapid.SliceOfN(rapid.Int(), 0, 3), 0, 3).Draw(t, "m"),
		K: rapid.MapOfN(rapid.Int(), rapid.Bool(), 0, 3).Draw(t, "k"),
		X: json.RawMessage(rapid.SampledFrom([]string{`null`, `{"b":1.0,"a":[ 1e2,9007199254740993]}`, `"\u0061\n"`, "[\n1]"}).Draw(t, "x")),
		N: json.Number(rapid.SampledFrom([]string{"0", "-0", "1.50", "1E+2", "12345678901234567890.5"}).Draw(t, "n")),
		Q: rapid.Int64().Draw(t, "q"), Y: rapid.SliceOf(rapid.Byte()).Draw(t, "y"),
		T: time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "t"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC(),
		D: time.Duration(rapid.Int64().Draw(t, "d")), O: rapid.String().Draw(t, "o"), manyInner: inner("promoted"),
	}
	if rapid.Bool().Draw(t, "has e") {
		v.E = new(big.Int).Mul(big.NewInt(v.I), big.NewInt(v.I))
	}
	if rapid.Bool().Draw(t, "has in") {
		in := inner("inner")
		v.In = &in
	}
	return v
}

// TestRecordedReplaysToEqual: what is recorded of random values comes back byte for byte, in either order, whether or not
// the arguments are spelled as they were.
func TestRecordedReplaysToEqual(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.Custom(drawMany), 1, 3).Draw(rt, "values")
		at := 0
		live := func(*desk, context.Context, struct {
			N int     `json:"n" default:"7"`
			F float64 `json:"f,omitempty"`
		}) (manyKinds, error) {
			at++
			return values[at-1], nil
		}
		recording := newStudio(t)
		var want []string
		for range values {
			want = append(want, recording.text(Func("t", "", live), `{"f":1.0}`))
		}
		for _, c := range []*Cassette{recording.cassette(), recording.cassette().Strict()} {
			tool := Modes("t", "", Simulation(Replay(c, live)))
			s := replaying(t, New(tool))
			for range 2 {
				var got []string
				for range values {
					got = append(got, s.text(tool, ` { "n" : 70e-1 , "f" : 1 } `))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					rt.Fatalf("(-live +replayed):\n%s\n%s", diff, recording.out.String())
				}
				s.player.Rewind()
			}
		}
	})
}

func TestCanonicalNumbers(t *testing.T) {
	for _, same := range [][]string{
		{"5", "5.0", "50e-1", "0.5E1", "5.00e+0"}, {"0", "-0", "0.0", "0e99", "-0.000"}, {"-120", "-1.2e2", "-12E1"},
		{"9007199254740993", "9007199254740993.0"}, {"0.1", "1e-1", "0.10"}, {"1e300", "10E299"}, {"100", "1e2"},
	} {
		for _, s := range same {
			if got, want := canonicalNumber(s), canonicalNumber(same[0]); got != want {
				t.Errorf("%s is %s, and %s is %s", s, got, same[0], want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		was, _ := new(big.Rat).SetString(s)
		got := canonicalNumber(s)
		now, ok := new(big.Rat).SetString(got)
		if !ok || was.Cmp(now) != 0 || canonicalNumber(got) != got {
			t.Errorf("%s became %s", s, got)
		}
	})
}

// A brokenDisk takes n writes.
type brokenDisk struct{ n int }

var errFull = errors.New("no space left")

func (d *brokenDisk) Write(b []byte) (int, error) {
	if d.n--; d.n < 0 {
		return 3, errFull
	}
	return len(b), nil
}

func TestRecorderTellsOfAFailureOnce(t *testing.T) {
	if _, err := NewRecorder(&brokenDisk{}); !errors.Is(err, errFull) {
		t.Errorf("at the start: %v", err)
	}
	r, err := NewRecorder(&brokenDisk{n: 2})
	if err != nil {
		t.Fatal(err)
	}
	spec := &mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}
	var told []error
	for range 4 {
		if err := r.Session().Call(spec, nil, FailureResult("no"), nil); err != nil {
			told = append(told, err)
		}
	}
	if len(told) != 1 || !errors.Is(told[0], errFull) {
		t.Errorf("told %v", told)
	}
}

func TestRecorderFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	spec := &mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}
	for range 2 { // the second continues
		r, err := OpenRecorder(path)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			s := r.Session()
			wg.Go(func() {
				for i := range 20 {
					if err := s.Call(spec, fmt.Appendf(nil, `{"i":%d}`, i), FailureResult(strings.Repeat("x", 5000)), nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := r.Session().Call(spec, nil, FailureResult("late"), nil); err != nil {
			t.Errorf("after the end: %v", err)
		}
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want a file for its owner alone", st.Mode(), err)
	}
	c := OpenCassette(path)
	if c.Err() != nil || len(c.tape.entries) != 2*8*20 {
		t.Fatalf("%d calls, %v", len(c.tape.entries), c.Err())
	}
	next := map[[2]int]int{}
	for _, e := range c.tape.entries { // whole, and each session's in order
		id := [2]int{e.run, e.Session}
		if want := fmt.Sprintf(`{"i":%d}`, next[id]); string(e.Arguments) != want {
			t.Fatalf("line %d: %s, want %s", e.line, e.Arguments, want)
		}
		next[id]++
	}
	if len(next) != 16 {
		t.Errorf("%d sessions, want 8 of each run", len(next))
	}
	for text, want := range map[string]string{
		"hello\n":                    "no recording",
		`{"openenv_cassette":2}`:     "version 2",
		cassetteHead + `{"session":`: "in the middle of a line",
	} {
		other := filepath.Join(t.TempDir(), "other")
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenRecorder(other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if got, _ := os.ReadFile(other); string(got) != text {
			t.Errorf("%q was changed to %q", text, got)
		}
	}
}

// A file has one recorder at a time, and is as it was where one has recorded nothing.
func TestRecordersDoNotShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	first, err := OpenRecorder(path)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := OpenRecorder(path); !locks {
		t.Logf("no locks here: %v, %v", second, err)
	} else if !errors.Is(err, errTaken) || !strings.HasPrefix(err.Error(), path+": it is being recorded into by another process") {
		t.Errorf("a second recorder: %v", err)
	}
	spec := &mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}
	if err := errors.Join(first.Session().Call(spec, nil, FailureResult("x"), nil), first.Close()); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenRecorder(path)
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(was) {
		t.Errorf("it has %q, %v; want %q", now, err, was)
	}
	none := filepath.Join(t.TempDir(), "none", "calls.jsonl")
	if _, err := OpenRecorder(none); !errors.Is(err, os.ErrNotExist) || !strings.HasSuffix(err.Error(), "mkdir -p "+filepath.Dir(none)) {
		t.Errorf("no directory: %v", err)
	}
}

const recordIn = "OPENENV_TEST_RECORD_IN"

// TestRecordersOfProcesses: the file of a recorder is refused to another process, until the first has ended, however that was.
func TestRecordersOfProcesses(t *testing.T) {
	if path := os.Getenv(recordIn); path != "" { // the other process
		_, err := OpenRecorder(path)
		fmt.Printf("opened: %v\n", err)
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	if !locks {
		t.Skip("no locks here")
	}
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	other := exec.Command(os.Args[0], "-test.run=^TestRecordersOfProcesses$")
	other.Env = append(os.Environ(), recordIn+"="+path)
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "opened: <nil>\n" {
		t.Errorf("the other process: %q, %v", line, err)
	}
	if _, err := OpenRecorder(path); !errors.Is(err, errTaken) {
		t.Errorf("while it records: %v", err)
	}
	_ = other.Process.Kill()
	_ = other.Wait()
	r, err := OpenRecorder(path)
	if err != nil {
		t.Fatalf("after it was killed: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
