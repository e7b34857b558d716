package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// One verdict on hostile JSON by every door: keys that differ in case, or twice, or in what they look like, at each level of a
// message, and values that cannot be held.

// A verdict is what a message comes to, apart from how a door spells it.
type verdict string

const (
	noJSON      verdict = "not JSON"
	badEnvelope verdict = "a bad envelope"
	badArgs     verdict = "invalid_args"
	kept        verdict = "served, and kept as it came"
	badHeaders  verdict = "headers that don't fit the body"
)

// safe is an environment whose one tool takes what is typed and what is free, and returns both.
type safe struct{}

type deposit struct {
	Count int16          `json:"count,omitempty"`
	Ratio float32        `json:"ratio,omitempty"`
	Free  map[string]any `json:"free,omitempty"`
}

type receipt struct {
	Count int16           `json:"count"`
	Free  json.RawMessage `json:"free"`
}

func (safe) keep(_ context.Context, in deposit) (receipt, error) {
	free, err := strictjson.Marshal(in.Free)
	return receipt{in.Count, free}, err
}

func safeEnv() gym.Environment[safe] {
	return gym.Environment[safe]{
		Name: "safe", New: func(context.Context, *gym.Session) (safe, error) { return safe{}, nil },
		Tools: tools.New(tools.Func("keep", "Keep it.", safe.keep)), Reset: gym.Reset(safe.reset),
	}
}

// A hostileMessage is a call of keep with something odd in it, and what it must come to.
type hostileMessage struct {
	args    string // of the call; "": {"free":{"a":1}}
	params  string // members besides name and arguments, with a comma before them
	outside string // members of the message besides its own, likewise
	whole   func(message string) string
	want    verdict
	free    string // of the receipt
	count   int
	but     map[string]exception // by door
}

// An exception is another verdict of one door, and why that has it.
type exception struct {
	want verdict
	why  string
}

const (
	longS    = "\u017f" // folds to s by Unicode's rules, as K, the Kelvin sign, folds to k
	kelvin   = "\u212a"
	manyNine = "9999999999999999999999999"
)

// inMCP is why members that nobody knows are passed over by those who speak MCP.
const inMCP = "MCP lets later versions add members"

var (
	anAction = map[string]exception{
		"ws step":    {badEnvelope, "the action has a schema too, which wants an object"},
		"POST /step": {badEnvelope, "the action has a schema too, which wants an object"},
	}
	floats = map[string]exception{"stateless": {badHeaders, "the SDK reads the body into floats to compare the tool's name with the header's"}}
)

