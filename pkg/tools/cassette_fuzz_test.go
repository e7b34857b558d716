package tools

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

const cassetteHead = `{"openenv_cassette":1}` + "\n"

// cassetteLines are lines of each kind, as recorders write them.
var cassetteLines = []string{
	`{"session":1,"episode":0,"tool":"fetch","arguments":{"limit":10,"url":"a"},"value":{"text":"é\n","n":9007199254740993}}`,
	`{"session":1,"episode":0,"tool":"fetch","arguments":{},"value":null}`,
	`{"session":1,"episode":2,"tool":"fetch","arguments":{},"failure":"no such page"}`,
	`{"session":2,"episode":1,"tool":"fetch","arguments":{"key":"[secret]"},"error":{"type":"execution_error","message":"dead"}}`,
	`{"session":2,"episode":1,"tool":"fetch","arguments":{},"error":{"type":"invalid_args","message":"invalid arguments: a.0: no","fields":[{"type":"value_error","loc":["a",0],"msg":"no","input":5.0}]}}`,
	`{"session":3,"episode":0,"tool":"pic","arguments":{},"result":{"content":[{"type":"image","mimeType":"image/png","data":"cGl4ZWxz"}],"_meta":{"n":9007199254740993}}}`,
	`{"session":3,"episode":0,"tool":"pic","arguments":{},"result":{"content":[],"structuredContent":{"a":[1e400]},"isError":true}}`,
	`{"session":3,"episode":0,"tool":"pic","arguments":{},"result":{"_metA":{"n":1},"StructuredContent":{"a":1}}}`, // this has found
}

// FuzzReadCassette: whatever the bytes are, a cassette is either refused with the line that is wrong, or each of its calls
// can be looked at, written again and read to the same.
func FuzzReadCassette(f *testing.F) {
	f.Add([]byte(cassetteHead + strings.Join(cassetteLines, "\n") + "\n"))
	for _, line := range cassetteLines {
		f.Add([]byte(cassetteHead + line + "\n"))
		f.Add([]byte(cassetteHead + line))
	}
	for _, text := range []string{"", "\n", "{}\n", cassetteHead, cassetteHead + cassetteHead, cassetteHead + "\n", `{"openenv_cassette":2}` + "\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := ReadCassette(bytes.NewReader(b))
		if err := c.Err(); err != nil {
			if at, ok := errors.AsType[*CassetteError](err); !ok || at.Line < 1 || at.Line > 1+bytes.Count(b, []byte("\n")) {
				t.Fatalf("error %#v", err)
			}
			return
		}
		again := []byte(cassetteHead)
		for _, e := range c.tape.entries {
			if e.Error != nil {
				_ = e.failed()
			} else if e.Failure == nil {
				_, _ = e.value()
				if _, err := wholeResult(e); err != nil {
					t.Fatalf("line %d: %v", e.line, err)
				}
			}
			line, err := strictjson.Marshal(e.cassetteCall)
			if err != nil {
				t.Fatalf("line %d cannot be written: %v", e.line, err)
			}
			again = append(append(again, line...), '\n')
		}
		d := ReadCassette(bytes.NewReader(again))
		if d.Err() != nil || len(d.tape.entries) != len(c.tape.entries) {
			t.Fatalf("%q came back as %d calls, %v", again, len(c.tape.entries), d.Err())
		}
		for i, e := range d.tape.entries {
			was, _ := strictjson.Marshal(c.tape.entries[i].cassetteCall)
			now, _ := strictjson.Marshal(e.cassetteCall)
			if !bytes.Equal(was, now) {
				t.Fatalf("%s came back as %s", was, now)
			}
		}
	})
}
