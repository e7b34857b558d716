package tools

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// A memory is the secrets that a session's calls have had, so that a later call that repeats one does not give it away.
type memory struct{ kept []spelled }

// spelled is a secret in each form that it is looked for in.
type spelled struct {
	text  string
	forms []string
}

// maxRemembered bounds a memory; those that no call has had for longest are forgotten.
const maxRemembered = 256

// with adds a call's secrets, and returns all to look for, the longest first: one may be part of another.
func (m *memory) with(texts []string) (all []string) {
	var short []spelled
	for _, text := range texts {
		s := spelled{text: text}
		if i := slices.IndexFunc(m.kept, func(k spelled) bool { return k.text == text }); i >= 0 {
			s = m.kept[i]
			m.kept = slices.Delete(m.kept, i, i+1)
		} else {
			s.forms = spellings(text)
		}
		if slices.ContainsFunc(s.forms, func(form string) bool { return len(form) >= shortSecret }) {
			m.kept = append(m.kept, s)
		} else {
			short = append(short, s)
		}
	}
	for _, s := range slices.Concat(m.kept, short) {
		all = append(all, s.forms...)
	}
	if extra := len(m.kept) - maxRemembered; extra > 0 {
		m.kept = slices.Delete(m.kept, 0, extra)
	}
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(all)
}

// spellings are the forms in which what repeats a text may have it: as it is, as Go quotes it, as the JSON of this and of
// other libraries has it, and, where it is a number, as that is written.
func spellings(text string) []string {
	quoted := strconv.Quote(text)
	all := append(jsonSpellings(text), text, quoted[1:len(quoted)-1])
	if looksNumeric.MatchString(text) {
		for _, form := range numberSpellings(unsigned(text)) {
			if len(form) >= shortSecret {
				all = append(all, form)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// What writers of JSON escape though they need not: encoding/json both, others one of them, and Python's all that is no
// ASCII.
var (
	escapeHTML  = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`)
	escapeLines = strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`)
)

// jsonSpellings are the insides of JSON strings that have the text.
func jsonSpellings(text string) (all []string) {
	b, err := strictjson.AppendString(nil, text)
	if err != nil {
		return nil // no JSON has it
	}
	plain := string(b[1 : len(b)-1])
	for _, form := range []string{plain, escapeHTML.Replace(plain)} {
		all = append(all, form, escapeLines.Replace(form), escapeNonASCII(form))
	}
	return all
}

func escapeNonASCII(s string) string {
	var b []byte
	for _, r := range s {
		if r < 0x80 {
			b = append(b, byte(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			hex := strconv.FormatUint(0x10000+uint64(unit), 16)
			b = append(append(b, `\u`...), hex[1:]...)
		}
	}
	return string(b)
}

// looksNumeric is what a program may read as a number: leading zeros are none of JSON's, but some of a PIN's.
var looksNumeric = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,6})?$`)

// numberSpellings are the forms of a number, in the ways of this package, of fmt, and of encoding/json.
func numberSpellings(text string) []string {
	all := []string{canonicalNumber(text)}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return all
	}
	for _, format := range []byte("fge") {
		all = append(all, strconv.FormatFloat(f, format, -1, 64))
	}
	if b, err := json.Marshal(f); err == nil {
		all = append(all, string(b))
	}
	return all
}

// isSecret reports a number that is one of the texts, whatever its sign and spelling. A short one is not looked for: it
// would be found everywhere.
func isSecret(n strictjson.Number, texts []string) bool {
	size := unsigned(canonicalNumber(string(n)))
	return len(size) >= shortSecret && slices.ContainsFunc(texts, func(text string) bool { return unsigned(text) == size })
}

func unsigned(number string) string { return strings.TrimPrefix(number, "-") }
