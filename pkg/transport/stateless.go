package transport

import (
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// MCP's stateless revision (2026-07-28): each POST stands alone. It is served where the address names a session, or where
// the environment is declared stateless. The SDK's handler does the protocol: it makes an SDK session for the one request,
// which lives beside the session's agent, on the same environment and in the same turns.

// serverKey is under what a request's context has the *mcp.Server that it is for.
type serverKey struct{}

func newStateless(o Options) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		server, _ := r.Context().Value(serverKey{}).(*mcp.Server)
		return server
	}, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: o.MaxMessage,
		DisableLocalhostProtection: true, // admit has looked at Host
	})
}

func (s *Server) postStateless(w http.ResponseWriter, r *http.Request, id strictjson.Raw, version string) {
	named := addressed(r)
	switch {
	case named != "":
		live, _, err := s.sessions.Reach(named)
		if err != nil {
			notFound(w, id, err)
			return
		}
		s.serveSingle(w, r, id, live.Server(), live.Context(), singleGate(live))
	case !s.class.Stateless:
		steer(w, id, version)
	case s.class.Server() != nil:
		// Only a tool call needs a value.
		s.serveSingle(w, r, id, s.class.Server(), r.Context(), func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (res mcp.Result, err error) {
			if method != "tools/call" {
				return next(ctx, method, req)
			}
			failed := s.withSession(ctx, "", callerOf(r), func(live *session.Session) error {
				res, err = singleGate(live)(ctx, method, req, next)
				return nil
			})
			if failed != nil {
				return nil, agentFailure(failed)
			}
			return res, err
		})
	default:
		err := s.withSession(r.Context(), "", callerOf(r), func(live *session.Session) error {
			s.serveSingle(w, r, id, live.Server(), live.Context(), singleGate(live))
			return nil
		})
		if err != nil {
			noSession(w, id, err)
		}
	}
}

// singleGate is what the requests of an SDK session pass that was made for one POST.
func singleGate(live *session.Session) gym.Gate {
	return func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok && method == "tools/call" {
			a, err := live.CallTool(ctx, call, 0)
			res, failed := agentResult(a, err)
			if r, ok := res.(*mcp.CallToolResult); ok && a.Err != nil {
				return completed(r)
			}
			return res, failed
		}
		return live.Handle(ctx, method, req, next)
	}
}

// completed is a result of ours that says that it is complete, as each of this revision must. The SDK sets that where it
// makes a result, in a field that only its JSON reaches.
func completed(res *mcp.CallToolResult) (mcp.Result, error) {
	raw, err := strictjson.Marshal(res)
	if err != nil {
		return nil, err
	}
	out := &mcp.CallToolResult{}
	return out, out.UnmarshalJSON(append(raw[:len(raw)-1:len(raw)-1], `,"resultType":"complete"}`...))
}

// serveSingle serves a POST that stands alone. A stream ends soon after over; a call has ended then, and been answered.
func (s *Server) serveSingle(w http.ResponseWriter, r *http.Request, id strictjson.Raw, server *mcp.Server, over context.Context, gate gym.Gate) {
	if !acceptable(w, r, id) {
		return
	}
	ctx, cancel := context.WithCancel(gym.WithGate(context.WithValue(r.Context(), serverKey{}, server), gate))
	defer cancel()
	defer context.AfterFunc(over, func() { time.AfterFunc(hurryTime, cancel) })()
	turned := rpcErrors(w, id)
	defer turned.finish()
	beating := newHeartbeat(turned)
	defer beating.stop()
	s.single.ServeHTTP(beating, r.WithContext(ctx))
}
