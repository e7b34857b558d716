package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/internal/memnet"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// Targets for clients that have not initialised: frames of /ws, JSON-RPC, bodies, and ids of sessions.

// frameVerdict is what a frame gets by the rules of the channel: the code of its error, or "" if it is served. sure is false
// where a number is too long to tell.
func frameVerdict(v any) (code string, sure bool) {
	object, ok := v.(map[string]any)
	if !ok {
		return codeValidation, true
	}
	typ, _ := object["type"].(string)
	data, hasData := object["data"]
	_, isObject := data.(map[string]any)
	id, hasID := object["request_id"].(string)
	limit, hasLimit := object["timeout_s"].(json.Number)
	seconds, err := limit.Float64()
	switch {
	case !slices.Contains([]string{"reset", "step", "state", "close", "mcp"}, typ):
		return codeUnknownType, true
	case !onlyKeys(object, "type", "data", "request_id", "timeout_s"),
		(typ == "step" || typ == "mcp") && !hasData, (typ == "state" || typ == "close") && hasData, hasData && !isObject,
		!hasID && object["request_id"] != nil, utf8.RuneCountInString(id) > 255,
		!hasLimit && object["timeout_s"] != nil, hasLimit && (err != nil || seconds <= 0):
		return codeValidation, true
	}
	return "", !hasLimit || seconds < 1<<53 && !math.Signbit(seconds)
}

// A frameSocket is a socket of /ws, opened again where it was closed.
type frameSocket struct {
	dial func() *websocket.Conn
	conn *websocket.Conn
}

func (s *frameSocket) ask(t *testing.T, text []byte) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	if s.conn == nil {
		s.conn = s.dial()
	}
	if err := s.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return nil, err
	}
	_, reply, err := s.conn.Read(ctx)
	return reply, err
}

func (s *frameSocket) close() {
	if s.conn != nil {
		s.conn.CloseNow()
		s.conn = nil
	}
}

// FuzzFrames holds the answer to a text message on /ws to the rules of the channel.
func FuzzFrames(f *testing.F) {
	srv := fuzzServer(f)
	ln := memnet.Listen()
	web := &http.Server{Handler: srv}
	go web.Serve(ln)
	f.Cleanup(func() { web.Close() })
	client := &http.Client{Transport: &http.Transport{DialContext: ln.Dial}}
	sock := &frameSocket{dial: func() *websocket.Conn {
		c, _, err := websocket.Dial(context.Background(), "ws://localhost/ws", &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			f.Fatal(err)
		}
		c.SetReadLimit(-1)
		return c
	}}
	f.Cleanup(func() { sock.close() })
	addTraffic(f, frames)
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<16 {
			return
		}
		request, err := reading(text)
		unsure := errors.Is(err, errUnsure)
		code, sure := frameVerdict(request)
		reply, readErr := sock.ask(t, text)
		if want := frameCloses(text, err, code, request); readErr != nil || want != 0 {
			if got := websocket.CloseStatus(readErr); got != want && !unsure {
				t.Fatalf("closed with %d (%v), want %d; reply %s", got, readErr, want, reply)
			}
			sock.close()
			return
		}
		answer, _ := mustRead(t, reply).(map[string]any)
		got, _ := at(answer, "data", "code").(string)
		typ, _ := at(request, "type").(string)
		if err == errNoJSON {
			code, sure = codeInvalidJSON, true
		}
		switch isError := answer["type"] == "error"; {
		case !onlyKeys(answer, "type", "data", "request_id") || isError == (got == ""):
			t.Fatalf("no frame: %s", reply)
		case unsure || !sure:
		case code != "" && got != code:
			t.Fatalf("code %q, want %q: %s", got, code, reply)
		case code == "":
			checkServed(t, request, typ, answer, reply)
		}
		if at(request, "request_id") != nil {
			sock.close() // the next frame may have the same id, and is to be served
		}
		if reply, err := sock.ask(t, []byte(stepFrame("say", `{"text":"on"}`))); err != nil || !bytes.Contains(reply, []byte(`"data":"on"`)) {
			t.Fatalf("the session does not go on: %s, %v", reply, err)
		}
	})
}

// frameCloses is the code that a message closes the socket with, or 0.
func frameCloses(text []byte, err error, code string, request any) websocket.StatusCode {
	switch {
	case !utf8.Valid(text):
		return websocket.StatusInvalidFramePayloadData
	case err == nil && code == "" && at(request, "type") == "close":
		return websocket.StatusNormalClosure
	}
	return 0
}

