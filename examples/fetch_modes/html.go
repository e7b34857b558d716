package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxNested = 8         // levels of lists and quotes; each costs the converter a pass over all that is in it
	maxCells  = 20_000    // of a table, after its rows have been filled up
	maxStart  = 6         // digits of a list's first number; each line in an item is indented by its length
	maxLinks  = 256 << 10 // bytes of links that are made absolute: a long address repeats in each
)

// markdown converts a page whose links are relative to base, and reports whether it has more than is converted.
func markdown(ctx context.Context, source string, base *url.URL) (text string, more bool, err error) {
	doc, more, err := parse(ctx, source)
	if err != nil {
		return "", false, err
	}
	t := tamer{base: base, budget: maxLinks}
	t.tame(doc, 0)
	if err := ctx.Err(); err != nil {
		return "", false, err
	}
	converted, err := newConverter().ConvertNode(doc)
	return string(converted), more, err
}

// newConverter leaves Markdown's own characters as they are: models read it as text, and to escape them can cost the square of
// their number.
func newConverter() *converter.Converter {
	c := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorNone)), // alignment repeats the longest cell's length in each row
	))
	for level := 1; level <= 6; level++ {
		c.Register.RendererFor(fmt.Sprintf("h%d", level), converter.TagTypeBlock, heading(level), converter.PriorityEarly)
	}
	return c
}

// heading writes a heading. The plugin's own takes a # at the end for one that was escaped, and overwrites what is before it.
func heading(level int) converter.HandleRenderFunc {
	return func(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
		var b strings.Builder
		ctx.RenderChildNodes(ctx, &b, n)
		text := strings.Join(strings.Fields(b.String()), " ")
		if before, ends := strings.CutSuffix(text, "#"); ends && !strings.HasSuffix(before, `\`) {
			text = before + `\#` // which would close the heading
		}
		if text != "" {
			fmt.Fprintf(w, "\n\n%s %s\n\n", strings.Repeat("#", level), text)
		}
		return converter.RenderSuccess
	}
}

// A tamer makes a document's links absolute, and takes out what would make its Markdown far larger than its HTML.
type tamer struct {
	base   *url.URL
	budget int
}

// A shape is what a part of a document adds to the table around it.
type shape struct {
	tables               bool // there is one within
	rows, widest, inLast int  // rows, the most cells of one, and those that stand in no row yet
}

// tame walks a document of at most maxDepth levels; nested counts the lists and quotes around n.
func (t *tamer) tame(n *html.Node, nested int) shape {
	switch n.DataAtom {
	case atom.Ul, atom.Ol, atom.Li, atom.Blockquote:
		if nested++; nested > maxNested {
			rename(n)
		}
	}
	t.attributes(n)
	var s shape
	for c := range n.ChildNodes() {
		in := t.tame(c, nested)
		s = shape{s.tables || in.tables, s.rows + in.rows, max(s.widest, in.widest), s.inLast + in.inLast}
	}
	switch n.DataAtom {
	case atom.Td, atom.Th:
		return shape{tables: s.tables, inLast: 1}
	case atom.Tr:
		return shape{tables: s.tables, rows: 1, widest: s.inLast}
	case atom.Table:
		// The converter renders the cells of a table twice where it finds that it cannot be one, and fills up its rows.
		if s.tables || s.rows*s.widest > maxCells {
			flatten(n)
		}
		return shape{tables: true}
	}
	return s
}

// rename makes a block of an element without a form of its own.
func rename(n *html.Node) { n.Data, n.DataAtom = "div", atom.Div }

// flatten makes blocks of a table, its rows and its cells, but not of a table within.
func flatten(n *html.Node) {
	rename(n)
	for c := range n.ChildNodes() {
		switch c.DataAtom {
		case atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
			flatten(c)
		}
	}
}

// attributes makes links absolute.
func (t *tamer) attributes(n *html.Node) {
	for i, a := range n.Attr {
		if a.Key == "href" || a.Key == "src" {
			n.Attr[i].Val = t.absolute(a.Val)
			if n.DataAtom == atom.Base {
				t.rebase(n.Attr[i].Val)
			}
		}
	}
}

func (t *tamer) absolute(link string) string {
	if t.budget <= 0 {
		return link
	}
	u, err := t.base.Parse(strings.TrimSpace(link))
	if err != nil {
		return link
	}
	full := u.String()
	t.budget -= len(full)
	return full
}

// rebase takes an address that a page gives for its links to be relative to.
func (t *tamer) rebase(address string) {
	if u, err := url.Parse(address); err == nil && checkURL(u) == nil {
		t.base = u
	}
}

// plain is a page's title, and its text with a line for each block.
func plain(source string) (title, text string) {
	var lines lineWriter
	var heading strings.Builder
	hidden, inTitle := 0, false
	for z := html.NewTokenizer(strings.NewReader(source)); ; {
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			return strings.Join(strings.Fields(heading.String()), " "), lines.text()
		case html.TextToken:
			if inTitle {
				heading.Write(z.Text())
			} else if hidden == 0 {
				lines.words(string(z.Text()))
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			switch tag := atom.Lookup(name); tag {
			case atom.Title:
				inTitle = kind == html.StartTagToken && heading.Len() == 0
			case atom.Script, atom.Style, atom.Noscript, atom.Template:
				hidden = shown(hidden, kind)
			case atom.Pre:
				lines.verbatim, lines.line = kind == html.StartTagToken, true
			default:
				lines.tag(tag)
			}
		}
	}
}

// shown counts the elements around that hide what they hold.
func shown(hidden int, kind html.TokenType) int {
	switch kind {
	case html.StartTagToken:
		return hidden + 1
	case html.EndTagToken:
		return max(hidden-1, 0)
	}
	return hidden
}

// A lineWriter joins words into lines. The zero value is empty.
type lineWriter struct {
	b     strings.Builder
	space bool // the last text ended in a space, or an element ended that has one around it
	line  bool // a line ended

	verbatim bool // lines and spaces are to stay as they are
}

func (w *lineWriter) words(text string) {
	if w.verbatim && strings.TrimSpace(text) != "" {
		if w.line && w.b.Len() > 0 {
			w.b.WriteByte('\n')
		}
		w.b.WriteString(text)
		w.space, w.line = false, false
		return
	}
	for i, word := range strings.Fields(text) {
		switch {
		case w.b.Len() == 0:
		case w.line:
			w.b.WriteByte('\n')
		case w.space || i > 0 || strings.TrimLeft(text, " \t\r\n\f") != text:
			w.b.WriteByte(' ')
		}
		w.b.WriteString(word)
		w.space, w.line = false, false
	}
	w.space = w.space || strings.TrimRight(text, " \t\r\n\f") != text
}

// tag notes what an element's begin or end does to the line.
func (w *lineWriter) tag(a atom.Atom) {
	switch a {
	case atom.Td, atom.Th:
		w.space = true
	case atom.P, atom.Div, atom.Br, atom.Li, atom.Ul, atom.Ol, atom.Tr, atom.Table, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6,
		atom.Section, atom.Article, atom.Header, atom.Footer, atom.Nav, atom.Main, atom.Aside, atom.Blockquote, atom.Dl, atom.Dt,
		atom.Dd, atom.Hr, atom.Form, atom.Figure, atom.Figcaption, atom.Body, atom.Caption, atom.Option:
		w.line = true
	}
}

func (w *lineWriter) text() string { return w.b.String() }
