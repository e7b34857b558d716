package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// filler is what texts are filled up with: all that JSON encoders treat alike, escapes and non-ASCII letters among it.
const filler = "The \"fog organ\" hums at dawn.\nA tide clock by the naïve café strikes eight; 73 eels lift their heads. "

// Tag returns what makes a text unlike all others: who sends it and when. It is ASCII letters and digits, of one length.
func Tag(client, n int) string { return fmt.Sprintf("c%04xn%08x", client&0xffff, uint32(n)) }

// MinText is the least size of a text, in bytes.
const MinText = 32

// Text returns a text of size bytes, but at least [MinText], that begins with tag.
func Text(tag string, size int) string {
	size = max(size, MinText)
	s := tag + " " + strings.Repeat(filler, size/len(filler)+1)
	s = s[:size]
	for !utf8.ValidString(s) { // cut within a letter
		s = s[:len(s)-1]
	}
	return s + strings.Repeat(".", size-len(s))
}
