package transport

import (
	"context"
	"time"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// temporaryClose bounds the wait for the end of a session that served one call: long enough for the slot to be free when
// the answer is out, not so long that an environment slow to close holds the answer back.
const temporaryClose = time.Second

// withSession calls f with the session of that id, or with a temporary one of the caller's where id is "".
func (s *Server) withSession(ctx context.Context, id string, by access.Caller, f func(*session.Session) error) error {
	if id != "" {
		live, err := s.sessions.Get(id)
		if err != nil {
			return err
		}
		return f(live)
	}
	temp, err := s.open(ctx, session.Temporary, by)
	if err != nil {
		return err
	}
	defer func() {
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), temporaryClose)
		defer cancel()
		temp.Close(wait, "its call is answered")
	}()
	return f(temp)
}
