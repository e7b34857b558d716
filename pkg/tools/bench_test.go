package tools

import "testing"

type benchEcho struct {
	Message string `json:"message" jsonschema:"the text to echo"`
}

type benchMove struct {
	Row     int      `json:"row" minimum:"0" maximum:"7"`
	Col     int      `json:"col" minimum:"0" maximum:"7"`
	Piece   string   `json:"piece" enum:"pawn,rook,king"`
	Weights []int    `json:"weights"`
	Comment *string  `json:"comment"`
	Speed   float64  `json:"speed" default:"1.5"`
	Tags    []string `json:"tags,omitempty"`
}

func benchmarkDecode[T any](b *testing.B, raw string) {
	in, err := NewInput[T](nil)
	if err != nil {
		b.Fatal(err)
	}
	args := []byte(raw)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := in.Decode(args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInputDecode(b *testing.B) {
	b.Run("echo", func(b *testing.B) {
		benchmarkDecode[benchEcho](b, `{"message":"hello world, this is a message"}`)
	})
	b.Run("move", func(b *testing.B) {
		benchmarkDecode[benchMove](b, `{"row":3,"col":4,"piece":"rook","weights":[1,2,3,4,5,6,7,8],"comment":null,"tags":["a","b"]}`)
	})
	b.Run("exponent", func(b *testing.B) {
		benchmarkDecode[benchMove](b, `{"row":3e0,"col":4.0,"piece":"rook","weights":[1e1,2],"speed":2.5e-1}`)
	})
}
