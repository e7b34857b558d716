package access

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

const (
	control = Token("0123456789abcdef-control")
	agent   = Token("0123456789abcdef-agent")
)

func keeper(t testing.TB) *Keeper {
	t.Helper()
	k, err := NewKeeper([]Token{control, "another-control-token"}, []Token{agent})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestIdentify(t *testing.T) {
	k := keeper(t)
	for _, c := range []struct {
		token string
		want  Caller
	}{
		{string(control), Caller{Role: Control, Name: "control-1"}},
		{"another-control-token", Caller{Role: Control, Name: "control-2"}},
		{string(agent), Caller{Role: Agent, Name: "agent-1"}},
		{"", Caller{}},
		{string(agent) + " ", Caller{}},
		{strings.ToUpper(string(agent)), Caller{}},
		{string(agent[:len(agent)-1]), Caller{}},
	} {
		for _, handle := range []string{"", "h"} {
			if got, ok := k.Identify(c.token, handle); got != c.want || ok != (c.want.Role != Nobody) {
				t.Errorf("%q: got %+v, %v", c.token, got, ok)
			}
		}
	}
	if k.Empty() {
		t.Error("a keeper of three tokens is empty")
	}
}

func TestTokensThatNoKeeperShouldHave(t *testing.T) {
	for _, bad := range []Token{"", "short", "with a blank in it", "with\na-line-in-it-too", "ümläuts-are-no-header"} {
		_, err := NewKeeper(nil, []Token{agent, bad})
		if err == nil || !strings.HasPrefix(err.Error(), "agent token 2") || len(bad) > 5 && strings.Contains(err.Error(), string(bad)) {
			t.Errorf("%q: %v", string(bad), err)
		}
	}
	if _, err := NewKeeper([]Token{agent}, []Token{agent}); err == nil {
		t.Error("one token has two roles")
	}
}

func TestTokensOfHandles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper(t)
		token, expires := k.Mint("H", time.Minute)
		if until := time.Until(expires); until != time.Minute {
			t.Errorf("it expires in %v", until)
		}
		got, ok := k.Identify(string(token), "H")
		if !ok || got.Role != Agent || got.Handle != "H" || strings.Contains(got.Name, "H") {
			t.Errorf("got %+v, %v", got, ok)
		}
		for _, handle := range []string{"", "h", "HH", "other"} {
			if got, ok := k.Identify(string(token), handle); ok {
				t.Errorf("it opens %q too: %+v", handle, got)
			}
		}
		if got, ok := keeper(t).Identify(string(token), "H"); ok {
			t.Errorf("it opens the handle of another process: %+v", got)
		}
		time.Sleep(time.Minute - 1)
		if _, ok := k.Identify(string(token), "H"); !ok {
			t.Error("it has ended early")
		}
		time.Sleep(time.Nanosecond)
		if _, ok := k.Identify(string(token), "H"); ok {
			t.Error("it has not ended")
		}
	})
}

// A token of a handle that is changed anywhere opens nothing.
func TestTokensOfHandlesCannotBeChanged(t *testing.T) {
	k := keeper(t)
	token, _ := k.Mint("H", time.Hour)
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(token)
		b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		if rapid.Bool().Draw(t, "cut") {
			b = b[:rapid.IntRange(0, len(b)).Draw(t, "to")]
		}
		if got, ok := k.Identify(string(b), "H"); ok {
			t.Errorf("%q opens %+v", b, got)
		}
	})
}

func TestTokensAreNotShown(t *testing.T) {
	var b bytes.Buffer
	for _, log := range []*slog.Logger{slog.New(slog.NewTextHandler(&b, nil)), slog.New(slog.NewJSONHandler(&b, nil))} {
		log.Info("x", "token", control, "tokens", struct{ T Token }{control})
	}
	fmt.Fprintf(&b, "%v %s %q %#v %+v", control, control, control, control, []Token{control})
	fmt.Fprint(&b, keeper(t))
	if strings.Contains(b.String(), string(control)) {
		t.Error(b.String())
	}
}
