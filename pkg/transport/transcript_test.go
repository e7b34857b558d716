package transport_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/transcript"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

// TestTranscripts plays testdata/transcripts. With -update the files are rewritten; see package transcript.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			transcript.Run(t, file, transcript.Options{Serve: serveTranscript, Names: map[string]*regexp.Regexp{
				"EPISODE": regexp.MustCompile(`"episode_id":"([A-Z2-7]{26})"`),
				"SESSION": regexp.MustCompile(`"session_id":"([A-Z2-7]{26})"`),
				"HANDLE":  regexp.MustCompile(`"handle":"([A-Z2-7]{26})"`),
				"BASE":    regexp.MustCompile(`"url":"(http://[^/]+)/mcp`),
				"STREAM":  regexp.MustCompile(`(?m)^id: ([A-Z2-7]{26})_`),
				"AGENT":   regexp.MustCompile(`(?m)^Mcp-Session-Id: (\S+)$`),
			}})
		})
	}
}

// serveTranscript starts a server of the environment that the first word names; the others are options of the server.
func serveTranscript(t *testing.T, words []string) (base string) {
	t.Helper()
	o := transport.Options{}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		n, numErr := strconv.Atoi(value)
		d, durErr := time.ParseDuration(value)
		switch {
		case w == "production":
			o.Mode = tools.ModeProduction
		case key == "max-sessions" && numErr == nil:
			o.Sessions.Max = n
		case key == "max-message" && numErr == nil:
			o.MaxMessage = int64(n)
		case key == "max-depth" && numErr == nil:
			o.MaxDepth = n
		case key == "tool-timeout" && durErr == nil:
			o.Sessions.ToolTimeout = d
		case key == "reset-timeout" && durErr == nil:
			o.Sessions.ResetTimeout = d
		case key == "first-id":
			o.Sessions.NewID = func() string { return value }
		default:
			t.Fatalf("unknown option of the server: %s", w)
		}
	}
	env, ok := transcriptEnvironments[words[0]]
	if !ok {
		t.Fatalf("unknown environment %s", words[0])
	}
	srv, err := transport.New(t.Context(), env, o)
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(srv)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := srv.Close(ctx); err != nil {
			t.Error(err)
		}
		hs.Close()
		if n := srv.Sessions().Active(); n != 0 {
			t.Errorf("%d sessions outlive the server", n)
		}
	})
	return hs.URL
}

var parrotEnv = gym.Environment[*parrot]{
	Name:         "parrot",
	Description:  "Repeats what it hears.",
	Version:      "1.2.0",
	Author:       "A. Author",
	DocsURL:      "https://example.com/parrot",
	Instructions: "Say bye to end the episode.",
	New:          func(context.Context, *gym.Session) (*parrot, error) { return &parrot{}, nil },
	Tools: tools.New(
		tools.Func("say", "Say it again.", (*parrot).say),
		tools.Func("measure", "Measure a text.", (*parrot).measure),
		tools.Do("hush", "Say nothing.", (*parrot).hush),
		tools.Func("sing", "Sing, which it cannot.", (*parrot).sing),
		tools.Modes("fly", "Fly away.", tools.Production((*parrot).say)),
	),
	State: gym.StateOf((*parrot).state),
	After: (*parrot).score,
}

// coder is the parrot with code mode.
func coder() gym.Definition {
	env := parrotEnv
	env.Name, env.CodeMode = "coder", &codemode.Limits{}
	return env
}