// checkServed holds the answer to a frame that is served.
func checkServed(t *testing.T, request any, typ string, answer map[string]any, reply []byte) {
	t.Helper()
	want := map[string]string{"reset": "observation", "step": "observation", "state": "state", "mcp": "mcp"}[typ]
	code, _ := at(answer, "data", "code").(string)
	hurried := at(request, "timeout_s") != nil
	id, _ := at(request, "request_id").(string)
	given, _ := answer["request_id"].(string)
	text, says := sayingOf(at(request, "data", "arguments"))
	action, _ := at(request, "data").(map[string]any)
	plain := says && len(action) == 3 && action["type"] == "call_tool" && action["tool_name"] == "say"
	switch {
	case id != given:
		t.Fatalf("request_id %q, want %q: %s", given, id, reply)
	case answer["type"] != want && (typ == "mcp" || typ == "state" && !hurried || code != codeValidation && !(hurried && code == codeExecution)):
		t.Fatalf("%s got %s", typ, reply)
	case typ == "mcp" && !hurried:
		inner, err := json.Marshal(answer["data"])
		if err != nil {
			t.Fatal(err)
		}
		if !readRPCRequest(at(request, "data")).call { // every frame has its answer
			if string(inner) != `{"id":null,"jsonrpc":"2.0","result":null}` {
				t.Fatalf("a notification got %s", inner)
			}
			return
		}
		checkRPC(t, at(request, "data"), inner)
	case typ == "step" && plain && !hurried && at(answer, "data", "observation", "result", "data") != text:
		t.Fatalf("say %q got %s", text, reply)
	}
}

// FuzzRPC holds the answers of JSON-RPC without a handshake to the rules, on POST /mcp and on a connection of the client's
// own, which must say the same; and standard input to its lines.
func FuzzRPC(f *testing.F) {
	srv := fuzzServer(f)
	live, err := srv.Sessions().Open(f.Context(), session.ByCreate, "")
	if err != nil {
		f.Fatal(err)
	}
	d := &dialog{s: srv, peer: func() peer { return peer{session: live} }, write: func([]byte) {}}
	addTraffic(f, requests)
	f.Fuzz(func(t *testing.T, text []byte) {
		checkLines(t, srv, text)
		request, err := reading(text)
		status, posted := recorded(srv, http.MethodPost, "/mcp?session_id="+live.ID, text)
		if at(request, "method") == "initialize" || bytes.Contains(text, []byte(mcp.MetaKeyProtocolVersion)) {
			if status >= 500 {
				t.Fatalf("%d %s", status, posted)
			}
			return // it is another dialect's; FuzzAgent has that
		}
		told := d.answer(t.Context(), text)
		if posted = nonEmpty(posted); status != http.StatusOK && (status != http.StatusAccepted || posted != nil) {
			t.Fatalf("%d %s", status, posted)
		}
		if at(request, "method") != "openenv/session/agent" && !bytes.Equal(told, posted) {
			t.Fatalf("POST /mcp says %s, a dialog %s", posted, told)
		}
		switch {
		case err == errNoJSON:
			if code := checkRPCShape(t, told, nil); code != rpcParse {
				t.Fatalf("got %s", told)
			}
		case err == nil:
			checkRPC(t, request, told)
		}
		call := rpcCall("say", `{"text":"on"}`, "")
		if reply := d.answer(t.Context(), []byte(call)); !bytes.Contains(reply, []byte(`"data":"on"`)) {
			t.Fatalf("the session does not go on: %s", reply)
		}
		if n := srv.Sessions().Active(); n != 1 {
			t.Fatalf("%d sessions", n)
		}
	})
}

func nonEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// checkLines holds standard input to the lines of the text.
func checkLines(t *testing.T, srv *Server, text []byte) {
	t.Helper()
	var got []string
	for l := range srv.readLines(t.Context(), bytes.NewReader(text), func() {}) {
		got = append(got, string(l.text))
		l.done()
	}
	if want := linesOf(text); !slices.Equal(got, want) {
		t.Fatalf("standard input has the lines %q, want %q", got, want)
	}
}

