package main

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/sync/semaphore"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// The formats of a fetch.
const (
	formatMarkdown = "markdown"
	formatText     = "text"
)

const (
	maxHTML    = 512 << 10 // bytes of HTML that are rendered; as it is, a page may be longer
	maxRenders = 4         // pages that are rendered at once, by all sessions; TestMemory holds what they take
)

// newRoom is what browsers share so that they render no more pages at once than the machine's memory takes.
func newRoom() *semaphore.Weighted { return semaphore.NewWeighted(maxRenders) }

// render reads a response within the limits of a fetch and puts it into the format asked for.
func (b browser) render(ctx context.Context, res *http.Response, in Fetch) (Page, error) {
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
	if err := b.room.Acquire(ctx, 1); err != nil {
		return Page{}, err
	}
	defer b.room.Release(1)
	source, err := decode(body, header)
	if err != nil {
		return Page{}, tools.Failf("%s is in a character set that is not known: try another page", pageOf(at))
	}
	page := Page{URL: pageOf(at), Status: res.StatusCode, ContentType: valid(media), Text: source}
	if media == "text/html" || media == "application/xhtml+xml" {
		var clipped bool
		if page.Title, page.Text, clipped, err = renderHTML(ctx, source, at, in.Format); err != nil {
			return Page{}, err
		}
		more = more || clipped
	}
	page.Text, page.Truncated = cut(page.Text, in.MaxBytes, more)
	return page, nil
}

// renderHTML is a page in one of the formats, and whether it has more than was read of it.
func renderHTML(ctx context.Context, source string, at *url.URL, format string) (title, text string, more bool, err error) {
	read := source
	if len(read) > maxHTML {
		read, more = cut(read, maxHTML, true)
	}
	title, text = plain(read)
	switch format {
	case formatText:
		return title, text, more, ctx.Err()
	case formatMarkdown:
		text, fewer, err := markdown(ctx, read, at)
		return title, text, more || fewer, err
	}
	return title, source, false, ctx.Err()
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
