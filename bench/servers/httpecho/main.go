// Command httpecho is the least that a Go program does which answers tools/call by POST: net/http, with the whole request
// decoded and the reply written in full, both with encoding/json and typed structs.
package main

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/openenv-go/openenv-go/bench/internal/host"
	"github.com/openenv-go/openenv-go/bench/internal/wire"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /bare", func(w http.ResponseWriter, r *http.Request) { answer(w, r, wire.NewBareReply) })
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, r *http.Request) { answer(w, r, wire.NewMCPReply) })
	host.Serve(mux)
}

func answer[Reply any](w http.ResponseWriter, r *http.Request, reply func(wire.Call) Reply) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var call wire.Call
	if err := json.Unmarshal(body, &call); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := json.Marshal(reply(call))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}
