package transport

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// Resets with odd keys and values, by both doors: see keys_test.go.

type opened struct {
	Seed *int64          `json:"seed"`
	Free json.RawMessage `json:"free"`
}

// reset says what it was given.
func (safe) reset(_ context.Context, r gym.ResetRequest[map[string]any]) (opened, error) {
	free, err := strictjson.Marshal(r.Options)
	return opened{r.Seed, free}, err
}

// hostileResets are the members of a reset, and what has come of them, or its verdict. Members that are no seed and no
// episode_id are options, whatever their names look like: trainers send what their data sets hold.
var hostileResets = map[string]struct {
	members, opened string
	want            verdict
}{
	"nothing odd":              {`"seed":5`, `"seed":5,"free":{}`, kept},
	"seed in capitals":         {`"seed":5,"SEED":6,"Seed":7`, `"seed":5,"free":{"SEED":6,"Seed":7}`, kept},
	"seed with long s":         {`"` + longS + `eed":6`, `"seed":null,"free":{"` + longS + `eed":6}`, kept},
	"seed with a NUL":          {`"seed":5,"seed\u0000":6`, `"seed":5,"free":{"seed\u0000":6}`, kept},
	"seed escaped":             {`"s\u0065ed":5`, `"seed":5,"free":{}`, kept},
	"seed twice":               {`"seed":5,"seed":6`, "", noJSON},
	"seed twice, once escaped": {`"seed":5,"s\u0065ed":6`, "", noJSON},
	"seed spelled 5.0":         {`"seed":5.0`, `"seed":5,"free":{}`, kept},
	"seed a fraction":          {`"seed":1.5`, "", badEnvelope},
	"seed a boolean":           {`"seed":true`, "", badEnvelope},
	"seed of 2^53+1":           {`"seed":9007199254740993`, `"seed":9007199254740993,"free":{}`, kept},
	"seed NaN":                 {`"seed":NaN`, "", noJSON},
	"option too long":          {`"n":` + manyNine, "", badEnvelope},
	"option beyond":            {`"n":1e400`, "", badEnvelope},
	"option of two cases":      {`"a":1,"A":2`, `"free":{"A":2,"a":1}`, kept},
	"option twice, deep down":  {`"a":[{"b":1,"b":2}]`, "", noJSON},
	"option not UTF-8":         {"\"a\":\"\xff\"", "", noJSON},
	"option deep enough":       {`"a":` + nested(100), `"free":{"a":` + nested(100) + `}`, kept},
	"option too deep":          {`"a":` + nested(strictjson.DefaultMaxDepth), "", noJSON},
}

func TestOneVerdictOnHostileResets(t *testing.T) {
	t.Parallel()
	_, base := start(t, safeEnv(), Options{})
	ws := dial(t, base+"/ws")
	for name, d := range map[string]keyDoor{
		"ws reset": {
			call: func(members, _, _ string) string { return `{"type":"reset","data":{` + members + `}}` },
			open: func(*testing.T, *Server, string) func(string) string { return ws.ask }, socket: true,
			verdict: spelled(map[verdict]string{noJSON: `"code":"INVALID_JSON"`, badEnvelope: `"code":"VALIDATION_ERROR"`}),
		},
		"POST /reset": {
			call: func(members, _, _ string) string { return `{` + members + `}` },
			open: func(t *testing.T, _ *Server, base string) func(string) string {
				return func(m string) string { return posted(t, base+"/reset", m) }
			},
			verdict: spelled(map[verdict]string{noJSON: `422 {"detail":[{"type":"json_invalid"`, badEnvelope: `422 {"detail":[{"type":`}),
		},
	} {
		ask := d.open(t, nil, base)
		for what, r := range hostileResets {
			text := d.call(r.members, "", "")
			if d.socket && strings.Contains(text, "\xff") {
				continue
			}
			reply := ask(text)
			got := d.verdict(reply)
			if strings.Contains(reply, `"observation":{`) {
				got = kept
			}
			if got != r.want || got == kept && !strings.Contains(reply, r.opened) {
				t.Errorf("%s: %s: %.300s got %s: %.400s; want %s %s", name, what, text, got, reply, r.want, r.opened)
			}
		}
	}
}

// A body that is compressed is refused, whatever is in it, and read no further.
func TestCompressedBodiesAreRefused(t *testing.T) {
	srv, base := start(t, labEnv(), Options{})
	for _, path := range []string{"/mcp", "/step", "/reset", "/mcp?session_id=nosuch"} {
		for _, encoding := range []string{"gzip", "GZIP", "deflate", "br", "zstd", "identity, gzip", "nosuch"} {
			for _, body := range []string{"", rpcCall("say", `{"text":"x"}`, ""), "\x1f\x8b\x08\x00"} {
				status, reply := post(t, base+path, body, "Content-Encoding", encoding)
				if status != http.StatusUnsupportedMediaType || !strings.Contains(reply, "Content-Encoding") {
					t.Errorf("%s in %s: got %d %s", path, encoding, status, reply)
				}
			}
		}
		if status, reply := post(t, base+path, `{}`, "Content-Encoding", "identity"); status == http.StatusUnsupportedMediaType {
			t.Errorf("%s: got %d %s", path, status, reply)
		}
	}
	active(t, srv, 0)
}
