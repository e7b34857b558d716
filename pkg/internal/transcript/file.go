package transcript

import (
	"fmt"
	"regexp"
	"strings"
)

// A section is one part of a file: a name, a body, and the notes behind that. The first has no name; its body is the
// prose.
type section struct {
	line              int
	name, body, notes string
}

var (
	marker = regexp.MustCompile(`(?m)^-- (.+) --\n`) // as txtar has it
	notes  = regexp.MustCompile(`(?:(?:\n|\A)(?:#.*)?)*\z`)
)

func parse(text string) (sections []section) {
	s, start := section{}, 0
	add := func(content string) {
		end := notes.FindStringIndex(content)[0]
		s.body, s.notes = content[:end], content[end:]
		if s.body != "" {
			s.notes = strings.TrimPrefix(s.notes, "\n")
		}
		sections = append(sections, s)
	}
	for _, m := range marker.FindAllStringSubmatchIndex(text, -1) {
		add(text[start:m[0]])
		s, start = section{line: 1 + strings.Count(text[:m[0]], "\n"), name: text[m[2]:m[3]]}, m[1]
	}
	add(text[start:])
	return sections
}

func format(sections []section) string {
	var b strings.Builder
	for _, s := range sections {
		if s.name != "" {
			fmt.Fprintf(&b, "-- %s --\n", s.name)
		}
		if s.body != "" {
			b.WriteString(s.body + "\n")
		}
		b.WriteString(s.notes)
	}
	return b.String()
}

// names are values that differ from run to run, and what stands for them in the file.
type names struct {
	patterns map[string]*regexp.Regexp // the first group is the value
	values   map[string]string         // by name, with its $
}

// hide puts names for values, and gives names to values not seen before.
func (n names) hide(text string) string {
	for kind, pattern := range n.patterns {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			i, name := 0, ""
			for used := true; used && n.values[name] != m[1]; _, used = n.values[name] {
				i++
				name = fmt.Sprintf("$%s%d", kind, i)
			}
			n.values[name] = m[1]
		}
	}
	for name, value := range n.values {
		text = strings.ReplaceAll(text, value, name)
	}
	return text
}

var named = regexp.MustCompile(`\$[A-Z]+\d+`)

// show puts values for names.
func (n names) show(text string) string {
	return named.ReplaceAllStringFunc(text, func(name string) string {
		if v, ok := n.values[name]; ok {
			return v
		}
		return name
	})
}
