package transport

import (
	"bytes"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A trickle is a connection that gives its bytes in portions.
type trickle struct {
	net.Conn
	portions [][]byte
}

func (c *trickle) Read(b []byte) (int, error) {
	if len(c.portions) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.portions[0])
	if c.portions[0] = c.portions[0][n:]; len(c.portions[0]) == 0 {
		c.portions = c.portions[1:]
	}
	return n, nil
}

// A sieveLog is what a sieve has told.
type sieveLog struct {
	beats int
	pings []string
}

func (l *sieveLog) beat()           { l.beats++ }
func (l *sieveLog) owe(ping []byte) { l.pings = append(l.pings, string(ping)) }

// sieveAll reads a stream that comes in portions, the first with the handshake, by a buffer of that size.
func sieveAll(portions [][]byte, size int) (passed []byte, log sieveLog, err error) {
	s := &sieve{to: &log, first: portions[0], Conn: &trickle{portions: portions[1:]}}
	for buf := make([]byte, size); err == nil; {
		var n int
		n, err = s.Read(buf)
		passed = append(passed, buf[:n]...)
	}
	if err == io.EOF {
		err = nil
	}
	return passed, log, err
}

// However a stream is cut, all but the pings and pongs passes.
func TestSieve(t *testing.T) {
	payload := rapid.Map(rapid.SampledFrom([]int{0, 1, 3, 4, 125, 126, 127, 70_000}), func(n int) string { return strings.Repeat("\x89\x8a*", n)[:n] })
	broken := map[string][]byte{
		"":                   nil,
		"an unmasked ping":   append(unmasked(pingHead, "x"), rawFrame(pingHead, "y")...),
		"a long ping":        append(longFrame(pingHead, 126, 200, "x"), rawFrame(pongHead, "y")...),
		"a long pong":        longFrame(pongHead, 127, 1<<63, ""),
		"a fragmented ping":  rawFrame(opPing, "x"),
		"a ping with a flag": rawFrame(pingHead|1<<6, "x"),
		"a long frame":       longFrame(textFrame, 127, 1<<63, string(rawFrame(pingHead, "x"))),
		"a cut ping":         nil,
	}
	rapid.Check(t, func(t *rapid.T) {
		var stream, passes []byte
		var pings []string
		for range rapid.IntRange(0, 8).Draw(t, "frames") {
			head := rapid.SampledFrom([]byte{textFrame, opText, opContinue, fin | opContinue, binaryFrame, closingFrame, pingHead, pongHead}).Draw(t, "head")
			text := payload.Draw(t, "payload")
			if head == pingHead || head == pongHead {
				text = text[:min(len(text), maxControl)]
			}
			frame := rawFrame(head, text)
			stream = append(stream, frame...)
			switch head {
			case pingHead:
				pings = append(pings, text)
			case pongHead:
			default:
				passes = append(passes, frame...)
			}
		}
		end := rapid.SampledFrom(slices.Sorted(maps.Keys(broken))).Draw(t, "end")
		stream, passes = append(stream, broken[end]...), append(passes, broken[end]...)
		if end == "a cut ping" {
			stream = append(stream, rawFrame(pingHead, "there?")[:rapid.IntRange(1, 11).Draw(t, "cut")]...)
		}
		var portions [][]byte
		for rest := stream; len(portions) == 0 || len(rest) > 0; {
			n := min(len(rest), rapid.SampledFrom([]int{1, 2, 3, 5, 100, 1 << 20}).Draw(t, "portion"))
			if len(portions) > 200 {
				n = len(rest)
			}
			portions, rest = append(portions, rest[:n:n]), rest[n:]
		}
		for i := range portions {
			portions[i] = bytes.Clone(portions[i])
		}
		got, log, err := sieveAll(portions, rapid.SampledFrom([]int{1, 2, 7, 4096, 1 << 18}).Draw(t, "buffer"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, passes) {
			t.Fatalf("%d bytes pass, want %d", len(got), len(passes))
		}
		if !slices.Equal(log.pings, pings) {
			t.Fatalf("got the pings %q, want %q", log.pings, pings)
		}
		if log.beats == 0 && len(stream) > 0 {
			t.Fatal("nothing was a sign of life")
		}
	})
}
