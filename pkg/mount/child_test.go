package mount_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/pkg/mount"
)

// childVariable names the behaviour of this binary as a mounted server.
const childVariable = "OPENENV_TEST_CHILD"

// addrVariable is where a grandchild says that it is there.
const addrVariable = "OPENENV_TEST_ADDR"

// child is the connector of a server of that behaviour, in a process of its own.
func child(t *testing.T, kind string) mount.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := mount.Command(self)
	p.Env = []string{childVariable + "=" + kind, "GORACE=atexit_sleep_ms=0"} // the race detector's exit takes a second
	p.Grace = 100 * time.Millisecond
	return p
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
	Error json.RawMessage `json:"error"`
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func tool(name string) string {
	return `{"name":"` + name + `","description":"` + name + `","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#",` +
		`"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}}`
}

var childTools = []string{"echo", "count", "crash", "fork", "hang", "garbage", "invalid", "gone", "unknown", "broken", "ask", "progress", "refuse", "last"}

// runChild serves MCP by hand, so that it can misbehave.
func runChild(kind string) {
	switch kind {
	case "mute": // never answers
		fmt.Fprintln(os.Stderr, "I say nothing")
		select {}
	case "dead": // is gone before it has answered
		os.Exit(4)
	case "noise":
		say("{ this is no message }")
		select {}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "grandchild": // outlives its parent, and holds its pipes
		signal.Ignore(syscall.SIGTERM)
		conn, err := net.Dial("tcp", os.Getenv(addrVariable))
		if err != nil {
			panic(err)
		}
		os.NewFile(3, "ready").Close()
		_, _ = conn.Read(make([]byte, 1)) // the test never writes: returns when the test is over
		os.Exit(0)
	case "banner":
		say("Welcome to the server!\n")
	}
	serveChild(kind)
	if kind == "stubborn" {
		select {}
	}
}

func serveChild(kind string) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	count, listed := 0, childTools
	for in.Scan() {
		var m message
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			panic(err)
		}
		fail := func(code int, text string) {
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"%s"}}`, m.ID, code, text)
		}
		answer := func(format string, args ...any) {
			say(`{"jsonrpc":"2.0","id":%s,"result":`+format+`}`, append([]any{m.ID}, args...)...)
		}
		text := func(s string) { answer(`{"content":[{"type":"text","text":%q}]}`, s) }
		switch m.Method {
		case "initialize":
			answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"child","version":"1"}}`)
		case "tools/list":
			var all []string
			for _, name := range listed {
				all = append(all, tool(name))
			}
			if kind == "odd" {
				all = append(all, `{"name":"odd","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}}`, `{"name":"list","inputSchema":{"type":"array"}}`)
			}
			answer(`{"tools":[%s]}`, strings.Join(all, ","))
		case "notifications/cancelled":
			fmt.Fprintf(os.Stderr, "cancelled %s\n", m.Params.RequestID)
			if kind == "deaf" {
				select {} // reads no more
			}
		case "": // the answer to ask
			answer := fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, m.Error)
			say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, strings.Trim(string(m.ID), `"`), answer)
		case "tools/call":
			switch m.Params.Name {
			case "echo":
				answer(`{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"text","text":"hi"}],"structuredContent":%s,"_meta":{"big":9007199254740993}}`, m.Params.Arguments)
			case "count":
				count++
				answer(`{"content":[],"structuredContent":{"n":%d}}`, count)
			case "crash":
				os.Exit(3)
			case "fork":
				self, _ := os.Executable()
				c := exec.Command(self)
				c.Env = append(os.Environ(), childVariable+"=grandchild")
				c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
				r, w, err := os.Pipe()
				if err != nil {
					panic(err)
				}
				c.ExtraFiles = []*os.File{w}
				if strings.Contains(kind, "setsid") {
					c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				}
				if err := c.Start(); err != nil {
					panic(err)
				}
				w.Close()
				_, _ = r.Read(make([]byte, 1)) // until it is ready
				os.Exit(0)
			case "hang":
				fmt.Fprintln(os.Stderr, "hanging")
			case "garbage":
				say(`{"jsonrpc":`)
			case "invalid":
				fail(-32602, "n is odd")
			case "gone":
				listed = nil
				fail(-32602, "no such tool")
			case "unknown":
				fail(-32601, "no such method")
			case "broken":
				fail(-32000, "disk on fire")
			case "ask":
				say(`{"jsonrpc":"2.0","id":"%s","method":"elicitation/create","params":{"message":"who are you?","requestedSchema":{"type":"object"}}}`, m.ID)
			case "progress":
				for i := range 3 {
					if m.Params.Meta.ProgressToken != nil {
						say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":"m"}}`, m.Params.Meta.ProgressToken, i)
					}
				}
				text("done")
			case "refuse":
				answer(`{"content":[{"type":"text","text":"no"}],"isError":true}`)
			case "last": // answers, and is gone
				text("bye")
				os.Exit(0)
			}
		}
	}
}
