package main

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxNodes = 40_000 // of a document that is rendered
	maxDepth = 128    // levels of it; an element below has its contents beside it
	maxAttrs = 8      // attributes kept of an element
)

// A builder makes a tree of HTML's tokens, two nodes of each at most. The parser of HTML 5 repeats in each block what formatting
// was left open before, so that 32 KiB may come to a gigabyte, and tells nobody of how far it is. What it repairs in other
// ways is repaired here, as far as Markdown shows it.
type builder struct {
	open  []*html.Node // the document, and the elements in it that tokens go into, the innermost last
	nodes int
}

// parse reads a document, and reports whether it has more nodes than are read. Its error is that of ctx.
func parse(ctx context.Context, source string) (doc *html.Node, more bool, err error) {
	doc = &html.Node{Type: html.DocumentNode}
	b := builder{open: []*html.Node{doc}}
	for z := html.NewTokenizer(strings.NewReader(source)); ctx.Err() == nil; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return doc, false, nil
		case html.TextToken:
			b.text(strings.ReplaceAll(string(z.Text()), "\x00", ""))
		case html.StartTagToken, html.SelfClosingTagToken:
			n := element(z)
			b.start(n, isVoid(n.DataAtom) || kind == html.SelfClosingTagToken && n.DataAtom == 0)
		case html.EndTagToken:
			name, _ := z.TagName()
			b.end(string(name))
		}
		if b.nodes >= maxNodes {
			return doc, true, nil
		}
	}
	return nil, false, ctx.Err()
}

// element is the tag that z is at, with those of its attributes that Markdown shows.
func element(z *html.Tokenizer) *html.Node {
	name, more := z.TagName()
	n := &html.Node{Type: html.ElementNode, Data: string(name), DataAtom: atom.Lookup(name)}
	for more && len(n.Attr) < maxAttrs {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "start":
			if len(value) > maxStart {
				continue
			}
			fallthrough
		case "href", "src", "alt", "title", "class", "align", "role":
			n.Attr = append(n.Attr, html.Attribute{Key: string(key), Val: string(value)})
		}
	}
	return n
}

func isVoid(a atom.Atom) bool {
	switch a {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Param,
		atom.Source, atom.Track, atom.Wbr:
		return true
	}
	return false
}

// isHidden says what is left out with all that is in it.
func isHidden(a atom.Atom) bool {
	switch a {
	case atom.Title, atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Noframes, atom.Noembed, atom.Textarea:
		return true
	}
	return false
}

// Elements that hold parts of a table.
var (
	tableAlone = []atom.Atom{atom.Table}
	rowGroups  = []atom.Atom{atom.Table, atom.Thead, atom.Tbody, atom.Tfoot}
	rowsToo    = []atom.Atom{atom.Table, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr}
)

// holders are the elements that a part of a table may stand in; nil for what is no such part.
func holders(a atom.Atom) []atom.Atom {
	switch a {
	case atom.Td, atom.Th:
		return rowsToo
	case atom.Tr:
		return rowGroups
	case atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption, atom.Colgroup, atom.Col:
		return tableAlone
	}
	return nil
}

func (b *builder) current() *html.Node { return b.open[len(b.open)-1] }

func (b *builder) start(n *html.Node, void bool) {
	switch n.DataAtom {
	case atom.Html, atom.Head, atom.Body:
		return
	}
	if in := holders(n.DataAtom); in != nil {
		i := b.innermost(in)
		if i < 0 {
			return // no part of a table without one
		}
		b.open = b.open[:i+1]
		if (n.DataAtom == atom.Td || n.DataAtom == atom.Th) && b.current().DataAtom != atom.Tr {
			b.put(&html.Node{Type: html.ElementNode, Data: "tr", DataAtom: atom.Tr}, false)
		}
	} else {
		b.endImplied(n.DataAtom)
	}
	b.put(n, void)
}