var hostileMessages = map[string]hostileMessage{
	// Keys of the arguments, which the tool's schema knows.
	"argument in capitals":          {args: `{"Count":1}`, want: badArgs},
	"argument and its capitals":     {args: `{"count":1,"COUNT":2}`, want: badArgs},
	"argument twice":                {args: `{"count":1,"count":2}`, want: noJSON},
	"argument twice, once escaped":  {args: `{"count":1,"c\u006funt":2}`, want: noJSON},
	"argument with a NUL":           {args: `{"count\u0000":1}`, want: badArgs},
	"argument with a space":         {args: `{"count ":1}`, want: badArgs},
	"argument with no name":         {args: `{"":1}`, want: badArgs},
	"argument in full-width":        {args: `{"ｃount":1}`, want: badArgs},
	"argument escaped":              {args: `{"c\u006funt":1}`, want: kept, count: 1, free: `{}`},
	"argument named __proto__":      {args: `{"__proto__":{"count":1}}`, want: badArgs},
	"argument key not UTF-8":        {args: "{\"count\xff\":1}", want: noJSON},
	"argument key a lone surrogate": {args: `{"\ud800":1}`, want: noJSON},
	// Keys of a free map, which keeps all.
	"free keys of two cases":         {args: `{"free":{"a":1,"A":2}}`, want: kept, free: `{"A":2,"a":1}`},
	"free keys that fold alike":      {args: `{"free":{"s":1,"` + longS + `":2,"S":3}}`, want: kept, free: `{"S":3,"s":1,"` + longS + `":2}`},
	"free keys, Kelvin":              {args: `{"free":{"k":1,"` + kelvin + `":2}}`, want: kept, free: `{"k":1,"` + kelvin + `":2}`},
	"free keys with a NUL":           {args: `{"free":{"a":1,"a\u0000":2}}`, want: kept, free: `{"a":1,"a\u0000":2}`},
	"free keys composed differently": {args: "{\"free\":{\"\u00e9\":1,\"e\u0301\":2}}", want: kept, free: "{\"e\u0301\":2,\"\u00e9\":1}"},
	"free keys named like fields":    {args: `{"free":{"count":1,"Count":2,"__proto__":3,"":4}}`, want: kept, free: `{"":4,"Count":2,"__proto__":3,"count":1}`},
	"free key twice":                 {args: `{"free":{"a":1,"a":2}}`, want: noJSON},
	"free key twice, deep down":      {args: `{"free":{"x":[{"a":1,"a":2}]}}`, want: noJSON},
	// Values.
	"integer at its end":       {args: `{"count":32767}`, want: kept, count: 32767, free: `{}`},
	"integer over its end":     {args: `{"count":32768}`, want: badArgs},
	"integer of many digits":   {args: `{"count":` + manyNine + `}`, want: badArgs},
	"integer with exponent":    {args: `{"count":1e400}`, want: badArgs, but: floats},
	"integer spelled 5.0":      {args: `{"count":5.0}`, want: kept, count: 5, free: `{}`},
	"fraction for an integer":  {args: `{"count":1.5}`, want: badArgs},
	"string for an integer":    {args: `{"count":"5"}`, want: badArgs},
	"boolean for an integer":   {args: `{"count":true}`, want: badArgs},
	"float over its end":       {args: `{"ratio":1e39}`, want: badArgs},
	"free number too long":     {args: `{"free":{"n":` + manyNine + `}}`, want: badArgs},
	"free number of 2^53+1":    {args: `{"free":{"n":9007199254740993}}`, want: badArgs},
	"free number of 2^53":      {args: `{"free":{"n":9007199254740992}}`, want: kept, free: `{"n":9007199254740992}`},
	"free number beyond":       {args: `{"free":{"n":1e400}}`, want: badArgs, but: floats},
	"NaN":                      {args: `{"ratio":NaN}`, want: noJSON},
	"Infinity":                 {args: `{"ratio":-Infinity}`, want: noJSON},
	"number with a plus":       {args: `{"count":+1}`, want: noJSON},
	"number with a zero first": {args: `{"count":01}`, want: noJSON},
	"hexadecimal":              {args: `{"count":0x10}`, want: noJSON},
	"value not UTF-8":          {args: "{\"free\":{\"a\":\"\xff\"}}", want: noJSON},
	"value a lone surrogate":   {args: `{"free":{"a":"\udc00"}}`, want: noJSON},
	"value with a NUL":         {args: `{"free":{"a":"\u0000"}}`, want: kept, free: `{"a":"\u0000"}`},
	"value with a raw NUL":     {args: "{\"free\":{\"a\":\"\x00\"}}", want: noJSON},
	"deep enough":              {args: `{"free":{"a":` + nested(100) + `}}`, want: kept, free: `{"a":` + nested(100) + `}`},
	"too deep":                 {args: `{"free":{"a":` + nested(strictjson.DefaultMaxDepth) + `}}`, want: noJSON},
	"far too deep":             {args: `{"free":{"a":` + nested(1_000_000) + `}}`, want: noJSON},
	"arguments a list":         {args: `[]`, want: badArgs, but: anAction},
	"comment":                  {args: `{"count":1/**/}`, want: noJSON},
	"comma too many":           {args: `{"count":1,}`, want: noJSON},
	// Members beside the arguments.
	"arguments twice":         {params: `,"arguments":{"count":2}`, want: noJSON},
	"name of the tool twice":  {params: `,"$NAME":"keep"`, want: noJSON},
	"arguments in capitals":   {params: `,"Arguments":{"count":2}`, want: badEnvelope},
	"arguments with long s":   {params: `,"argument` + longS + `":{"count":2}`, want: badEnvelope},
	"arguments with a NUL":    {params: `,"arguments\u0000":{"count":2}`, want: badEnvelope},
	"NAME":                    {params: `,"$UPPERNAME":"other"`, want: badEnvelope},
	"member beside them":      {params: `,"odd":1`, want: badEnvelope},
	"session_id in capitals":  {params: `,"SESSION_ID":"nosuch"`, want: badEnvelope},
	"session_id with long s":  {params: `,"` + longS + `ession_id":"nosuch"`, want: badEnvelope},
	"huge number beside them": {params: `,"odd":` + manyNine, want: badEnvelope},
	// Members of the message itself.
	"envelope key twice":         {outside: `,"$KEY":1`, want: noJSON},
	"envelope key in capitals":   {outside: `,"$UPPER":1`, want: badEnvelope},
	"envelope key with a NUL":    {outside: `,"$KEY\u0000":1`, want: badEnvelope},
	"envelope key with a space":  {outside: `,"$KEY ":1`, want: badEnvelope},
	"envelope key unknown":       {outside: `,"odd":1`, want: badEnvelope},
	"envelope key with no name":  {outside: `,"":1`, want: badEnvelope},
	"envelope key with Kelvin":   {outside: `,"to` + kelvin + `en":1`, want: badEnvelope},
	"envelope with a huge value": {outside: `,"odd":` + manyNine, want: badEnvelope},
	// The text.
	"byte order mark":   {whole: func(m string) string { return "\ufeff" + m }, want: noJSON},
	"NUL behind":        {whole: func(m string) string { return m + "\x00" }, want: noJSON},
	"another behind":    {whole: func(m string) string { return m + " {}" }, want: noJSON},
	"cut off":           {whole: func(m string) string { return m[:len(m)-1] }, want: noJSON},
	"NULs between":      {whole: func(m string) string { return strings.ReplaceAll(m, `"`, "\"\x00") }, want: noJSON},
	"single quotes":     {whole: func(m string) string { return strings.ReplaceAll(m, `"`, `'`) }, want: noJSON},
	"white space round": {whole: func(m string) string { return " \t" + m + "\r " }, want: kept, free: `{"a":1}`},
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// A keyDoor is a door, in the words of its messages.
type keyDoor struct {
	call func(args, params, outside string) string
	// key is a member of the envelope, and name the one that has the tool's name.
	key, name string
	open      func(t *testing.T, srv *Server, base string) func(message string) (reply string)
	verdict   func(reply string) verdict
	socket    bool              // a text that is not UTF-8 closes it
	tolerant  map[string]string // kinds of members that are passed over, and why
}

const (
	inParams   = "params"
	inEnvelope = "envelope"
)

var keyDoors = map[string]keyDoor{
	"ws step": {
		key: "type", name: "tool_name", socket: true,
		call: func(args, params, outside string) string {
			return `{"type":"step","data":{"type":"call_tool","tool_name":"keep","arguments":` + args + params + `}` + outside + `}`
		},
		open: func(t *testing.T, _ *Server, base string) func(string) string { return dial(t, base+"/ws").ask },
		verdict: spelled(map[verdict]string{
			noJSON: `"code":"INVALID_JSON"`, badEnvelope: `"code":"VALIDATION_ERROR"`, badArgs: `"error_type":"invalid_args"`,
		}),
	},
	"POST /step": {
		key: "action", name: "tool_name", tolerant: map[string]string{inEnvelope: "the reference's requests take any member beside action"},
		call: func(args, params, outside string) string {
			return `{"action":{"type":"call_tool","tool_name":"keep","arguments":` + args + params + `}` + outside + `}`
		},
		open: func(t *testing.T, _ *Server, base string) func(string) string {
			return func(m string) string { return posted(t, base+"/step", m) }
		},
		verdict: spelled(map[verdict]string{
			noJSON: `422 {"detail":[{"type":"json_invalid"`, badEnvelope: `422 {"detail":[{"type":`, badArgs: `"error_type":"invalid_args"`,
		}),
	},
	"ws mcp frame": rpcDoor(true, func(m string) string { return `{"type":"mcp","data":` + m + `}` }, map[verdict]string{noJSON: `"code":"INVALID_JSON"`},
		func(t *testing.T, _ *Server, base string) func(string) string { return dial(t, base+"/ws").ask }),
	"ws /mcp": rpcDoor(true, nil, nil,
		func(t *testing.T, _ *Server, base string) func(string) string { return dial(t, base+"/mcp").ask }),
	"POST /mcp": rpcDoor(false, nil, nil, func(t *testing.T, _ *Server, base string) func(string) string {
		return func(m string) string { return posted(t, base+"/mcp", m) }
	}),
	"stdio": rpcDoor(false, nil, nil, func(t *testing.T, srv *Server, _ string) func(string) string { return asks(pipes(t, srv)) }),
	"ws /mcp initialised": agentDoor(true, func(t *testing.T, _ *Server, base string) func(string) string {
		c := dial(t, base+"/mcp")
		become(t, c)
		return c.ask
	}),
	"stdio initialised": agentDoor(false, func(t *testing.T, srv *Server, _ string) func(string) string {
		c := pipes(t, srv)
		become(t, c)
		return asks(c)
	}),
	"streamable JSON": agentDoor(false, func(t *testing.T, _ *Server, base string) func(string) string {
		id := rawInitialize(t, base+"/mcp", "2025-11-25")
		return func(m string) string {
			return posted(t, base+"/mcp", m, "Accept", "application/json, text/event-stream", "Mcp-Session-Id", id)
		}
	}),
	"streamable events": agentDoor(false, func(t *testing.T, _ *Server, base string) func(string) string {
		id := rawInitialize(t, base+"/mcp", "2025-11-25")
		return func(m string) string {
			return posted(t, base+"/mcp", m, "Accept", "text/event-stream", "Mcp-Session-Id", id)
		}
	}),
	"stateless": statelessDoor(),
}

// spelled sorts replies by what they contain; what has none of the marks is served.
func spelled(marks map[verdict]string) func(string) verdict {
	return func(reply string) verdict {
		for _, v := range []verdict{noJSON, badArgs, badEnvelope, badHeaders} {
			if marks[v] != "" && strings.Contains(reply, marks[v]) {
				return v
			}
		}
		if strings.Contains(reply, `"count":`) {
			return kept
		}
		return verdict("something else: " + reply)
	}
}

func posted(t *testing.T, url, body string, headers ...string) string {
	t.Helper()
	status, reply := post(t, url, body, headers...)
	return fmt.Sprint(status, " ", reply)
}

func asks(c talker) func(string) string {
	return func(m string) string { c.send(m); return c.receive() }
}

func rpcMessage(args, params, outside string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"keep","arguments":` + args + params + `}` + outside + `}`
}

// rpcDoor is a door for clients that have not initialised; wrap puts their messages into another's.
func rpcDoor(socket bool, wrap func(string) string, marks map[verdict]string, open func(*testing.T, *Server, string) func(string) string) keyDoor {
	d := keyDoor{key: "method", name: "name", socket: socket, open: open, call: rpcMessage, tolerant: map[string]string{inParams: inMCP}}
	if wrap != nil {
		d.call = func(args, params, outside string) string { return wrap(rpcMessage(args, params, outside)) }
	}
	all := map[verdict]string{noJSON: `"code":-32700`, badArgs: `"code":-32602`, badEnvelope: `"code":-32600`}
	for v, mark := range marks {
		all[v] = mark
	}
	d.verdict = spelled(all)
	return d
}

// agentDoor is a door for clients that have.
func agentDoor(socket bool, open func(*testing.T, *Server, string) func(string) string) keyDoor {
	d := rpcDoor(socket, nil, map[verdict]string{badArgs: `"openenv/error_type":"invalid_args"`}, open)
	d.tolerant = map[string]string{inParams: inMCP, inEnvelope: inMCP}
	return d
}

func statelessDoor() keyDoor {
	d := agentDoor(false, func(t *testing.T, _ *Server, base string) func(string) string {
		url := base + "/mcp?session_id=" + createSession(t, base)
		return func(m string) string {
			return posted(t, url, m, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", stateless, "Mcp-Method", "tools/call", "Mcp-Name", "keep")
		}
	})
	d.verdict = spelled(map[verdict]string{
		noJSON: `"code":-32700`, badArgs: `"openenv/error_type":"invalid_args"`, badEnvelope: `"code":-32600`, badHeaders: `"code":-32020`,
	})
	d.call = func(args, params, outside string) string {
		meta := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + stateless + `","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
		return rpcMessage(args, meta+params, outside)
	}
	return d
}

