package transport

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// FuzzResult holds what is written in one pass to what the SDK writes: the same JSON, whatever the result has in it.
func FuzzResult(f *testing.F) {
	mark, made := echoed(f, "").Meta, echoed(f, "made").StructuredContent.(tools.Structured)
	const all = 1<<12 - 1
	for shape := range uint16(all + 1) {
		f.Add("say \"café\" <&> \u2028\\", []byte(`{"a":[1.50,"<x>"]}`), shape)
	}
	f.Add("made", []byte(`"other"`), uint16(1<<10))
	f.Add("made", []byte(`"other"`), uint16(1<<11|1<<10))
	f.Add("\xff", []byte(`"\u00e9"`), uint16(0))
	f.Add("", []byte(` null `), uint16(1))
	f.Add("", []byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, text string, value []byte, shape uint16) {
		if len(value) > 0 && strictjson.Check(value, strictjson.DefaultMaxDepth) != nil {
			t.Skip("no value of a tool")
		}
		res := shapedResult(text, value, shape)
		if shape>>9&1 == 1 {
			res.Meta = mark
		}
		if shape>>10&1 == 1 && len(value) > 0 && res.StructuredContent != nil { // a typed tool's, in which a middleware may have put another value
			other := made
			if shape>>11&1 == 1 {
				other.Value = value
			}
			res.StructuredContent = other
		}
		want, wantErr := json.Marshal(res)
		got, err := mcpResult{res}.AppendJSON(nil)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("shape %#x: the error is %v, the SDK's %v", shape, err, wantErr)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(canonical(t, want), canonical(t, got)); diff != "" {
			t.Errorf("shape %#x (-SDK +ours):\n%s", shape, diff)
		}
		if err := strictjson.Check(got, 2*strictjson.DefaultMaxDepth); err != nil {
			t.Errorf("shape %#x: %s: %v", shape, got, err)
		}
	})
}

// shapedResult is a result with whatever the bits of shape say.
func shapedResult(text string, value []byte, shape uint16) *mcp.CallToolResult {
	has := func(bit int) bool { return shape>>bit&1 == 1 }
	said := &mcp.TextContent{Text: text}
	res := &mcp.CallToolResult{Content: []mcp.Content{said}, StructuredContent: tools.Structured{Value: value, Wrapped: has(0)}, IsError: has(1)}
	if has(2) {
		res.Content = append(res.Content, &mcp.TextContent{Text: "more", Meta: mcp.Meta{}})
	}
	if has(3) {
		res.Content = append(res.Content, &mcp.ImageContent{Data: []byte(text), MIMEType: "image/png"})
	}
	if has(4) {
		said.Meta, said.Annotations = mcp.Meta{"k": text}, &mcp.Annotations{Priority: 0.5}
	}
	if has(5) {
		res.Meta = mcp.Meta{"k": text}
	}
	if has(6) {
		res.Content = nil
	}
	if has(7) {
		res.StructuredContent = nil
	}
	if has(8) {
		res.InputRequests = mcp.InputRequestMap{}
	}
	return res
}

func canonical(t *testing.T, text []byte) string {
	t.Helper()
	raw := jsontext.Value(bytes.Clone(text))
	if err := raw.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return string(raw)
}

// TestPlainResult shows that what a typed tool returns is written in one pass: the SDK would escape the sign.
func TestPlainResult(t *testing.T) {
	b, ok := mcpResult{echoed(t, "a < b")}.appendPlain(nil)
	const want = `{"_meta":{"fastmcp":{"wrap_result":true}},"content":[{"type":"text","text":"a < b"}],"structuredContent":{"result":"a < b"}}`
	if !ok || string(b) != want {
		t.Errorf("%v: %s, want %s", ok, b, want)
	}
}

// echoed is what the tool of a server for benchmarks returns.
func echoed(t testing.TB, text string) *mcp.CallToolResult {
	t.Helper()
	live, err := benchServer(t).sessions.Open(t.Context(), session.ByCreate, "")
	if err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal(doorMessage{text})
	if err != nil {
		t.Fatal(err)
	}
	a, err := live.CallTool(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "echo", Arguments: args}}, 0)
	if err != nil || a.Err != nil {
		t.Fatal(err, a.Err)
	}
	return a.Result
}
