package tools

import (
	"errors"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// FuzzInputDecode holds the decoder of a type of many kinds to its schema, and its errors to what callers do with them,
// whatever the bytes are.
func FuzzInputDecode(f *testing.F) {
	type everything struct {
		Bounded  *bounded           `json:"bounded"`
		Optional optionals          `json:"optional,omitzero"`
		Pair     pair[uint64]       `json:"pair,omitzero"`
		Union    *unionIn           `json:"union"`
		Map      map[int8][]float32 `json:"map,omitempty"`
		Default  []inner            `json:"default" default:"[]"`
		Bytes    []byte             `json:"bytes,omitempty"`
		Free     any                `json:"free,omitempty"`
	}
	for _, seed := range []string{
		``, `{}`, `[]`, `{"default":[{"label":"a"}],"bytes":"AQ==","free":{"a":[1e400]}}`,
		`{"bounded":{"count":2,"ratio":0.5,"name":"ab","color":"red","level":1,"tags":["a"]},"union":{"circle":1},"map":{"-1":[1e39]}}`,
		`{"optional":{"must":9007199254740993,"list":null},"pair":{"first":18446744073709551616,"second":-0}}`,
	} {
		f.Add([]byte(seed))
	}
	in := mustInput[everything](f)
	judge := newJudge(f, marshalSchema(f, in.Schema))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := in.Decode(b)
		var ie *InputError
		switch {
		case err != nil && !errors.As(err, &ie):
			t.Fatalf("%T: %v", err, err)
		case ie != nil && (len(ie.Fields) == 0 || len(ie.Fields) > MaxFieldErrors || len(ie.Error()) > 100_000):
			t.Fatalf("%d fields, %d bytes", len(ie.Fields), len(ie.Error()))
		}
		if len(b) == 0 || strictjson.Check(b, strictjson.DefaultMaxDepth) != nil {
			return
		}
		if ie != nil {
			checkFieldErrors(t, ie, b)
		}
		bySchema := judge.accepts(b)
		if err == nil && bySchema != nil {
			t.Errorf("%s: the schema refuses it (%v), the decoder does not: %+v", b, bySchema, v)
		}
		if err != nil && bySchema == nil && !beyondSchema(err) {
			t.Errorf("%s: the decoder refuses it (%v), the schema does not", b, err)
		}
	})
}