// transcriptEnvironments are the environments that transcripts are played on.
var transcriptEnvironments = map[string]gym.Definition{
	"parrot": parrotEnv,
	"coder":  coder(),
	"hilo": gym.Environment[*hilo]{
		Name:  "hilo",
		New:   func(context.Context, *gym.Session) (*hilo, error) { return &hilo{}, nil },
		Reset: gym.Reset((*hilo).reset),
		Act:   gym.Act((*hilo).guess),
		State: gym.StateOf((*hilo).state),
	},
	"trouble": gym.Environment[trouble]{
		Name: "trouble",
		New:  func(context.Context, *gym.Session) (trouble, error) { return trouble{}, nil },
		Tools: tools.New(
			tools.Func("half", "Halve an even number.", trouble.half),
			tools.Do("fail", "Return an error.", trouble.fail),
			tools.Do("panic", "Panic.", trouble.panic),
			tools.Func("nan", "Return what is not JSON.", trouble.nan),
			tools.Do("offline", "Find the far end gone.", trouble.offline),
			tools.Do("wait", "Wait for the deadline.", trouble.wait),
			tools.Do("oversleep", "Sleep past the deadline.", trouble.oversleep),
			tools.Do("misjudge", "Be scored badly.", trouble.misjudge),
		),
		After: trouble.score,
	},
	"moody": gym.Environment[*moody]{
		Name:  "moody",
		New:   func(context.Context, *gym.Session) (*moody, error) { return &moody{}, nil },
		Reset: gym.Reset((*moody).reset),
		Act:   gym.Act((*moody).act),
		State: gym.StateOf((*moody).state),
	},
	"unbuildable": gym.Environment[trouble]{
		Name:  "unbuildable",
		New:   func(context.Context, *gym.Session) (trouble, error) { return trouble{}, errors.New("no GPU is free") },
		Tools: tools.New(tools.Do("fail", "Return an error.", trouble.fail)),
	},
	"explosive": gym.Environment[trouble]{
		Name:  "explosive",
		New:   func(context.Context, *gym.Session) (trouble, error) { panic("boom") },
		Tools: tools.New(tools.Do("fail", "Return an error.", trouble.fail)),
	},
	"slow": gym.Environment[trouble]{
		Name: "slow",
		New: func(ctx context.Context, _ *gym.Session) (trouble, error) {
			select {
			case <-time.After(2 * time.Second):
			case <-ctx.Done():
			}
			return trouble{}, ctx.Err()
		},
		Tools: tools.New(tools.Do("fail", "Return an error.", trouble.fail)),
	},
	"library": gym.Environment[*mcp.Server]{
		Name:   "library",
		New:    func(context.Context, *gym.Session) (*mcp.Server, error) { return newLibrary(), nil },
		Server: func(s *mcp.Server) *mcp.Server { return s },
	},
}

// A parrot repeats what it hears: an environment of tools, one of each shape of answer.
type parrot struct{ last string }

type heard struct {
	Text string `json:"text" jsonschema:"what to say" minLength:"1"`
}

type measures struct {
	Letters int  `json:"letters"`
	Plain   bool `json:"plain" jsonschema:"whether it is all ASCII"`
}

func (p *parrot) say(_ context.Context, in heard) (string, error) {
	p.last = in.Text
	return in.Text, nil
}

func (p *parrot) measure(_ context.Context, in heard) (measures, error) {
	n := utf8.RuneCountInString(in.Text)
	return measures{n, n == len(in.Text)}, nil
}

func (p *parrot) hush(context.Context, tools.None) error { return nil }

func (p *parrot) sing(context.Context, tools.None) (string, error) {
	return "", tools.Fail("parrots cannot sing")
}

type parrotState struct {
	LastHeard string `json:"last_heard"`
}

func (p *parrot) state() parrotState { return parrotState{p.last} }

// score gives a point for a word that was said, and ends the episode with bye.
func (p *parrot) score(_ context.Context, call gym.ToolCall) gym.Score {
	if call.Name != "say" || call.Err != nil {
		return gym.Score{Reward: gym.Number(0)}
	}
	return gym.Score{Reward: gym.Number(1), Done: p.last == "bye"}
}

// A hilo is a game of finding a number: an environment with an action type of its own.
type hilo struct {
	bounds
	secret, guesses int
}

type bounds struct {
	Low  int `json:"low,omitempty" default:"1"`
	High int `json:"high,omitempty" default:"100" maximum:"1000000"`
}

type guess struct {
	Number int `json:"number" minimum:"1"`
}

type hint struct {
	Hint     string         `json:"hint"`
	Metadata map[string]int `json:"metadata"`
}

type hiloState struct {
	Low     int `json:"low"`
	High    int `json:"high"`
	Guesses int `json:"guesses"`
}

func (h *hilo) reset(_ context.Context, r gym.ResetRequest[bounds]) (hint, error) {
	*h = hilo{bounds: r.Options, secret: (r.Options.Low + r.Options.High) / 2}
	return hint{fmt.Sprintf("a number from %d to %d", h.Low, h.High), nil}, nil
}

