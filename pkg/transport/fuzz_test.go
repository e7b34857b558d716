package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// What the fuzz targets share: a server, real traffic to begin with, and a reading of what clients send that owes nothing to
// the server's own. Each target drives a server, holds its answer to that reading, and then makes a plain call, which must be
// served.

// fuzzServer is a server of a lab whose tools return at once.
func fuzzServer(f *testing.F) *Server {
	env := labEnv()
	env.Tools = tools.New(tools.Func("say", "Say it.", (*lab).say), tools.Func("point", "A point.", (*lab).point),
		tools.Do("nothing", "Nothing.", (*lab).nothing), tools.Func("refuse", "Fails by itself.", (*lab).refuse))
	srv, err := New(f.Context(), env, counted())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testTime)
		defer cancel()
		if err := srv.Close(ctx); err != nil {
			f.Error(err)
		}
	})
	return srv
}

var sentSection = regexp.MustCompile(`(?ms)^-- > (\S+)( \S+)? --\n(.*?)(?:^-- |\z)`)

// Kinds of what clients send.
const (
	frames   = `{"type"`
	requests = `"jsonrpc"`
	bodies   = `{"`
)

// addTraffic adds what the clients of the golden transcripts send, as messages or in bodies, that is of one kind, or of none.
func addTraffic(f *testing.F, kind string) {
	f.Helper()
	added := map[string]bool{}
	add := func(text string) {
		of := ""
		for _, k := range []string{frames, requests, bodies} {
			if of == "" && strings.Contains(text, k) {
				of = k
			}
		}
		if (of == "" || of == kind) && !added[text] {
			added[text] = true
			f.Add([]byte(text))
		}
	}
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no transcripts (%v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range strings.SplitAfter(string(text), "\n-- < ") { // each has one section of the client's at its end, or more
			for _, m := range sentSection.FindAllStringSubmatch(part, -1) {
				for _, body := range append(strings.Split(m[3], "\n\n"), m[3]) { // headers stand before an empty line
					body = strings.TrimSpace(body)
					if s, err := strconv.Unquote(body); m[2] == " quoted" && err == nil {
						body = s
					}
					add(body)
				}
			}
		}
	}
	for _, g := range garbage {
		add(g.text)
	}
}

// Verdicts of the reading.
var (
	errNoJSON = errors.New("no JSON")
	errUnsure = errors.New("not for this reading to say") // the standard library lets lone surrogates pass
)

var surrogate = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