func (m hostileMessage) at(d keyDoor) string {
	args := m.args
	if args == "" {
		args = `{"free":{"a":1}}`
	}
	fill := strings.NewReplacer("$KEY", d.key, "$UPPERNAME", strings.ToUpper(d.name), "$UPPER", strings.ToUpper(d.key), "$NAME", d.name).Replace
	text := d.call(args, fill(m.params), fill(m.outside))
	if m.whole != nil {
		text = m.whole(text)
	}
	return text
}

// due is the verdict that a door must give.
func (m hostileMessage) due(name string, d keyDoor) verdict {
	if e, ok := m.but[name]; ok {
		return e.want
	}
	if m.want == badEnvelope && (m.params != "" && d.tolerant[inParams] != "" || m.outside != "" && d.tolerant[inEnvelope] != "") {
		return kept
	}
	return m.want
}

func TestOneVerdictOnHostileJSON(t *testing.T) {
	t.Parallel()
	for name, d := range keyDoors {
		t.Run(name, func(t *testing.T) {
			srv, base := start(t, safeEnv(), Options{})
			ask := d.open(t, srv, base)
			for what, m := range hostileMessages {
				text := m.at(d)
				if d.socket && strings.Contains(text, "\xff") {
					continue // such a text closes a socket: see TestRFC6455
				}
				reply := ask(text)
				if got, want := d.verdict(reply), m.due(name, d); got != want {
					t.Errorf("%s: %.300s\nwant %s, got %s: %.400s", what, text, want, got, reply)
				} else if got == kept {
					m.holds(t, what, reply)
				}
			}
		})
	}
}

// holds holds a receipt to what was given.
func (m hostileMessage) holds(t *testing.T, what, reply string) {
	t.Helper()
	free := m.free
	if free == "" {
		free = `{"a":1}`
	}
	if want := fmt.Sprintf(`{"count":%d,"free":%s}`, m.count, free); !strings.Contains(reply, want) {
		t.Errorf("%s: got %.600s, want %s", what, reply, want)
	}
}