// put adds n where tokens go, and unless it is void, has what follows go into it.
func (b *builder) put(n *html.Node, void bool) {
	b.nodes++
	if !isHidden(n.DataAtom) {
		b.attach(n)
	}
	if !void && len(b.open) < maxDepth {
		b.open = append(b.open, n)
	}
}

// attach adds n to the innermost element, or before a table where it stands between the cells.
func (b *builder) attach(n *html.Node) {
	in := b.current()
	if slices.Contains(rowsToo, in.DataAtom) && holders(n.DataAtom) == nil {
		if table := b.open[b.innermost(tableAlone)]; table.Parent != nil {
			table.Parent.InsertBefore(n, table)
			return
		}
	}
	in.AppendChild(n)
}

func (b *builder) text(text string) {
	in := b.current()
	if in.DataAtom == atom.Pre && in.FirstChild == nil {
		text = strings.TrimPrefix(text, "\n")
	}
	if text == "" {
		return
	}
	b.nodes++
	n := &html.Node{Type: html.TextNode, Data: text}
	if strings.TrimSpace(text) == "" { // it may stand between cells
		in.AppendChild(n)
	} else {
		b.attach(n)
	}
}

// innermost is the index of the innermost open element of some, or -1.
func (b *builder) innermost(some []atom.Atom) int {
	for i := len(b.open) - 1; i > 0; i-- {
		if slices.Contains(some, b.open[i].DataAtom) {
			return i
		}
	}
	return -1
}

// endImplied ends what an element ends by its start: an item the one before it, a block the paragraph.
func (b *builder) endImplied(a atom.Atom) {
	switch a {
	case atom.Li:
		b.endWithin([]atom.Atom{atom.Li}, atom.Ul, atom.Ol)
	case atom.Dt, atom.Dd:
		b.endWithin([]atom.Atom{atom.Dt, atom.Dd}, atom.Dl)
	case atom.Option, atom.Optgroup:
		b.endWithin([]atom.Atom{atom.Option}, atom.Select)
	case atom.A:
		b.endWithin([]atom.Atom{atom.A})
	}
	if isBlock(a) {
		b.endWithin([]atom.Atom{atom.P}, atom.Button, atom.Object)
	}
}

// endWithin ends the innermost open element of some, unless that is outside of a cell, a table or one of bounds.
func (b *builder) endWithin(some []atom.Atom, bounds ...atom.Atom) {
	for i := len(b.open) - 1; i > 0; i-- {
		a := b.open[i].DataAtom
		if slices.Contains(some, a) {
			b.open = b.open[:i]
			return
		}
		if bounded(a) || slices.Contains(bounds, a) {
			return
		}
	}
}

// bounded says what an end tag within does not end, unless it is that of a part of a table.
func bounded(a atom.Atom) bool {
	switch a {
	case atom.Td, atom.Th, atom.Caption, atom.Table, atom.Template:
		return true
	}
	return false
}

// end ends the innermost open element of a name, and what was left open in it.
func (b *builder) end(name string) {
	tag := atom.Lookup([]byte(name))
	part := holders(tag) != nil
	for i := len(b.open) - 1; i > 0; i-- {
		n := b.open[i]
		if n.Data == name {
			b.open = b.open[:i]
			return
		}
		list := tag == atom.Li && (n.DataAtom == atom.Ul || n.DataAtom == atom.Ol)
		if list || n.DataAtom == atom.Table && tag != atom.Table || bounded(n.DataAtom) && !part && tag != atom.Table {
			return
		}
	}
}

// isBlock says what stands in no paragraph.
func isBlock(a atom.Atom) bool {
	switch a {
	case atom.P, atom.Div, atom.Li, atom.Ul, atom.Ol, atom.Table, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Section,
		atom.Article, atom.Header, atom.Footer, atom.Nav, atom.Main, atom.Aside, atom.Blockquote, atom.Pre, atom.Dl, atom.Dt, atom.Dd,
		atom.Hr, atom.Form, atom.Figure, atom.Figcaption, atom.Fieldset, atom.Details, atom.Summary, atom.Address, atom.Center:
		return true
	}
	return false
}
