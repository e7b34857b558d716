package main

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

var here = &url.URL{Scheme: "http", Host: "public.test", Path: "/a/page"}

var sample = strings.ReplaceAll(`<!doctype html><html><head><title> A
page </title><style>p{}</style><base href="/b/"></head><body><h1>Head</h1><p>One <b>bold</b> word, <a href="next">link</a>, [a_b*c*](d).</p>
<table><tr><th>Day</th><th>Opens</th></tr><tr><td colspan=1000000>Monday</td><td>9</td></tr></table>
<ul><li>first<li>second</ul><script>evil()</script><noscript>no</noscript><pre>a\n  b</pre></body></html>`, `\n`, "\n")

func TestFormats(t *testing.T) {
	for format, want := range map[string]string{
		formatText:     "Head\nOne bold word, link, [a_b*c*](d).\nDay Opens\nMonday 9\nfirst\nsecond\na\n  b",
		formatMarkdown: "# Head\n\nOne **bold** word, [link](http://public.test/b/next), [a_b*c*](d).\n\n|Day|Opens|\n|---|---|\n|Monday|9|\n\n- first\n- second\n\n```\na\n  b\n```",
		"raw":          sample,
	} {
		title, text, more, err := renderHTML(t.Context(), sample, here, format)
		if err != nil || more || title != "A page" || text != want {
			t.Errorf("%s: title %q, %v, text\n%s\nwant\n%s", format, title, err, text, want)
		}
	}
}

// TestRepairs: what pages leave out, or leave open, is read as browsers read it.
func TestRepairs(t *testing.T) {
	for source, want := range map[string]string{
		"<p>a<p>b<div>c</div>d":                           "a\n\nb\n\nc\n\nd",
		"<ul><li>a<ul><li>b</ul><li>c</ul>":               "- a\n  \n  - b\n- c",
		"<b>a<p>b</p></i></b> c":                          "**a**\n\n**b**\n\nc",
		"<table><td>a<td>b<tr><td>c</p><td>d</table>e":    "|||\n|---|---|\n|a|b|\n|c|d|\n\ne",
		"<table>x<tr><td>a</table>":                       "x\n\n||\n|---|\n|a|",
		"a<td>b</td></tr>c":                               "abc",
		"<div><table><tr><td>a</div>b</table>c</div>":     "||\n|---|\n|ab|\n\nc",
		"<template><p>a</template>b<script><p>c</script>": "b",
		"<svg><path d=1 /><g>a</g></svg><br/>b":           "a  \nb",
		"<a href=x>a<a href=y>b</a>c":                     "[a](http://public.test/a/x)[b](http://public.test/a/y)c",
		"<title>t</title><pre>\na\n</pre>\x00":            "```\na\n```",
		"<h2>C#</h2><h3>#</h3><h1> </h1><h1>a <b>b</b>":   "## C\\#\n\n### \\#\n\n# a **b**",
	} {
		text, more, err := markdown(t.Context(), source, here)
		if text != want || more || err != nil {
			t.Errorf("%s: %q, %v, %v; want %q", source, text, more, err, want)
		}
	}
}

// TestClipped: what is not read of a page is said to be missing.
func TestClipped(t *testing.T) {
	for name, c := range map[string]struct {
		source  string
		formats []string
	}{
		"nodes": {strings.Repeat("<p>a", maxNodes/2), []string{formatMarkdown}},
		"bytes": {"<p>" + strings.Repeat("word ", maxHTML/5+1), []string{formatMarkdown, formatText}},
	} {
		for _, format := range []string{formatMarkdown, formatText, "raw"} {
			_, text, more, err := renderHTML(t.Context(), c.source, here, format)
			if want := slices.Contains(c.formats, format); more != want || err != nil || text == "" {
				t.Errorf("%s, %s: more %v, %v; want %v", name, format, more, err, want)
			}
		}
	}
	deep := strings.Repeat("<div>", 10*maxDepth) + "a" + strings.Repeat("</div>", 10*maxDepth) + "b"
	if text, more, err := markdown(t.Context(), deep, here); text != "a\n\nb" || more || err != nil {
		t.Errorf("deep: %q, %v, %v", text, more, err)
	}
}

// TestHostileHTML: what grows with the square of its length takes minutes here, and all else a second or two. A whole
// mebibyte of each comes to three seconds at most, but not under the race detector.
func TestHostileHTML(t *testing.T) {
	size := maxBytes / 4
	if underRace {
		size = maxBytes / 32
	}
	fill := func(head, unit, tail string) string {
		return head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail
	}
	long := &url.URL{Scheme: "http", Host: "public.test", Path: "/" + strings.Repeat("x", 2000)}
	for name, source := range map[string]string{
		"divs":         fill("", "<div>", ""),
		"formatting":   fill("", "<b>x", ""),
		"reopened":     fill("<p>"+formattingLeftOpen(480), "<p>x", ""),
		"quotes":       fill(strings.Repeat("<blockquote>", 100), "a<br>", ""),
		"lists":        fill(strings.Repeat("<ul><li>", 100), "a<br>", ""),
		"numbers":      fill(strings.Repeat("<ol start=9223372036854775807><li>", 100), "a<br>", ""),
		"items":        fill("<ul>", "<li>a", ""),
		"tables":       fill(strings.Repeat("<table><tr><td>", 100), "a<br>", ""),
		"rows":         fill("<table>"+"<tr><td>"+strings.Repeat("x", size/4), "<tr><td>a", ""),
		"cells":        fill("<table><tr>", "<td>a", "</table>"),
		"ragged":       fill("<table><tr>"+strings.Repeat("<td>a", size/80), "<tr><td>", ""),
		"spans":        fill("<table>", "<tr><td rowspan=65534 colspan=1000>a", ""),
		"links":        fill("", "<a href=?>a</a>", ""),
		"stars":        fill("", "*", ""),
		"brackets":     fill("", "[", ""),
		"backticks":    fill("<pre>", "`", ""),
		"spaces":       fill("<p>a", " ", "b"),
		"newlines":     fill("<pre>", "\n", ""),
		"line breaks":  fill("", "<br>", ""),
		"attributes":   fill("<a ", "a=b ", ">x</a>"),
		"an attribute": fill("<a title='", "\n", "' href=x>x</a>"),
		"entities":     fill("", "&lt;", ""),
		"open comment": fill("<!--", "<!--", ""),
		"ends":         fill("", "</p>", ""),
		"paragraphs":   fill("", "<p>a", ""),
		"bold words":   fill("", "<b>a</b>", ""),
		"foster":       fill("<table>", "<a>x", ""),
		"selects":      fill("<select>", "<option>a", ""),
		"svg":          fill("<svg>", "<g/>", ""),
		"templates":    fill("", "<template>", ""),
		"definition":   fill("<dl>", "<dt>a<dd>b", ""),
		"headings":     fill("", "<h1>a</h1>", ""),
		"codes":        fill("", "<code>`a</code>", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, format := range []string{formatMarkdown, formatText} {
				start := time.Now()
				_, text, _, err := renderHTML(t.Context(), source, long, format)
				took := time.Since(start)
				t.Logf("%s: %v, %d bytes, %v", format, took, len(text), err)
				if took > 20*time.Second || len(text) > 8*size+maxLinks {
					t.Errorf("%s: took %v, and came to %d bytes", format, took, len(text))
				}
			}
		})
	}
}
