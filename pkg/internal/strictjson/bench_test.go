package strictjson

import "testing"

type benchIn struct {
	Message string `json:"message"`
}

func BenchmarkUnmarshal(b *testing.B) {
	raw := []byte(`{"message":"hello world, this is a message"}`)
	for name, f := range map[string]func([]byte, any) error{"plain": UnmarshalPlain, "exact": Unmarshal, "known": UnmarshalKnown} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var in benchIn
				if err := f(raw, &in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	raw := []byte(`{"message":"hello world, this is a message"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshal(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Marshal(benchIn{"hello world, this is a message"}); err != nil {
			b.Fatal(err)
		}
	}
}
