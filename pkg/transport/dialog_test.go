package transport

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// Clients of MCP that have a connection of their own: a WebSocket, or standard input and output.

// A socketTransport is the client's end of a WebSocket, for the SDK.
type socketTransport struct{ url string }

func (t socketTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(t.url, "http"), &websocket.DialOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		return nil, err
	}
	if c.Subprotocol() != "mcp" {
		return nil, errors.New("the server does not speak the subprotocol mcp")
	}
	c.SetReadLimit(DefaultMaxMessage)
	return socketConn{c}, nil
}

type socketConn struct{ *websocket.Conn }

func (c socketConn) Read(context.Context) (jsonrpc.Message, error) {
	_, text, err := c.Conn.Read(context.Background())
	if err != nil {
		return nil, io.EOF
	}
	return jsonrpc.DecodeMessage(text)
}

func (c socketConn) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return c.Conn.Write(context.Background(), websocket.MessageText, text)
}

func (c socketConn) Close() error      { return c.Conn.CloseNow() }
func (c socketConn) SessionID() string { return "" }

// connectOver connects the Go SDK's client, which initialises.
func connectOver(t *testing.T, o *mcp.ClientOptions, via mcp.Transport) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "suite", Version: "1"}, o)
	cs, err := client.Connect(t.Context(), via, &mcp.ClientSessionOptions{ProtocolVersion: statefulVersions[0]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

// A pipeClient is the client's end of standard input and output.
type pipeClient struct {
	t   *testing.T
	in  *io.PipeWriter // the server's input
	out *io.PipeReader
	buf *bufio.Reader
}

func newPipeClient(t *testing.T, in *io.PipeWriter, out *io.PipeReader) *pipeClient {
	return &pipeClient{t, in, out, bufio.NewReader(out)}
}

// pipes has the server serve a pair of pipes. When the test ends they close, and the server must be done with them.
func pipes(t *testing.T, srv *Server) *pipeClient {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	c := newPipeClient(t, toServer, fromServer)
	served := make(chan error, 1)
	go func() { served <- srv.serveStdio(context.Background(), in, out) }()
	t.Cleanup(func() {
		c.in.Close()
		c.out.Close()
		if err := within(t, "the end", served); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *pipeClient) transport() mcp.Transport { return &mcp.IOTransport{Reader: c.out, Writer: c.in} }

func (c *pipeClient) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *pipeClient) receive() string {
	c.t.Helper()
	line, err := c.buf.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

// A talker is the client's end of a dialog.
type talker interface {
	send(text string)
	receive() string
}

// A kind of dialog is opened on a session of its own, the server's first, s1.
var dialogs = map[string]struct {
	talk    func(t *testing.T, srv *Server, base string) talker
	connect func(t *testing.T, srv *Server, base string) mcp.Transport
}{
	"socket": {
		func(t *testing.T, _ *Server, base string) talker { return dial(t, base+"/mcp") },
		func(_ *testing.T, _ *Server, base string) mcp.Transport { return socketTransport{base + "/mcp"} },
	},
	"stdio": {
		func(t *testing.T, srv *Server, _ string) talker { return pipes(t, srv) },
		func(t *testing.T, srv *Server, _ string) mcp.Transport { return pipes(t, srv).transport() },
	},
}

// eachDialog runs a test on a raw connection of each kind.
func eachDialog(t *testing.T, env gym.Definition, test func(t *testing.T, srv *Server, base string, c talker)) {
	for name, d := range dialogs {
		t.Run(name, func(t *testing.T) {
			srv, base := start(t, env, counted())
			test(t, srv, base, d.talk(t, srv, base))
		})
	}
}

// become has the client initialise.
func become(t *testing.T, c talker) {
	t.Helper()
	c.send(initializeBody)
	if got := c.receive(); !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
		t.Fatalf("got %s", got)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// want sends a text, and wants an answer that has each of the words.
func want(t *testing.T, c talker, text string, words ...string) {
	t.Helper()
	c.send(text)
	wantNext(t, c, words...)
}

func wantNext(t *testing.T, c talker, words ...string) {
	t.Helper()
	got := c.receive()
	for _, w := range words {
		if !strings.Contains(got, w) {
			t.Errorf("got %.300s, want %s", got, w)
		}
	}
}

const bareMark = `"structured_content"` // is in bare results alone

// wantBare holds a dialog to be bare, and to serve.
func wantBare(t *testing.T, c talker) {
	t.Helper()
	want(t, c, `{"jsonrpc":"2.0","id":71,"method":"ping"}`, `"id":71`, "-32601")
	want(t, c, strings.Replace(rpcCall("say", `{"text":"bare"}`, ""), `"id":7`, `"id":72`, 1), `"id":72`, bareMark)
}

// What a tool asks and tells its client goes out on the client's own connection, and the answers come back.
func TestDialogAsksAndTells(t *testing.T) {
	env := ownEnv(nil, func(d *desk) {
		addTool(d, "ask", func(ctx context.Context, r *mcp.CallToolRequest) *mcp.CallToolResult {
			for i := range 3 {
				if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)}); err != nil {
					return &mcp.CallToolResult{IsError: true}
				}
			}
			res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "name?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
			if err == nil {
				err = r.Session.Ping(ctx, nil)
			}
			if err != nil || r.Extra == nil {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(err)}}}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(res.Content["name"])}}}
		})
	})
	for name, d := range dialogs {
		for _, version := range []string{statefulVersions[0], stateless} {
			t.Run(name+"/"+version, func(t *testing.T) {
				srv, base := start(t, env, counted())
				told := make(chan float64, 3)
				client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params.Progress },
					ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
					},
				})
				cs, err := client.Connect(t.Context(), d.connect(t, srv, base), &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer cs.Close()
				if v := cs.InitializeResult().ProtocolVersion; v != statefulVersions[0] {
					t.Errorf("version %s", v)
				}
				params := &mcp.CallToolParams{Name: "ask"}
				params.SetProgressToken("p")
				res, err := cs.CallTool(t.Context(), params)
				if err != nil || res.IsError || res.Content[0].(*mcp.TextContent).Text != "Ada" {
					t.Fatalf("got %s, %v", jsonOf(t, res), err)
				}
				for i := range 3 {
					if got := within(t, "the progress", told); got != float64(i) {
						t.Errorf("progress %v, want %d", got, i)
					}
				}
			})
		}
	}
}