// reading reads JSON with the standard library, and looks for what that lets pass: duplicate keys, depth, and invalid UTF-8.
func reading(b []byte) (any, error) {
	if !utf8.Valid(b) || !json.Valid(b) {
		return nil, errNoJSON
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	v, err := readingOf(dec, 0)
	if err == nil && surrogate.Match(b) {
		err = errUnsure
	}
	return v, err
}

func readingOf(dec *json.Decoder, depth int) (any, error) {
	tok, err := dec.Token()
	d, ok := tok.(json.Delim)
	if err != nil || !ok {
		return tok, err
	}
	if depth++; depth > strictjson.DefaultMaxDepth {
		return nil, errNoJSON
	}
	list, object := []any{}, map[string]any{}
	for dec.More() {
		name := ""
		if d == '{' {
			tok, err := dec.Token()
			if err != nil {
				return nil, err
			}
			name = tok.(string)
			if _, twice := object[name]; twice {
				return nil, errNoJSON
			}
		}
		v, err := readingOf(dec, depth)
		if err != nil {
			return nil, err
		}
		object[name], list = v, append(list, v)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if d == '{' {
		return object, nil
	}
	return list, nil
}

// onlyKeys reports whether an object has no others.
func onlyKeys(object map[string]any, known ...string) bool {
	n := 0
	for _, k := range known {
		if _, ok := object[k]; ok {
			n++
		}
	}
	return n == len(object)
}

// sayingOf is what a call of say says, if these are its arguments as they should be.
func sayingOf(args any) (text string, ok bool) {
	object, _ := args.(map[string]any)
	text, ok = object["text"].(string)
	return text, ok && text != "" && len(object) == 1
}

// at walks down a decoded answer; nil: there is nothing.
func at(v any, path ...string) any {
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// An rpcReading is what the reading makes of a JSON-RPC request without a handshake.
type rpcReading struct {
	code   int // that it is refused with, whatever else; 0: it is served
	id     any
	call   bool // an answer is due
	method string
	params any
}

func readRPCRequest(v any) (r rpcReading) {
	r.code, r.call = rpcInvalidRequest, true
	object, ok := v.(map[string]any)
	if !ok {
		return r
	}
	id, hasID := object["id"]
	switch n := id.(type) {
	case nil, string:
		r.id = id
	case json.Number:
		if strings.ContainsAny(string(n), ".eE") {
			return r
		}
		r.id = id
	default:
		return r
	}
	r.method, _ = object["method"].(string)
	r.params = object["params"]
	_, isObject := r.params.(map[string]any)
	if !onlyKeys(object, "jsonrpc", "id", "method", "params") || object["jsonrpc"] != "2.0" || r.method == "" || r.params != nil && !isObject {
		return r
	}
	r.call = hasID || !strings.HasPrefix(r.method, "notifications/")
	r.code = 0
	return r
}

// checkRPC holds the answer of a bare door to the request; reply is nil where there is none.
func checkRPC(t *testing.T, request any, reply []byte) {
	t.Helper()
	r := readRPCRequest(request)
	if !r.call {
		if reply != nil {
			t.Fatalf("a notification was answered: %s", reply)
		}
		return
	}
	code := checkRPCShape(t, reply, r.id)
	answer, _ := reading(reply)
	text, says := sayingOf(at(r.params, "arguments"))
	switch {
	case r.code != 0 && code != r.code:
		t.Fatalf("code %d, want %d: %s", code, r.code, reply)
	case r.code == 0 && (code == rpcParse || code == rpcInternal):
		t.Fatalf("code %d: %s", code, reply)
	case r.code == 0 && !servedBare[r.method] && code != rpcNoMethod && code != rpcInvalidParams:
		t.Fatalf("code %d for no method: %s", code, reply)
	case r.code == 0 && r.method == "tools/call" && at(r.params, "name") == "say" && says && at(r.params, "session_id") == nil && at(answer, "result", "data") != text:
		t.Fatalf("say %q got %s", text, reply)
	}
}

var servedBare = map[string]bool{
	"tools/list": true, "tools/call": true, "openenv/session/create": true, "openenv/session/close": true, "openenv/session/agent": true,
}

// checkRPCShape holds an answer to the shape of JSON-RPC, and returns the code of its error, or 0.
func checkRPCShape(t *testing.T, reply []byte, id any) (code int) {
	t.Helper()
	v, err := reading(reply)
	object, ok := v.(map[string]any)
	if err != nil && !errors.Is(err, errUnsure) || !ok || object["jsonrpc"] != "2.0" || !onlyKeys(object, "jsonrpc", "id", "result", "error") || object["id"] != id {
		t.Fatalf("want an answer to %v, got %.500s (%v)", id, reply, err)
	}
	_, isResult := object["result"]
	failure, isError := object["error"].(map[string]any)
	if isResult == isError {
		t.Fatalf("want a result or an error: %.500s", reply)
	}
	if isError {
		n, _ := failure["code"].(json.Number)
		if code, err = strconv.Atoi(string(n)); err != nil || code == 0 || !onlyKeys(failure, "code", "message", "data") || failure["message"] == "" {
			t.Fatalf("a bad error: %.500s", reply)
		}
	}
	return code
}

// linesOf is what standard input must take for messages: lines that are not blank.
func linesOf(b []byte) (all []string) {
	for l := range bytes.SplitSeq(b, []byte("\n")) {
		if l = bytes.TrimSpace(l); len(l) > 0 {
			all = append(all, string(l))
		}
	}
	return all
}

// A mailbox is where a dialog writes.
type mailbox chan []byte

func (m mailbox) write(text []byte) { m <- bytes.Clone(text) }

func mustRead(t testing.TB, text []byte) any {
	t.Helper()
	v, err := reading(text)
	if err != nil && !errors.Is(err, errUnsure) {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func numbered(id string, method, params string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, method, params)
}
