package transport

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// An eventLog is a log that a test can ask for events, those to come too.
type eventLog struct {
	mu      sync.Mutex
	entries []logEntry
	more    chan struct{} // closed when there is another
}

type logEntry struct {
	level slog.Level
	attrs map[string]string
}

func newEventLog() *eventLog { return &eventLog{more: make(chan struct{})} }

// options are options with this log and with the ids s1, s2, and so on.
func (l *eventLog) options() Options {
	o := counted()
	o.Logger = slog.New(&eventHandler{log: l})
	return o
}

// find returns the entries of an event that have all these attributes: pairs of a name and what its value contains. An
// empty value matches an empty one only. more is closed when there is another entry.
func (l *eventLog) find(event string, attrs ...string) (found []logEntry, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		ok := e.attrs["event"] == event
		for i := 0; i < len(attrs); i += 2 {
			v, there := e.attrs[attrs[i]]
			ok = ok && there && (attrs[i] != "session" && strings.Contains(v, attrs[i+1]) || v == attrs[i+1])
		}
		if ok {
			found = append(found, e)
		}
	}
	return found, l.more
}

// want waits for an event with these attributes: see find.
func (l *eventLog) want(t *testing.T, event string, attrs ...string) logEntry {
	t.Helper()
	for end := time.After(testTime); ; {
		found, more := l.find(event, attrs...)
		if len(found) > 0 {
			return found[0]
		}
		select {
		case <-more:
		case <-end:
			t.Fatalf("the log has no event %s %q; it has\n%s", event, attrs, l)
		}
	}
}

// none holds the log to have nothing at that level or above.
func (l *eventLog) none(t *testing.T, level slog.Level) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.level >= level {
			t.Errorf("the log has %v %v", e.level, e.attrs)
		}
	}
}

func (l *eventLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, e := range l.entries {
		fmt.Fprintln(&b, e.level, e.attrs)
	}
	return b.String()
}

// An eventHandler fills an eventLog.
type eventHandler struct {
	log  *eventLog
	with []slog.Attr
}

func (h *eventHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *eventHandler) Handle(_ context.Context, r slog.Record) error {
	e := logEntry{r.Level, map[string]string{"msg": r.Message}}
	add := func(a slog.Attr) bool { e.attrs[a.Key] = a.Value.String(); return true }
	for _, a := range h.with {
		add(a)
	}
	r.Attrs(add)
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	h.log.entries = append(h.log.entries, e)
	close(h.log.more)
	h.log.more = make(chan struct{})
	return nil
}

func (h *eventHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &eventHandler{h.log, append(h.with[:len(h.with):len(h.with)], attrs...)}
}

func (h *eventHandler) WithGroup(string) slog.Handler { return h } // the server has no groups
