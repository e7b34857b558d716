// Command floor is the least that a Go program does which answers steps over /ws: a loop over the same WebSocket library
// that decodes the whole frame and writes the reply in full, both with encoding/json and typed structs.
package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/bench/internal/host"
	"github.com/openenv-go/openenv-go/bench/internal/wire"
)

// maxMessage is the limit that the measured server has.
const maxMessage = 100 << 20

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ws", serve)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	host.Serve(mux)
}

// serve has a context that never ends, which spares it the library's work for those that may.
func serve(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxMessage)
	ctx := context.Background()
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return
		}
		var f wire.StepFrame
		if err := json.Unmarshal(text, &f); err != nil {
			return
		}
		reply, err := json.Marshal(wire.NewObservationFrame(f))
		if err != nil || conn.Write(ctx, websocket.MessageText, reply) != nil {
			return
		}
	}
}