// A client that asks for the stateless revision when it initialises gets the newest of the others, and is asked like them.
func TestInitializeWithTheStatelessRevision(t *testing.T) {
	env := ownEnv(nil, func(d *desk) {
		addTool(d, "ask", func(ctx context.Context, r *mcp.CallToolRequest) *mcp.CallToolResult {
			return &mcp.CallToolResult{IsError: r.Session.Ping(ctx, nil) != nil || r.Session.InitializeParams().ProtocolVersion >= stateless}
		})
	})
	eachDialog(t, env, func(t *testing.T, _ *Server, _ string, c talker) {
		want(t, c, strings.Replace(initializeBody, "2025-11-25", stateless, 1), `"protocolVersion":"2025-11-25"`)
		want(t, c, rpcCall("ask", "{}", ""), `"method":"ping"`, `"id":1`)
		c.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		got := c.receive()
		if strings.Contains(got, "isError") || strings.Contains(got, "resultType") {
			t.Errorf("got %s", got)
		}
		want(t, c, `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, "-32022", `"id":2`)
	})
}

func TestDialogCancel(t *testing.T) {
	eachDialog(t, labEnv(), func(t *testing.T, srv *Server, _ string, c talker) {
		become(t, c)
		c.send(rpcCall("wait", "{}", ""))
		s := live(t, srv, labSession)
		waitFor(t, "the call", func() bool { return s.Busy() == 1 })
		want(t, c, `{"jsonrpc":"2.0","id":8,"method":"ping"}`, `"id":8`, `"result":{}`) // reading goes on
		want(t, c, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, `"id":7`, `"error"`)
		want(t, c, rpcCall("say", `{"text":"free"}`, ""), `"id":7`, `"text":"free"`)
	})
}

// Requests beyond the bound are refused, and those within it are answered.
func TestDialogFlood(t *testing.T) {
	eachDialog(t, labEnv(), func(t *testing.T, srv *Server, _ string, c talker) {
		become(t, c)
		const more = 10
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range maxUnanswered + more {
				c.send(strings.Replace(rpcCall("wait", "{}", ""), `"id":7`, fmt.Sprintf(`"id":%d`, i), 1))
			}
			c.send(strings.Replace(rpcCall("wait", "{}", ""), `"id":7`, `"id":0`, 1)) // twice
		})
		for range more {
			wantNext(t, c, "-32000", "64 requests of this connection are under way")
		}
		wantNext(t, c, `"id":0`, "-32600")
		wg.Wait()
		s := live(t, srv, labSession)
		for i := range maxUnanswered {
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
			wantNext(t, c, fmt.Sprintf(`"id":%d,`, i), `"error"`)
		}
		waitFor(t, "the calls' end", func() bool { return s.Busy() == 0 })
		want(t, c, rpcCall("say", `{"text":"free"}`, ""), `"text":"free"`)
	})
}

// Notifications that wait for an author's handler are bounded; the others are dropped, and the connection goes on.
func TestDialogNotificationFlood(t *testing.T) {
	open := make(gate)
	entered := make(chan struct{}, 1000)
	//lint:ignore SA1019 clients of the revisions up to 2025-11-25 send it
	env := ownEnv(&mcp.ServerOptions{RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) {
		entered <- struct{}{}
		<-open
	}}, func(*desk) {})
	eachDialog(t, env, func(t *testing.T, _ *Server, _ string, c talker) {
		become(t, c)
		for i := range 5 { // what comes between them makes no room
			for range 100 {
				c.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
			}
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`, i))
		}
		want(t, c, `{"jsonrpc":"2.0","id":1,"method":"nosuch"}`, "-32601") // all have been taken
		for range maxNotices {
			within(t, "a notification", entered)
			open <- struct{}{}
		}
		for range 5 { // in any order
			wantNext(t, c, `"id":"p`, `"result":{}`)
		}
		if n := len(entered); n != 0 {
			t.Errorf("%d notifications more than %d were kept", n, maxNotices)
		}
		go func() { open <- struct{}{} }()
		c.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`) // there is room again
		within(t, "a notification", entered)
		want(t, c, rpcCall("say", `{"text":"x"}`, ""), `"said":"x"`)
	})
}

// Nothing that an agent sends takes the room of what cancels a request.
func TestDialogCancelAmongTheBroken(t *testing.T) {
	open := make(gate)
	//lint:ignore SA1019 clients of the revisions up to 2025-11-25 send it
	env := ownEnv(&mcp.ServerOptions{RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) { <-open }}, func(d *desk) {
		mcp.AddTool(d.server, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		})
	})
	for name, broken := range map[string]func(i int) string{
		"a call without a name": func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":5}}`, 100+i)
		},
		"progress of no call": func(int) string {
			return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[]}}`
		},
		"a cancel of no call": func(int) string {
			return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}`
		},
		"a cancel of one ended": func(int) string {
			return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`
		},
		"what waits": func(int) string { return `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}` },
	} {
		t.Run(name, func(t *testing.T) {
			eachDialog(t, env, func(t *testing.T, srv *Server, _ string, c talker) {
				become(t, c)
				waiting(t, srv, c)
				for i := range 3 * maxNotices {
					c.send(broken(i))
					if strings.Contains(broken(i), `"id"`) {
						wantNext(t, c, fmt.Sprintf(`"id":%d`, 100+i), `"error"`)
					}
				}
				c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}`)
				wantNext(t, c, `"id":7`)
				for free := false; !free; {
					select {
					case open <- struct{}{}:
					case <-time.After(100 * time.Millisecond):
						free = true
					}
				}
				want(t, c, rpcCall("say", `{"text":"x"}`, ""), `"said":"x"`)
			})
		})
	}
}

// The requests that are under way hold no more together than one message may.
func TestDialogBytesUnderWay(t *testing.T) {
	const limit = 10_000
	for name, d := range dialogs {
		t.Run(name, func(t *testing.T) {
			srv, base := start(t, labEnv(), Options{MaxMessage: limit, Sessions: counted().Sessions})
			c := d.talk(t, srv, base)
			become(t, c)
			long := func(id int, size int) string {
				return strings.Replace(rpcCall("wait", `{`+strings.Repeat(" ", size)+`}`, ""), `"id":7`, fmt.Sprintf(`"id":%d`, id), 1)
			}
			c.send(long(1, 4000))
			c.send(long(2, 4000))
			want(t, c, long(3, 4000), `"id":3`, "-32000", "would hold over 10000 bytes")
			want(t, c, `{"jsonrpc":"2.0","id":4,"method":"ping"}`, `"id":4`, `"result":{}`)
		})
	}
}
