package transcript

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the server's part of transcripts")

// Options say what a transcript is played against.
type Options struct {
	// Serve starts a server as the words of the server section say and returns its base URL. It stops the server when the
	// test ends.
	Serve func(t *testing.T, words []string) (base string)
	// Names are the patterns of values that differ from run to run; the first group of each is the value.
	Names map[string]*regexp.Regexp
}

// patience is how long the server may take for one section.
const patience = 10 * time.Second

// Run plays the file at path.
func Run(t *testing.T, path string, o Options) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := parse(string(text))
	got, err := play(t, want, o)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(format(got)), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i, g := range got {
		if w := want[i]; g != w {
			t.Errorf("%s:%d: the server's part differs (-want +got):\n%s", path, w.line, cmp.Diff(w.name+"\n"+w.body, g.name+"\n"+g.body))
		}
	}
}

// play returns the file with the server's part as it came.
func play(t *testing.T, file []section, o Options) (got []section, err error) {
	if len(file) < 2 || file[0].body == "" || !strings.HasPrefix(file[1].name, "server ") {
		return nil, errors.New("want prose, then a section server")
	}
	conns := &http.Transport{DisableCompression: true}
	t.Cleanup(conns.CloseIdleConnections)
	p := &player{
		base:   o.Serve(t, strings.Fields(file[1].name)[1:]),
		client: &http.Client{Transport: conns, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		names:  names{o.Names, map[string]string{}}, sockets: map[string]*websocket.Conn{},
	}
	got = slices.Clone(file)
	for i := 2; i < len(got) && err == nil; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err = p.play(ctx, &got[i]); err != nil {
			err = fmt.Errorf("line %d, -- %s --: %w", file[i].line, file[i].name, err)
		}
		cancel()
	}
	return got, errors.Join(err, p.finish())
}

// A player plays the sections of one file.
type player struct {
	base    string
	client  *http.Client
	names   names
	sockets map[string]*websocket.Conn
	request func(context.Context) (status, answer string, err error) // the one that awaits its answer, or nil
}

var isMethod = regexp.MustCompile(`^[A-Z]{3,}$`)

// play plays one section. The server's part becomes what came.
func (p *player) play(ctx context.Context, s *section) (err error) {
	w := append(strings.Fields(s.name), "", "", "")
	body := p.names.show(s.body)
	conn := p.sockets[w[1]]
	switch {
	case w[0] == "open":
		header, _ := splitHead(body)
		conn, _, err := websocket.Dial(ctx, p.base+p.names.show(w[2]), &websocket.DialOptions{HTTPClient: p.client, HTTPHeader: header})
		if err == nil {
			p.sockets[w[1]] = conn
		}
		return err
	case w[0] == ">" && isMethod.MatchString(w[1]) && p.request == nil:
		p.request = func(ctx context.Context) (string, string, error) { return p.do(ctx, w[1], p.names.show(w[2]), body) }
		return nil
	case w[0] == "<" && p.request != nil:
		return p.await(ctx, w[2] == "eventually", s)
	case w[0] == ">" && conn != nil:
		return send(ctx, conn, w[2], w[3], body)
	case w[0] == "<" && conn != nil:
		kind, data, err := conn.Read(ctx)
		var closed websocket.CloseError
		s.name, s.body = "< "+w[1], p.names.hide(string(data))
		switch {
		case errors.As(err, &closed):
			s.name, s.body = fmt.Sprintf("< %s close %d", w[1], closed.Code), closed.Reason
			return nil
		case kind == websocket.MessageBinary:
			s.name, s.body = s.name+" binary", strconv.Quote(string(data))
		}
		return err
	}
	return errors.New("no such section, or not here")
}

func send(ctx context.Context, conn *websocket.Conn, how, code, body string) (err error) {
	kind := websocket.MessageText
	switch how {
	case "close":
		n, err := strconv.Atoi(code)
		return errors.Join(err, conn.Close(websocket.StatusCode(n), body))
	case "binary":
		kind = websocket.MessageBinary
		fallthrough
	case "quoted":
		if body, err = strconv.Unquote(body); err != nil {
			return err
		}
	}
	return conn.Write(ctx, kind, []byte(body))
}

var head = regexp.MustCompile(`\A((?:[A-Za-z-]+: .*(?:\n|\z))*)\n?`)

// splitHead takes a message of HTTP apart. Either part may be missing.
func splitHead(text string) (http.Header, string) {
	m := head.FindStringSubmatch(text)
	h, _ := textproto.NewReader(bufio.NewReader(strings.NewReader(m[1] + "\n\n"))).ReadMIMEHeader() // head sees to its form
	return http.Header(h), text[len(m[0]):]
}

// endings are what bodies of some types end in.
var endings = map[string]string{
	"text/event-stream": "\n\n", "text/plain; charset=utf-8": "\n", "text/html; charset=utf-8": "\n\n",
}

func (p *player) do(ctx context.Context, method, path, text string) (status, answer string, err error) {
	header, body := splitHead(text)
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, strings.NewReader(body))
	if err != nil {
		return "", "", err
	}
	req.Header, req.Host = header, header.Get("Host")
	res, err := p.client.Do(req)
	if err != nil {
		return "", "", err
	}
	defer res.Body.Close()
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(res.Header)) {
		if k != "Date" && k != "Content-Length" {
			parts = append(parts, k+": "+strings.Join(res.Header[k], ", "))
		}
	}
	came, err := io.ReadAll(res.Body)
	if len(came) > 0 {
		end, shown := endings[res.Header.Get("Content-Type")], strings.TrimRight(string(came), "\n")
		if shown+end != string(came) {
			err = errors.Join(err, fmt.Errorf("the body does not end in %q: %q", end, came))
		}
		parts = append(parts, "", shown)
	}
	return strconv.Itoa(res.StatusCode), strings.Join(parts, "\n"), err
}

// await sends the request and waits for the answer: eventually the one in the file, or else whatever comes.
func (p *player) await(ctx context.Context, eventually bool, s *section) error {
	defer func() { p.request = nil }()
	suffix := ""
	if eventually {
		suffix = " eventually"
	}
	want, start := *s, time.Now()
	for before := maps.Clone(p.names.values); ; p.names.values = maps.Clone(before) {
		status, answer, err := p.request(ctx)
		if err != nil {
			return err
		}
		s.name, s.body = "< "+status+suffix, p.names.hide(answer)
		if !eventually || *s == want || time.Since(start) > patience/2 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// finish closes the sockets. What the file does not show is an error.
func (p *player) finish() (err error) {
	if p.request != nil {
		err = errors.New("the file ends in a request without its answer")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for name, conn := range p.sockets {
		read := make(chan []error, 1)
		go func() {
			var left []error
			for {
				_, data, readErr := conn.Read(ctx)
				if readErr != nil {
					read <- left
					return
				}
				left = append(left, fmt.Errorf("the file does not show what came over socket %s: %s", name, data))
			}
		}()
		// What the server sent before it answers the ping has been read when the answer comes. Close reads too, and drops
		// what it reads.
		_ = conn.Ping(ctx)
		conn.Close(websocket.StatusNormalClosure, "")
		err = errors.Join(append([]error{err}, <-read...)...)
	}
	return err
}
