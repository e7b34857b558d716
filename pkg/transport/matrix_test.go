package transport

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Who may do what: testdata/matrix.txt has a line for each operation of each door, and the verdict that each caller gets in
// each mode. This test does each and holds it to the verdict.

//go:embed testdata/matrix.txt
var matrixText string

const (
	controlToken = "control-token-of-the-tests"
	agentToken   = "agent-token-of-the-tests"
	otherToken   = "agent-token-of-another"
)

// A matrixCaller is a column: how a caller comes to the server, and what it shows.
type matrixCaller struct {
	guarded, listener bool
	token             string // "bound": a token of the handle H
}

var matrixCallers = map[string]matrixCaller{
	"open":     {},
	"anon":     {guarded: true},
	"wrong":    {guarded: true, token: "not-a-token-of-this-server"},
	"agent":    {guarded: true, token: agentToken},
	"bound":    {guarded: true, token: "bound"},
	"control":  {guarded: true, token: controlToken},
	"listener": {guarded: true, listener: true},
}

// A matrixCell is one caller that does one operation.
type matrixCell struct {
	t     *testing.T
	srv   *Server
	base  string
	token string
	names *strings.Replacer // of S, T: sessions; H, J: their handles; M: an agent of another caller's, on T
}

func (c matrixCell) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	return h
}

var rpcCode = regexp.MustCompile(`"code":(-?\d+|"[A-Z_]+")`)

// verdictOf is what an answer amounts to: ok, or the code of its error.
func verdictOf(reply string) string {
	if m := rpcCode.FindStringSubmatch(reply); m != nil {
		return strings.Trim(m[1], `"`)
	}
	if strings.Contains(reply, `"isError":true`) || strings.Contains(reply, `"is_error":true`) {
		return "failed"
	}
	return "ok"
}

// do does an operation in the table's words: METHOD PATH [HEADER=VALUE] [BODY], or WS PATH FRAME; several are joined by "then",
// and the last one's verdict counts. An Mcp-Session-Id that one has been given the next ones send.
func (c matrixCell) do(operation string) (verdict string) {
	agent := ""
	for step := range strings.SplitSeq(c.names.Replace(operation), " then ") {
		method, rest, _ := strings.Cut(step, " ")
		path, body, _ := strings.Cut(rest, " ")
		h := c.header()
		if agent != "" {
			h.Set("Mcp-Session-Id", agent)
		}
		for {
			m := regexp.MustCompile(`^([A-Z][A-Za-z-]+)=(\S+) ?`).FindStringSubmatch(body)
			if m == nil {
				break
			}
			h.Set(m[1], m[2])
			body = body[len(m[0]):]
		}
		body = expand(body)
		if method == "WS" {
			verdict = c.socket(path, h, body)
			continue
		}
		var given string
		if verdict, given = c.request(method, path, h, body); given != "" {
			agent = given
		}
	}
	return verdict
}

// expand writes a body out: rpc METHOD PARAMS is JSON-RPC, frame TYPE DATA one of the gym channel, mcp METHOD PARAMS one in the
// other.
func expand(body string) string {
	kind, rest, _ := strings.Cut(body, " ")
	word, data, _ := strings.Cut(rest, " ")
	if data == "" {
		data = "{}"
	}
	switch kind {
	case "rpc":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, word, data)
	case "frame":
		if data == "{}" && word != "reset" {
			return fmt.Sprintf(`{"type":%q}`, word)
		}
		return fmt.Sprintf(`{"type":%q,"data":%s}`, word, data)
	case "mcp":
		return fmt.Sprintf(`{"type":"mcp","data":{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}}`, word, data)
	}
	return body
}

func (c matrixCell) request(method, path string, h http.Header, body string) (verdict, agent string) {
	ctx, cancel := context.WithTimeout(c.t.Context(), testTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header = h
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusUnauthorized && !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer ") {
		c.t.Errorf("%s %s: 401 without a challenge", method, path)
	}
	if res.StatusCode == http.StatusOK && res.Header.Get("Content-Type") == "text/event-stream" && method == http.MethodGet {
		return "ok", "" // it would not end
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if !json.Valid(text) && len(text) > 0 && strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		c.t.Errorf("%s %s: %s", method, path, text)
	}
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Sprint(res.StatusCode), ""
	}
	verdict = verdictOf(string(text))
	if path == "/openapi.json" {
		verdict = documented(string(text))
	}
	return verdict, res.Header.Get("Mcp-Session-Id")
}

