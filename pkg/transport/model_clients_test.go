package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"
)

// The clients of a play.

func (p *play) dial(peer *modelPeer, path string) {
	p.m.peers = append(p.m.peers, peer)
	c := &playClient{heard: make(chan string, 64)}
	p.clients[peer] = c
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := p.ln.Dial(ctx, network, addr)
		if err == nil {
			c.conn = &freezing{Conn: conn, closed: make(chan struct{})}
			conn = c.conn
		}
		return conn, err
	}}}
	var err error
	c.ws, _, err = websocket.Dial(context.Background(), "ws://localhost"+path, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		p.t.Fatal(err)
	}
	p.group.Go(func() {
		for {
			_, b, err := c.ws.Read(context.Background())
			if err != nil {
				c.ws.CloseNow()
				return
			}
			select {
			case c.heard <- string(b):
			default:
			}
		}
	})
}

func (p *play) send(c *playClient, text string) {
	p.drain(c, func(string) {})
	_ = c.ws.Write(context.Background(), websocket.MessageText, []byte(text)) // what the server has closed meanwhile is in the model
}

func (p *play) drain(c *playClient, f func(string)) {
	for {
		select {
		case text := <-c.heard:
			f(text)
		default:
			return
		}
	}
}

// post opens a session over HTTP.
func (p *play) post(peer *modelPeer) {
	body := `{"jsonrpc":"2.0","id":1,"method":"openenv/session/create"}`
	if peer.init {
		body = initializeBody
	}
	p.fire(http.MethodPost, "/mcp", body, nil, func(res *http.Response, text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.learnt = append(p.learnt, func() {
			var r struct{ Result struct{ Session_id string } }
			if json.Unmarshal([]byte(text), &r) == nil && r.Result.Session_id != "" {
				p.ids[peer.session] = r.Result.Session_id
			}
			if id := res.Header.Get("Mcp-Session-Id"); id != "" && res.StatusCode == http.StatusOK {
				p.agents[peer.session] = id
			}
		})
	})
}

func (p *play) postCall(a act) {
	s, id := p.named(a.A)
	q := &playPost{c: &modelCall{length: a.Time, ignore: a.Flag}}
	body := func(id string) string { // a client's ids are its own, and each is used once
		text := rpcCall("nap", fmt.Sprintf(`{"time":%d,"ignore":%t}`, a.Time, a.Flag), id)
		return strings.Replace(text, `"id":7`, fmt.Sprintf(`"id":%d`, 100+len(p.posts)), 1)
	}
	if s != nil {
		q.cancel = p.fire(http.MethodPost, "/mcp", body(id), nil, nil)
	} else if s, id = p.initialized(a.A); s != nil {
		// Its end does not cancel the call: a client may come back for the answer.
		p.fire(http.MethodPost, "/mcp", body(""), []string{"Mcp-Session-Id", id}, nil)
	}
	if s == nil || s.state != modelOpen {
		return
	}
	q.s = s
	p.posts = append(p.posts, q)
	p.m.call(s, q.c)
}

// fire sends a request and does not wait for the answer, which done gets. The result cancels it.
func (p *play) fire(method, path, body string, headers []string, done func(*http.Response, string)) context.CancelFunc {
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	p.group.Go(func() {
		defer cancel()
		res, err := p.web.Do(r)
		if err != nil {
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		if done != nil {
			done(res, string(b))
		}
	})
	return cancel
}

// A freezing is a connection whose reader can be stopped.
type freezing struct {
	net.Conn
	frozen atomic.Bool
	once   sync.Once
	closed chan struct{}
}

func (f *freezing) freeze() { f.frozen.Store(true) }

func (f *freezing) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if f.frozen.Load() {
		<-f.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (f *freezing) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Conn.Close()
}