func (h *hilo) guess(_ context.Context, g guess) (hint, gym.Score, error) {
	if g.Number > h.High {
		return hint{}, gym.Score{}, tools.Invalid("number", fmt.Sprintf("the game goes to %d", h.High))
	}
	h.guesses++
	told := map[string]int{"guesses": h.guesses}
	switch {
	case g.Number < h.secret:
		return hint{"higher", told}, gym.Score{Reward: gym.Number(-0.1)}, nil
	case g.Number > h.secret:
		return hint{"lower", told}, gym.Score{Reward: gym.Number(-0.1)}, nil
	}
	return hint{"found", told}, gym.Score{Reward: gym.Bool(true), Done: true}, nil
}

func (h *hilo) state() hiloState { return hiloState{h.Low, h.High, h.guesses} }

// trouble is an environment of tools that fail in every way.
type trouble struct{}

type number struct {
	N int `json:"n" minimum:"0"`
}

func (trouble) half(_ context.Context, in number) (int, error) {
	if in.N%2 == 1 {
		return 0, tools.Invalid("n", "want an even number")
	}
	return in.N / 2, nil
}

func (trouble) fail(context.Context, tools.None) error           { return errors.New("the disk is full") }
func (trouble) panic(context.Context, tools.None) error          { panic("boom") }
func (trouble) nan(context.Context, tools.None) (float64, error) { return math.NaN(), nil }
func (trouble) misjudge(context.Context, tools.None) error       { return nil }

func (trouble) offline(context.Context, tools.None) error {
	return &tools.Error{Type: tools.TransportError, Tool: "offline", Message: "the far end hung up"}
}

func (trouble) wait(ctx context.Context, _ tools.None) error {
	<-ctx.Done()
	return ctx.Err()
}

// oversleep is a tool that ignores its context.
func (trouble) oversleep(context.Context, tools.None) error {
	time.Sleep(2 * time.Second)
	return nil
}

func (trouble) score(_ context.Context, call gym.ToolCall) gym.Score {
	if call.Name == "misjudge" {
		return gym.Score{Reward: gym.Number(math.Inf(1))}
	}
	return gym.Score{}
}

// moody does in reset, act and state what its mood says.
type moody struct{ next string }

type mood struct {
	Mood string `json:"mood,omitempty" enum:"well,fail,panic,nan,wait"`
	Next string `json:"next,omitempty" jsonschema:"the mood of the next state"`
}

type moodObservation struct {
	Value float64 `json:"value"`
}

func (m *moody) be(ctx context.Context, mood string) (moodObservation, error) {
	switch mood {
	case "fail":
		return moodObservation{}, errors.New("the disk is full")
	case "panic":
		panic("boom")
	case "nan":
		return moodObservation{math.NaN()}, nil
	case "wait":
		<-ctx.Done()
		return moodObservation{}, ctx.Err()
	}
	return moodObservation{1}, nil
}

func (m *moody) reset(ctx context.Context, r gym.ResetRequest[mood]) (moodObservation, error) {
	m.next = r.Options.Next
	return m.be(ctx, r.Options.Mood)
}

func (m *moody) act(ctx context.Context, a mood) (moodObservation, gym.Score, error) {
	m.next = a.Next
	o, err := m.be(ctx, a.Mood)
	return o, gym.Score{}, err
}

func (m *moody) state() moodObservation {
	o, err := m.be(context.Background(), m.next)
	if err != nil {
		panic(err)
	}
	return o
}

// newLibrary is an MCP server as an author may have it, made with the SDK alone.
func newLibrary() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "3.1.4"}, &mcp.ServerOptions{Instructions: "Ask for a title."})
	type title struct {
		Title string `json:"title" jsonschema:"the book's title"`
	}
	type shelf struct {
		Shelf int `json:"shelf"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "find", Description: "Find a book."},
		func(_ context.Context, _ *mcp.CallToolRequest, in title) (*mcp.CallToolResult, shelf, error) {
			if in.Title != "Emma" {
				return nil, shelf{}, errors.New("the catalogue has no such book")
			}
			return nil, shelf{7}, nil
		})
	s.AddTool(&mcp.Tool{Name: "borrow", Description: "Borrow a book.", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "it is lent out"}}}, nil
		})
	s.AddPrompt(&mcp.Prompt{Name: "recommend", Description: "Recommend a book."},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "What should I read next?"}}}}, nil
		})
	return s
}
