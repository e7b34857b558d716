package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

type key struct {
	Pass string `json:"pass" secret:"true"`
	How  string `json:"how,omitempty"`
}

// bare is JSON in which nothing is escaped that need not be.
func bare(v any) string {
	b, err := strictjson.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func escaped(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// unescaped is encoding/json's without its care for HTML.
func unescaped(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// TestSecretsInTheJSONOfOthers: results, failures and errors that quote the arguments as JSON do not give a secret away,
// whoever wrote that JSON.
func TestSecretsInTheJSONOfOthers(t *testing.T) {
	writers := map[string]func(any) string{
		"encoding/json": escaped, "unescaped": unescaped, "bare": bare,
		"quoted": func(v any) string { return fmt.Sprintf("%q", v) },
		"ascii":  func(v any) string { return escapeNonASCII(bare(v)) },
	}
	ways := map[string]func(said string) (*mcp.CallToolResult, error){
		"content": func(said string) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
		},
		"structured": func(said string) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]any{"said": said}}, nil
		},
		"failure": func(said string) (*mcp.CallToolResult, error) { return nil, Fail(said) },
		"error":   func(said string) (*mcp.CallToolResult, error) { return nil, errors.New(said) },
	}
	rapid.Check(t, func(rt *rapid.T) {
		letters := rapid.SampledFrom([]rune("<>&\"'\\/\b\f\n\r\t\x7f\u2028\u2029é😀ab1 "))
		pass := "(" + rapid.StringOfN(letters, 2, 9, -1).Draw(rt, "pass") + ")"
		for by, write := range writers {
			for way, answer := range ways {
				s := newStudio(t)
				tool := Func("open", "", func(_ *desk, _ context.Context, in key) (*mcp.CallToolResult, error) {
					return answer("opened with " + write(in.Pass) + " ;")
				})
				s.call(tool, bare(key{Pass: pass}))
				if want := `opened with \"[secret]\" ;`; !strings.Contains(s.out.String(), want) {
					rt.Errorf("%s in %s: %s, want %s", by, way, s.out.String(), want)
				}
			}
		}
	})
}

// counted has a place for a number of each kind, with the mark that a secret leaves there.
type counted struct {
	I   int              `json:"i"`
	F   float64          `json:"f"`
	P   *uint64          `json:"p"`
	O   int64            `json:"o,omitempty"`
	L   []int            `json:"l"`
	M   map[string]int64 `json:"m"`
	N   json.Number      `json:"n,omitempty"`
	B   *big.Int         `json:"b"`
	Any any              `json:"any"`
	S   string           `json:"s"`
}

func countedOf(n int64) counted {
	u := uint64(n)
	return counted{int(n), float64(n), &u, n, []int{1, int(n)}, map[string]int64{"a": n}, json.Number(fmt.Sprint(n)), big.NewInt(n),
		map[string]any{"x": n}, fmt.Sprintf("it is %d, %v or %v", n, float64(n), escaped(float64(n)))}
}

// TestSecretNumbersRepeated: a secret number, or a secret string that is one, is not recorded where it is repeated as a
// number, however either is spelled. What was typed is replayed with zero values.
func TestSecretNumbersRepeated(t *testing.T) {
	type numbers struct {
		Pin  json.Number `json:"pin,omitempty" secret:"true"`
		Word string      `json:"word,omitempty" secret:"true"`
		N    float64     `json:"n,omitempty"`
	}
	typed := func(*desk, context.Context, numbers) (counted, error) { return countedOf(9876540), nil }
	single := func(*desk, context.Context, numbers) (int, error) { return 9876540, nil }
	whole := func(*desk, context.Context, numbers) (*mcp.CallToolResult, error) {
		size := int64(9876540)
		return &mcp.CallToolResult{
			Content:           []mcp.Content{&mcp.ResourceLink{URI: "a:b", Name: "a", Size: &size, Meta: mcp.Meta{"l": []any{size}}}},
			StructuredContent: map[string]any{"n": size, "l": []any{-size}},
			Meta:              mcp.Meta{"n": size},
		}, nil
	}
	for _, args := range []string{
		`{"pin":9876540,"n":9876540}`, `{"pin":9876540.0,"n":9.87654e6}`, `{"pin":9.87654E+6,"n":9876540}`, `{"pin":-9876540,"n":9876540}`,
		`{"word":"9876540","n":9876540}`, `{"word":"009876540","n":9876540.0}`, `{"word":"9876540.00","n":98765400e-1}`,
	} {
		s := newStudio(t)
		s.call(Func("typed", "", typed), args)
		s.call(Func("single", "", single), args)
		s.call(Func("whole", "", whole), args)
		s.call(Func("later", "", single), `{"n":9876540}`)
		for _, form := range []string{"987654", "9.87654"} {
			if strings.Contains(s.out.String(), form) {
				t.Errorf("%s: %s is in the recording:\n%s", args, form, s.out.String())
			}
		}
		c := s.cassette()
		r := []Tool[*desk]{
			Modes("typed", "", Simulation(Replay(c, typed))), Modes("single", "", Simulation(Replay(c, single))),
			Modes("whole", "", Simulation(Replay(c, whole))),
		}
		play := replaying(t, New(r...))
		var got []string
		for _, tool := range r {
			res, err := play.call(tool, args)
			if err != nil {
				t.Fatalf("%s: %v", args, err)
			}
			data, err := Data(res)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(data))
		}
		want := []string{
			`{"i":0,"f":0,"p":null,"l":[1,0],"m":{},"b":null,"any":{"x":"[secret]"},"s":"it is [secret], [secret] or [secret]"}`,
			`0`, `{"l":["[secret]"],"n":"[secret]"}`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

// Short numbers are everywhere, and others are not secret for having a secret's digits in them.
func TestNumbersThatAreNoSecrets(t *testing.T) {
	s := newStudio(t)
	live := func(*desk, context.Context, struct {
		Pins []json.Number `json:"pins" secret:"true"`
	}) ([]json.Number, error) {
		return []json.Number{"1", "42", "999", "-999", "47110", "0.4711", "4711e1", "4711"}, nil
	}
	s.call(Func("t", "", live), `{"pins":[1,42,999,4711]}`)
	if want := `"value":[1,42,999,-999,47110,0.4711,4711e1,"[secret]"]}`; !strings.HasSuffix(s.lines()[0], want) {
		t.Errorf("%s, want %s", s.lines()[0], want)
	}
}

// What a session repeats is remembered for longer than what it said once.
func TestMemoryOfSecrets(t *testing.T) {
	s := newStudio(t)
	tool := Func("t", "", func(_ *desk, _ context.Context, in key) (string, error) { return "", errors.New(in.How) })
	call := func(pass, how string) { s.call(tool, bare(key{pass, how})) }
	for i := range 2 * maxRemembered {
		call("always", "")
		call(fmt.Sprintf("<&pass-%d>", i), "")
	}
	call("x", fmt.Sprintf("always <&pass-%d>", 2*maxRemembered-1))
	if last := s.lines()[4*maxRemembered]; !strings.Contains(last, `"how":"[secret] [secret]"`) {
		t.Error(last)
	}
}
