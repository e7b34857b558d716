package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var lastEvent = regexp.MustCompile(`(?m)^id: (\S+)$`)

// A tool may hang up on its client: the answer is there when the client comes back, also if it comes late, or twice.
func TestAnswerAfterAToolHangsUp(t *testing.T) {
	for _, retry := range []time.Duration{0, time.Millisecond} {
		t.Run(fmt.Sprint(retry), func(t *testing.T) {
			hungUp := make(chan struct{})
			_, base := start(t, ownEnv(nil, func(d *desk) {
				mcp.AddTool(d.server, &mcp.Tool{Name: "hang_up"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
					req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: retry})
					<-hungUp
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "welcome back"}}}, nil, nil
				})
			}), counted())
			id := rawInitialize(t, base+"/mcp", "2025-11-25")
			headers := []string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25"}
			status, stream := post(t, base+"/mcp", rpcCall("hang_up", "{}", ""), headers...)
			close(hungUp)
			m := lastEvent.FindStringSubmatch(stream)
			if status != http.StatusOK || m == nil || strings.Contains(stream, "welcome") || strings.Contains(stream, "retry: 1") != (retry > 0) {
				t.Fatalf("got %d %q, want an event to resume from", status, stream)
			}
			for range 2 {
				status, rest := request(t, http.MethodGet, base+"/mcp", "", append(headers, "Last-Event-ID", m[1])...)
				if status != http.StatusOK || !strings.Contains(rest, "welcome back") {
					t.Errorf("got %d %q", status, rest)
				}
			}
			status, rest := request(t, http.MethodGet, base+"/mcp", "", append(headers, "Last-Event-ID", "nosuch_0")...)
			if status != http.StatusBadRequest {
				t.Errorf("a stream that never was: got %d %q, want 400", status, rest)
			}
		})
	}
}

func TestReplayIsBounded(t *testing.T) {
	ctx := t.Context()
	after := func(r *replay, stream string, index int) (n int, err error) {
		for _, e := range r.After(ctx, "", stream, index) {
			if err = e; err == nil {
				n++
			}
		}
		return n, err
	}
	r := newReplay()
	for i := range maxReplayStreams + 1 {
		r.Open(ctx, "", fmt.Sprint(i))
		if err := r.Append(ctx, "", fmt.Sprint(i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := after(r, "0", -1); !errors.Is(err, mcp.ErrEventsPurged) {
		t.Errorf("the oldest of too many streams: got %v", err)
	}
	if err := r.Append(ctx, "", "0", []byte("x")); err == nil {
		t.Error("a forgotten stream has taken a message")
	}
	if n, err := after(r, "1", -1); n != 1 || err != nil {
		t.Errorf("the oldest that is left: got %d, %v", n, err)
	}
	if n, err := after(r, "1", 5); n != 0 || err != nil {
		t.Errorf("after what is still to come: got %d, %v", n, err)
	}
	if err := r.Append(ctx, "", "2", make([]byte, maxReplayBytes)); err == nil {
		t.Error("a message over the limit was kept")
	}
	if _, err := after(r, "2", -1); !errors.Is(err, mcp.ErrEventsPurged) {
		t.Errorf("a stream with a gap: got %v", err)
	}
	if n, err := after(r, "3", -1); n != 1 || err != nil || r.bytes != maxReplayStreams-2 {
		t.Errorf("the streams after it: got %d, %v; %d bytes", n, err, r.bytes)
	}
	// What is sent unasked is kept as far back as the bound goes.
	if err := r.Open(ctx, "", unasked); err != nil {
		t.Error(err)
	}
	for range maxReplayUnasked + 3 {
		if err := r.Append(ctx, "", unasked, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := after(r, unasked, 5); n != maxReplayUnasked-3 || err != nil {
		t.Errorf("after the sixth: got %d, %v", n, err)
	}
	if _, err := after(r, unasked, 1); !errors.Is(err, mcp.ErrEventsPurged) {
		t.Errorf("after one that is not kept: got %v", err)
	}
	if err := r.Append(ctx, "", unasked, make([]byte, maxReplayBytes)); err != nil || r.bytes > maxReplayBytes {
		t.Errorf("got %v; %d bytes are kept", err, r.bytes)
	}
	r.SessionClosed(ctx, "")
	if r.bytes != 0 || len(r.streams) != 0 {
		t.Errorf("%d bytes are left", r.bytes)
	}
}