// documented tells which roles' routes a document has.
func documented(text string) string {
	has := "tools"
	for path, role := range map[string]string{`"/reset"`: "trainer", `"/sessions"`: "control"} {
		if strings.Contains(text, path) && (has == "tools" || role == "control") {
			has = role
		}
	}
	return has
}

func (c matrixCell) socket(path string, h http.Header, frame string) (verdict string) {
	ctx, cancel := context.WithTimeout(c.t.Context(), testTime)
	defer cancel()
	h.Del("Content-Type")
	ws, res, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(c.base, "http")+path, &websocket.DialOptions{HTTPHeader: h})
	if err != nil {
		if res == nil {
			c.t.Fatal(err)
		}
		return fmt.Sprint(res.StatusCode)
	}
	defer ws.CloseNow()
	client := wsClient{c.t, ws}
	verdict = verdictOf(client.ask(frame))
	if verdict == codeNotAllowed { // and the socket stays usable
		if got := verdictOf(client.ask(expand("mcp tools/list"))); got != "ok" {
			c.t.Errorf("after a refused frame: %s", got)
		}
	}
	return verdict
}

// matrixServer serves the lab in a mode, with tokens or without.
func matrixServer(t *testing.T, mode tools.Mode, guarded bool) (srv *Server, base, control string) {
	o := Options{Mode: mode, Sessions: session.Options{Max: 10_000}}
	if guarded {
		o.Access = Access{ControlTokens: []access.Token{controlToken}, AgentTokens: []access.Token{agentToken, otherToken}}
	}
	srv, base = start(t, labEnv(), o)
	web := httptest.NewServer(srv.Control())
	t.Cleanup(web.Close)
	return srv, base, web.URL
}

func TestMatrix(t *testing.T) {
	var columns []string
	wants := map[string][][2]string{} // by column: operations and verdicts
	rows := 0
	for line := range strings.Lines(matrixText) {
		line, _, _ = strings.Cut(strings.TrimRight(line, "\n"), " # ")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(line, "#"):
		case columns == nil:
			columns = fields
		default:
			if len(fields) < len(columns)+2 {
				t.Fatalf("too few columns: %s", line)
			}
			rows++
			for i, verdict := range fields[:len(columns)] {
				wants[columns[i]] = append(wants[columns[i]], [2]string{strings.Join(fields[len(columns):], " "), verdict})
			}
		}
	}
	if len(columns) != 2*len(matrixCallers) || rows < 60 {
		t.Fatalf("%d columns, %d rows", len(columns), rows)
	}
	for _, name := range columns {
		t.Run(name, func(t *testing.T) { matrixColumn(t, name, wants[name]) })
	}
}

func matrixColumn(t *testing.T, column string, wants [][2]string) {
	modeName, name, _ := strings.Cut(column, ":")
	mode := map[string]tools.Mode{"sim": tools.ModeSimulation, "prod": tools.ModeProduction}[modeName]
	caller, ok := matrixCallers[name]
	if !ok || mode == "" {
		t.Fatalf("no caller %q", column)
	}
	srv, public, control := matrixServer(t, mode, caller.guarded)
	for _, want := range wants {
		base := public
		if caller.listener {
			base = control
		}
		c := newMatrixCell(t, srv, base, caller)
		if got := c.do(want[0]); got != want[1] {
			t.Errorf("%s: got %s, want %s", want[0], got, want[1])
		}
	}
}

// newMatrixCell opens what an operation may be about.
func newMatrixCell(t *testing.T, srv *Server, base string, caller matrixCaller) matrixCell {
	t.Helper()
	var ids, handles [2]string
	for i := range ids {
		s, err := srv.Sessions().Open(t.Context(), session.ByCreate, "")
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = s.ID
		if handles[i], err = s.Mint(); err != nil {
			t.Fatal(err)
		}
	}
	c := matrixCell{t: t, srv: srv, base: base, token: caller.token}
	other := matrixCell{t: t, srv: srv, base: base, names: strings.NewReplacer()}
	if caller.guarded {
		other.token = otherToken
	}
	verdict, agent := other.request(http.MethodPost, "/mcp/"+handles[1], other.header(), initializeBody)
	if verdict != "ok" || agent == "" {
		t.Fatalf("the other agent got %s", verdict)
	}
	if caller.token == "bound" {
		token, _ := srv.keeper.Mint(handles[0], time.Minute)
		c.token = string(token)
	}
	c.names = strings.NewReplacer("{S}", ids[0], "{T}", ids[1], "{H}", handles[0], "{J}", handles[1], "{M}", agent, "INITIALIZE", initializeBody)
	return c
}
