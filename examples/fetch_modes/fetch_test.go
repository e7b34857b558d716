package main

import (
	"testing"

	"github.com/openenv-go/openenv-go/pkg/gym/gymtest"
)

func TestEnv(t *testing.T) {
	gymtest.Run(t, Env,
		gymtest.Script(
			gymtest.Call("list_pages", nil),
			gymtest.Call("fetch", Fetch{URL: "http://museum.example/old-hours", MaxBytes: 1000, Format: "markdown"}),
			gymtest.Call("fetch", Fetch{URL: "http://museum.example/archive", MaxBytes: 1000, Format: "text"}),
			gymtest.Call("fetch", Fetch{URL: "http://127.0.0.1/", MaxBytes: 1000, Format: "raw"}),
			gymtest.Call("answer", Answer{"Pear wood."}),
			gymtest.Call("answer", Answer{"Oak."}),
		),
		gymtest.Generate(2),
	)
}
