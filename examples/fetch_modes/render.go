package main

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// The formats of a fetch.
const (
	formatMarkdown = "markdown"
	formatText     = "text"
)

// render reads a response within the limits of a fetch and puts it into the format asked for.
func render(res *http.Response, in Fetch) (Page, error) {
	at := res.Request.URL
	if coding := res.Header.Get("Content-Encoding"); coding != "" {
		return Page{}, tools.Failf("%s is compressed by %.40q, which was not asked for: try another page", pageOf(at), coding)
	}
	body, more, err := readBody(res.Body, in.MaxBytes)
	if err != nil {
		return Page{}, err
	}
	header := res.Header.Get("Content-Type")
	if header == "" {
		header = http.DetectContentType(body)
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil || !isText(media) {
		return Page{}, tools.Failf("%s is of type %.80q: only text, HTML, JSON and XML can be read; try another page", pageOf(at), header)
	}
	source, err := decode(body, header)
	if err != nil {
		return Page{}, tools.Failf("%s is in a character set that is not known: try another page", pageOf(at))
	}
	page := Page{URL: pageOf(at), Status: res.StatusCode, ContentType: valid(media), Text: source}
	if media == "text/html" || media == "application/xhtml+xml" {
		if page.Title, page.Text, err = renderHTML(source, at, in.Format); err != nil {
			return Page{}, err
		}
	}
	page.Text, page.Truncated = cut(page.Text, in.MaxBytes, more)
	return page, nil
}

// renderHTML is a page in one of the formats.
func renderHTML(source string, at *url.URL, format string) (title, text string, err error) {
	title, text = plain(source)
	switch format {
	case formatText:
		return title, text, nil
	case formatMarkdown:
		text, err = markdown(source, at)
		return title, text, err
	}
	return title, source, nil
}

func isText(media string) bool {
	known := []string{"application/json", "application/xml", "application/xhtml+xml"}
	return strings.HasPrefix(media, "text/") || slices.Contains(known, media) ||
		strings.HasPrefix(media, "application/") && (strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml"))
}

// decode is the body in UTF-8, from the character set that it declares, or seems to have.
func decode(body []byte, header string) (string, error) {
	r, err := charset.NewReader(bytes.NewReader(body), header)
	if err == io.EOF { // an empty body
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return valid(string(text)), err
}

// cut holds a text to max bytes. Where the text has more, or its source had, no character at the end is left in halves.
func cut(text string, max int, more bool) (string, bool) {
	if len(text) > max {
		for max > 0 && !utf8.RuneStart(text[max]) {
			max--
		}
		text, more = text[:max], true
	}
	if more {
		text = strings.TrimRight(text, "\uFFFD")
	}
	return text, more
}
