package library

import (
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// window is what start and end leave of a text, and how many code points stand before it.
func (c *call) window(s string, start, end starlark.Value) (part string, before int, ok bool, err error) {
	if err := c.scan(len(s)); err != nil {
		return "", 0, false, err
	}
	none := func(v starlark.Value) bool { return v == nil || v == starlark.None }
	if none(start) && none(end) {
		return s, 0, true, nil
	}
	n := utf8.RuneCountInString(s)
	lo, hi, err := c.bounds(start, end, n)
	if err != nil || lo > hi {
		return "", 0, false, err
	}
	ascii := n == len(s)
	from := offsetIn(s, lo, ascii)
	return s[from : from+offsetIn(s[from:], hi-lo, ascii)], lo, true, nil
}

// stringFind is find, index, rfind and rindex.
func stringFind(c *call) (starlark.Value, error) {
	var sub, start, end starlark.Value
	if err := c.take(1, &sub, &start, &end); err != nil {
		return nil, err
	}
	t, err := c.textOf(sub, "the text to find")
	if err != nil {
		return nil, err
	}
	part, before, ok, err := c.window(c.self(), start, end)
	if err != nil {
		return nil, err
	}
	find := strings.Index
	if strings.HasPrefix(c.name, "r") {
		find = strings.LastIndex
	}
	at := -1
	if ok {
		at = find(part, t)
	}
	if at >= 0 {
		return starlark.MakeInt(before + utf8.RuneCountInString(part[:at])), nil
	}
	if strings.HasSuffix(c.name, "index") {
		return nil, fault.New("ValueError", "%s: %s is not in the text", c.name, Repr(sub)).
			Hinted("test for it first, or use %s, which gives -1", strings.Replace(c.name, "index", "find", 1))
	}
	return starlark.MakeInt(-1), nil
}

func stringCount(c *call) (starlark.Value, error) {
	var sub, start, end starlark.Value
	if err := c.take(1, &sub, &start, &end); err != nil {
		return nil, err
	}
	t, err := c.textOf(sub, "the text to count")
	if err != nil {
		return nil, err
	}
	part, _, ok, err := c.window(c.self(), start, end)
	if err != nil || !ok {
		return starlark.MakeInt(0), err
	}
	return starlark.MakeInt(strings.Count(part, t)), nil
}

// stringAffix is startswith and endswith, of a text or any of a tuple of them.
func stringAffix(c *call) (starlark.Value, error) {
	var affix, start, end starlark.Value
	if err := c.take(1, &affix, &start, &end); err != nil {
		return nil, err
	}
	part, _, ok, err := c.window(c.self(), start, end)
	if err != nil {
		return nil, err
	}
	has := strings.HasPrefix
	if c.name == "endswith" {
		has = strings.HasSuffix
	}
	choices, several := affix.(starlark.Tuple)
	if !several {
		choices = starlark.Tuple{affix}
	}
	for _, v := range choices {
		t, err := c.textOf(v, "the argument")
		if err != nil {
			return nil, err
		}
		if err := c.step(1); err != nil {
			return nil, err
		}
		if ok && has(part, t) {
			return starlark.True, nil
		}
	}
	return starlark.False, nil
}

func stringRemovePrefix(c *call) (starlark.Value, error) {
	var t starlark.String
	if err := c.take(1, &t); err != nil {
		return nil, err
	}
	return starlark.String(strings.TrimPrefix(c.self(), string(t))), nil
}

func stringRemoveSuffix(c *call) (starlark.Value, error) {
	var t starlark.String
	if err := c.take(1, &t); err != nil {
		return nil, err
	}
	return starlark.String(strings.TrimSuffix(c.self(), string(t))), nil
}

func stringPartition(c *call) (starlark.Value, error) {
	var v starlark.Value
	if err := c.take(1, &v); err != nil {
		return nil, err
	}
	sep, err := c.separator(v)
	if err != nil {
		return nil, err
	}
	s := c.self()
	if err := c.scan(len(s)); err != nil {
		return nil, err
	}
	at := strings.Index(s, sep)
	if c.name == "rpartition" {
		if at = strings.LastIndex(s, sep); at < 0 {
			return starlark.Tuple{starlark.String(""), starlark.String(""), c.recv}, nil
		}
	}
	if at < 0 {
		return starlark.Tuple{c.recv, starlark.String(""), starlark.String("")}, nil
	}
	return starlark.Tuple{starlark.String(s[:at]), starlark.String(sep), starlark.String(s[at+len(sep):])}, nil
}

func (c *call) separator(v starlark.Value) (string, error) {
	sep, err := c.textOf(v, "the separator")
	if err == nil && sep == "" {
		return "", fault.New("ValueError", "%s: the separator is empty", c.name).Hinted("characters are list(s)")
	}
	return sep, err
}

// stringSplit is split and rsplit.
func stringSplit(c *call) (starlark.Value, error) {
	var sepArg, mostArg starlark.Value
	if err := c.bind("sep?", &sepArg, "maxsplit?", &mostArg); err != nil {
		return nil, err
	}
	most, err := c.optional(mostArg, "maxsplit", -1)
	if err != nil {
		return nil, err
	}
	s := c.self()
	if err := c.scan(2 * len(s)); err != nil {
		return nil, err
	}
	right := c.name == "rsplit"
	if sepArg == nil || sepArg == starlark.None {
		return c.fields(s, most, right)
	}
	sep, err := c.separator(sepArg)
	if err != nil {
		return nil, err
	}
	n := strings.Count(s, sep)
	if most >= 0 {
		n = min(n, most)
	}
	if err := c.pieces(n + 1); err != nil {
		return nil, err
	}
	if right {
		return c.splitRight(s, sep, n)
	}
	parts := make([]starlark.Value, 0, n+1)
	for range n {
		at := strings.Index(s, sep)
		parts = append(parts, starlark.String(s[:at]))
		s = s[at+len(sep):]
	}
	return starlark.NewList(append(parts, starlark.String(s))), nil
}

// pieces asks for the room that a list of n texts needs, and charges for making it.
func (c *call) pieces(n int) error {
	if err := c.slots(2 * n); err != nil {
		return err
	}
	return c.step(n)
}

func (c *call) splitRight(s, sep string, n int) (starlark.Value, error) {
	parts := make([]starlark.Value, n+1)
	for i := n; i > 0; i-- {
		at := strings.LastIndex(s, sep)
		parts[i] = starlark.String(s[at+len(sep):])
		s = s[:at]
	}
	parts[0] = starlark.String(s)
	return starlark.NewList(parts), nil
}

// fields splits at white space.
func (c *call) fields(s string, most int, right bool) (starlark.Value, error) {
	g := gatherer{call: c}
	if right {
		s = strings.TrimRightFunc(s, isSpace)
	} else {
		s = strings.TrimLeftFunc(s, isSpace)
	}
	for s != "" {
		if err := c.step(2); err != nil {
			return nil, err
		}
		at := -1
		if most < 0 || len(g.values) < most {
			if right {
				at = strings.LastIndexFunc(s, isSpace)
			} else {
				at = strings.IndexFunc(s, isSpace)
			}
		}
		piece, rest := s, ""
		switch {
		case at >= 0 && right:
			piece, rest = s[at+runeLen(s[at:]):], strings.TrimRightFunc(s[:at], isSpace)
		case at >= 0:
			piece, rest = s[:at], strings.TrimLeftFunc(s[at:], isSpace)
		}
		if err := g.add(starlark.String(piece)); err != nil {
			return nil, err
		}
		s = rest
	}
	if right {
		reverse(g.values)
	}
	return starlark.NewList(g.values), nil
}

func stringSplitLines(c *call) (starlark.Value, error) {
	keep := starlark.Value(starlark.False)
	if err := c.bind("keepends?", &keep); err != nil {
		return nil, err
	}
	s := c.self()
	if err := c.scan(2 * len(s)); err != nil {
		return nil, err
	}
	g := gatherer{call: c}
	for s != "" {
		if err := c.step(2); err != nil {
			return nil, err
		}
		end, next := lineEnd(s)
		if keep.Truth() {
			end = next
		}
		if err := g.add(starlark.String(s[:end])); err != nil {
			return nil, err
		}
		s = s[next:]
	}
	return starlark.NewList(g.values), nil
}

// lineEnd is where the first line ends, and where the next begins.
func lineEnd(s string) (end, next int) {
	for i, r := range s {
		switch r {
		case '\r':
			if strings.HasPrefix(s[i+1:], "\n") {
				return i, i + 2
			}
			return i, i + 1
		case '\n', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
			return i, i + utf8.RuneLen(r)
		}
	}
	return len(s), len(s)
}
