package gymtest

import (
	"regexp/syntax"
	"strings"
)

// match makes a string that a pattern accepts. Assertions in the middle of a pattern are taken as met; what they refuse is
// thrown away by whoever checks the value.
func (g *generator) match(pattern string) (string, bool) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	g.emit(&b, re)
	return b.String(), true
}

func (g *generator) emit(b *strings.Builder, re *syntax.Regexp) {
	lo, hi := 1, 1
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
		return
	case syntax.OpCharClass:
		b.WriteRune(g.oneOf(re.Rune))
		return
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte(byte('a' + g.IntN(26)))
		return
	case syntax.OpAlternate:
		g.emit(b, pick(g, re.Sub))
		return
	case syntax.OpStar:
		lo, hi = 0, 9
	case syntax.OpPlus:
		lo, hi = 1, 9
	case syntax.OpQuest:
		lo, hi = 0, 1
	case syntax.OpRepeat:
		lo, hi = re.Min, re.Max
		if hi < 0 || hi > lo+3 {
			hi = lo + 3
		}
	}
	for range lo + g.IntN(hi-lo+1) {
		for _, sub := range re.Sub {
			g.emit(b, sub)
		}
	}
}

// oneOf picks from a class, given as pairs of first and last rune, a printable ASCII one where it has any.
func (g *generator) oneOf(class []rune) rune {
	var plain []rune
	for i := 0; i+1 < len(class); i += 2 {
		for r := max(class[i], ' '); r <= min(class[i+1], '~'); r++ {
			plain = append(plain, r)
		}
	}
	switch {
	case len(plain) > 0:
		return pick(g, plain)
	case len(class) > 0:
		return class[0]
	}
	return 'a'
}
