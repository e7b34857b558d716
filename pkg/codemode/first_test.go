package codemode_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

func TestFirst(t *testing.T) {
	o := codemode.Run(context.Background(), codemode.Job{Code: "x = f(1)\nprint(x)\n[x, 1+1]", Tools: []codemode.Tool{{Name: "f", Input: json.RawMessage(`{"properties":{"a":{}}}`)}}}, func(ctx context.Context, tool string, args json.RawMessage) (codemode.Answer, error) {
		return codemode.Answer{Value: args}, nil
	})
	b, _ := json.Marshal(o)
	t.Log(string(b))
	for _, code := range []string{"while True: pass", "def f(x):\n  return x + ''\nf(1)", "def f(", "f(1, 2)"} {
		o = codemode.Run(context.Background(), codemode.Job{Code: code}, nil)
		b, _ = json.Marshal(o)
		t.Log(string(b))
		if o.Error != nil {
			t.Log(o.Error.Text())
		}
	}
}
