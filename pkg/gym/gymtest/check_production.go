package gymtest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// checkProduction calls tools without a reset, and tries what only trainers may.
func checkProduction(b *bench) {
	s := b.serve()
	if s == nil {
		return
	}
	defer b.stop(s)
	for _, path := range []string{"/reset", "/step"} {
		if status, _, err := s.request(http.MethodPost, path, []byte("{}")); err != nil || status != http.StatusNotFound {
			b.problem("POST %s is answered in production mode: status %d, %v", path, status, err)
		}
	}
	t, err := mcpFrames.open(s)
	if err != nil {
		b.problem("%s: no session could be opened: %v", mcpFrames.name, err)
		return
	}
	defer t.leave()
	if _, err := t.reset(json.RawMessage("{}")); err == nil || !strings.Contains(err.Error(), "NOT_ALLOWED") {
		b.problem("a reset frame is answered in production mode: %v", err)
	}
	if _, err := t.state(); err == nil || !strings.Contains(err.Error(), "NOT_ALLOWED") {
		b.problem("a state frame is answered in production mode: %v", err)
	}
	for _, st := range only(b.script.steps, false) {
		if _, _, err := t.play(st); err != nil {
			b.problem("%s, called in production mode, where nothing resets: %v", st, err)
			return
		}
	}
}