// recorded makes a request without a network.
func recorded(h http.Handler, method, target string, body []byte, headers ...string) (status int, reply []byte) {
	r := httptest.NewRequest(method, "http://localhost"+target, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(hijackable{rec}, r)
	reply, _ = io.ReadAll(rec.Body)
	return rec.Code, reply
}

// A hijackable recorder promises a connection, so that a handshake is looked at, and has none to give.
type hijackable struct{ *httptest.ResponseRecorder }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// FuzzBodies holds the answers of POST /step and POST /reset to the rules.
func FuzzBodies(f *testing.F) {
	srv := fuzzServer(f)
	addTraffic(f, bodies)
	f.Fuzz(func(t *testing.T, body []byte) {
		request, err := reading(body)
		object, isObject := request.(map[string]any)
		for _, path := range []string{"/step", "/reset"} {
			status, reply := recorded(srv, http.MethodPost, path, body)
			answer := mustRead(t, reply)
			_, isObservation := at(answer, "observation").(map[string]any)
			faults, isRefused := at(answer, "detail").([]any)
			refused := err == errNoJSON || err == nil && !isObject
			switch {
			case status == http.StatusOK && isObservation, status == http.StatusUnprocessableEntity && isRefused && len(faults) > 0:
			default:
				t.Fatalf("%s got %d %s", path, status, reply)
			}
			if path == "/reset" && len(body) == 0 {
				refused = false
			}
			if path == "/step" && err == nil && isObject {
				code, sure := stepVerdict(object)
				refused = sure && code != ""
			}
			if served := status == http.StatusOK; refused && served {
				t.Fatalf("%s served it: %s", path, reply)
			}
			if text, ok := sayingOf(at(object, "action", "arguments")); ok && err == nil && path == "/step" && len(object) == 1 && len(at(object, "action").(map[string]any)) == 3 &&
				at(object, "action", "type") == "call_tool" && at(object, "action", "tool_name") == "say" && at(answer, "observation", "result", "data") != text {
				t.Fatalf("say %q got %d %s", text, status, reply)
			}
		}
		if n := srv.Sessions().Active(); n != 0 {
			t.Fatalf("%d sessions are left", n)
		}
	})
}

// stepVerdict is [frameVerdict] of a body of POST /step, which may have other members: the frame whose data its action is has
// the same rules.
func stepVerdict(body map[string]any) (code string, sure bool) {
	frame := map[string]any{"type": "step"}
	for theirs, ours := range map[string]string{"action": "data", "request_id": "request_id", "timeout_s": "timeout_s"} {
		if v, ok := body[theirs]; ok {
			frame[ours] = v
		}
	}
	return frameVerdict(frame)
}

// FuzzSessionIDs names sessions that there are not, in every place that a client can name one in. None is opened, or found.
func FuzzSessionIDs(f *testing.F) {
	srv := fuzzServer(f)
	live, err := srv.Sessions().Open(f.Context(), session.ByCreate, "")
	if err != nil {
		f.Fatal(err)
	}
	handle, err := live.Mint()
	if err != nil {
		f.Fatal(err)
	}
	for _, id := range []string{"s9", "S1", "s1 ", " s1", "s1\x00", "s1/", "s1%00", "..", ".", "null", "0", "*", "\xff", "ſ1", "s1&session_id=s1", "s1#", "'", strings.Repeat("s1", 500)} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if id == "" || id == live.ID || id == handle {
			return
		}
		query := "?session_id=" + url.QueryEscape(id)
		list, step := []byte(listBody), []byte(`{"action":{"type":"list_tools"}}`)
		streams := []string{"Accept", "application/json, text/event-stream"}
		named := func(method string) []byte {
			quoted, _ := json.Marshal(id) // invalid UTF-8 comes out as another unknown id
			return []byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"name":"point","session_id":` + string(quoted) + `}}`)
		}
		refused := func(what string, want int, status int, reply []byte) {
			t.Helper()
			if status != want && (status < 300 || status >= 500) {
				t.Fatalf("%s got %d %s", what, status, reply)
			}
			if n := srv.Sessions().Active(); n != 1 {
				t.Fatalf("%s left %d sessions", what, n)
			}
		}
		ask := func(what string, h http.Handler, method, target string, body []byte, headers ...string) {
			t.Helper()
			status, reply := recorded(h, method, target, body, headers...)
			refused(what, http.StatusNotFound, status, reply)
		}
		for _, body := range [][]byte{list, []byte(rpcCall("point", "{}", "")), []byte(initializeBody)} {
			ask("POST /mcp?session_id", srv, http.MethodPost, "/mcp"+query, body, streams...)
			ask("POST /mcp/id", srv, http.MethodPost, "/mcp/"+url.PathEscape(id), body, streams...)
			ask("Mcp-Session-Id", srv, http.MethodPost, "/mcp", body, append(streams, "Mcp-Session-Id", id)...)
			ask("stateless", srv, http.MethodPost, "/mcp"+query, body, append(streams, "Mcp-Protocol-Version", stateless)...)
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			ask(method+" /mcp", srv, method, "/mcp", nil, "Accept", "text/event-stream", "Mcp-Session-Id", id)
		}
		ask("POST /step", srv, http.MethodPost, "/step"+query, step)
		ask("POST /reset", srv, http.MethodPost, "/reset"+query, nil)
		ask("GET /state", srv, http.MethodGet, "/state"+query, nil)
		for _, path := range []string{"/ws", "/mcp"} {
			ask("WebSocket "+path, srv, http.MethodGet, path+query+"&announce=1", nil,
				"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
		}
		path := "/sessions/" + url.PathEscape(id)
		ask("GET "+path, srv.Control(), http.MethodGet, path, nil)
		ask("DELETE "+path, srv.Control(), http.MethodDelete, path, nil)
		ask("POST "+path+"/agents", srv.Control(), http.MethodPost, path+"/agents", nil)
		for _, method := range []string{"tools/list", "tools/call", "openenv/session/close", "openenv/session/agent"} {
			status, reply := recorded(srv, http.MethodPost, "/mcp", named(method))
			refused(method, http.StatusOK, status, reply)
			if code := checkRPCShape(t, reply, json.Number("1")); code != rpcInvalidParams {
				t.Fatalf("%s got %s", method, reply)
			}
		}
		if status, reply := recorded(srv, http.MethodPost, "/mcp?session_id="+live.ID, []byte(rpcCall("say", `{"text":"on"}`, ""))); status != http.StatusOK || !bytes.Contains(reply, []byte(`"data":"on"`)) {
			t.Fatalf("the session does not go on: %s", reply)
		}
	})
}
