package strictjson

import (
	"strings"
	"testing"
)

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

// checkInputs are what clients send: a step, and the like with a text of 4 KiB and of 1 MiB.
func checkInputs() map[string][]byte {
	step := func(text string) []byte {
		return []byte(`{"type":"step","data":{"type":"call_tool","tool_name":"echo_message","arguments":{"message":"` + text + `"}}}`)
	}
	const line = `The \"fog organ\" hums at dawn.\nA tide clock by the naïve café strikes eight. `
	return map[string][]byte{
		"size=32B":  step("hello world, this is a message"),
		"size=4KiB": step(strings.Repeat(line, 4<<10/len(line))),
		"size=1MiB": step(strings.Repeat(line, 1<<20/len(line))),
	}
}

func BenchmarkCheck(b *testing.B) {
	for name, input := range checkInputs() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(input)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(input, DefaultMaxDepth); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestCheckAllocations: what every door does first makes no garbage, whatever the length.
func TestCheckAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates by itself")
	}
	for name, input := range checkInputs() {
		if n := testing.AllocsPerRun(20, func() { Check(input, DefaultMaxDepth) }); n >= 1 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}
