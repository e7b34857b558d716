package transcript

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
)

// serveStub answers with what it was sent and an id that differs from request to request. Words ask for more.
func serveStub(t *testing.T, words []string) string {
	requests := 0
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ws" {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			for {
				kind, data, err := conn.Read(r.Context())
				switch {
				case err != nil:
					return
				case string(data) == "bye":
					conn.Close(websocket.StatusGoingAway, "as you wish")
					return
				}
				conn.Write(r.Context(), kind, data)
				if words[0] == "talkative" {
					conn.Write(r.Context(), kind, []byte("and another thing"))
				}
			}
		}
		requests++
		if tag := r.Header.Get("X-Tag"); tag != "" {
			w.Header().Set("X-Tag", tag)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(200 + requests)
		fmt.Fprintf(w, `{"id":"x%dx","path":%q}`, requests, r.URL.Path)
	}))
	t.Cleanup(hs.Close)
	return hs.URL
}

var stub = Options{Serve: serveStub, Names: map[string]*regexp.Regexp{"ID": regexp.MustCompile(`"id":"(x\d+x)"`)}}

// A played file has the client's part as it was, and the server's as it came.
func TestPlay(t *testing.T) {
	const before = `A conversation.

-- server stub --
-- > GET /a --
X-Tag: one

-- < 500 --
# A note.
-- > POST /b/$ID1 --
-- < --
-- > GET /c --
-- < 206 eventually --
Content-Type: application/json

{"id":"$ID3","path":"/c"}
-- open s /ws --
-- > s --
hello
-- < s --
-- > s quoted --
"tab\there"
-- < s --
what was here before
-- > s binary --
"\xff"
-- < s --
-- > s --
bye
-- < s --
`
	const after = `A conversation.

-- server stub --
-- > GET /a --
X-Tag: one

-- < 201 --
Content-Type: application/json
X-Tag: one

{"id":"$ID1","path":"/a"}
# A note.
-- > POST /b/$ID1 --
-- < 202 --
Content-Type: application/json

{"id":"$ID2","path":"/b/$ID1"}
-- > GET /c --
-- < 206 eventually --
Content-Type: application/json

{"id":"$ID3","path":"/c"}
-- open s /ws --
-- > s --
hello
-- < s --
hello
-- > s quoted --
"tab\there"
-- < s --
tab	here
-- > s binary --
"\xff"
-- < s binary --
"\xff"
-- > s --
bye
-- < s close 1001 --
as you wish
`
	got, err := play(t, parse(before), stub)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, format(got)); diff != "" {
		t.Errorf("the played file (-want +got):\n%s", diff)
	}
	if again, err := play(t, got, stub); err != nil || format(again) != after {
		t.Errorf("played again: %v\n%s", err, format(again))
	}
}

func TestPlayRefuses(t *testing.T) {
	for _, c := range []struct{ name, sections, want string }{
		{"no prose", "", "want prose"},
		{"no server", "Prose.\n-- > GET /a --\n", "section server"},
		{"an unknown section", "Prose.\n-- server stub --\n-- shout --\n", "line 3, -- shout --"},
		{"an unknown socket", "Prose.\n-- server stub --\n-- > s --\nhello\n", "line 3"},
		{"an answer without a request", "Prose.\n-- server stub --\n-- < 200 --\n", "line 3"},
		{"two requests at once", "Prose.\n-- server stub --\n-- > GET /a --\n-- > GET /b --\n", "line 4"},
		{"a request without an answer", "Prose.\n-- server stub --\n-- > GET /a --\n", "without its answer"},
		{"a door that is no socket", "Prose.\n-- server stub --\n-- open s /a --\n", "line 3"},
		{"a message that is not shown", "Prose.\n-- server talkative --\n-- open s /ws --\n-- > s --\nhello\n-- < s --\nhello\n", "does not show what came over socket s: and another thing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := play(t, parse(c.sections), stub)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestFormatParse(t *testing.T) {
	for _, text := range []string{
		"", "Prose.\n", "Prose.\n\n-- a --\n", "-- a --\n\n-- b --\n", "-- a --\n# note\n-- b --\nbody\n",
		"-- a --\nbody\n\nmore\n\n# note\n# and\n\n# more\n-- b c  d --\n-- --\n",
	} {
		if got := format(parse(text)); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
