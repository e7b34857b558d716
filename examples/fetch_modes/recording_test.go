package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"
)

func museumRecording(t *testing.T) *recording {
	t.Helper()
	r, err := newRecording(embeddedFS{testdata}, "testdata/web")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func replay(t *testing.T, url string, format string, limit int) (Page, error) {
	t.Helper()
	b := browser{transport: museumRecording(t), room: newRoom(), time: fetchTime, log: slog.New(slog.DiscardHandler)}
	return b.fetch(t.Context(), Fetch{URL: url, MaxBytes: limit, Format: format})
}

// TestRecordingIsTheMuseum records the museum again.
func TestRecordingIsTheMuseum(t *testing.T) {
	name := filepath.Join(t.TempDir(), "web")
	tally, err := recordMuseum(t.Context(), name, slog.New(slog.DiscardHandler))
	if want := "19 addresses: 14 pages, 5 failures (1 no such host, 1 not readable, 1 redirects not followed, 1 timeout, 1 unreachable)"; err != nil || tally.String() != want {
		t.Fatalf("%v, %v; want %s", tally, err, want)
	}
	got, err := os.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := testdata.ReadFile("testdata/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("run `go run ./examples/fetch_modes record`:\n%s", cmp.Diff(string(want), string(got)))
	}
}

func TestReplay(t *testing.T) {
	page, err := replay(t, "HTTP://Museum.Example:80/old-hours#saturday", formatMarkdown, 32768)
	want := Page{URL: "http://museum.example/hours", Status: 200, ContentType: "text/html", Title: "Hours", Text: "# Hours\n\n" +
		"|Day|Opens|Closes|\n|---|---|---|\n|Tuesday to Friday|10:30|17:00|\n|Saturday|9:15|18:45|\n|Sunday|11:00|16:00|\n\n" +
		"Closed on Mondays, and on days of *spring tide*, when the ground floor is under water."}
	if diff := cmp.Diff(want, page); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	if page, err = replay(t, "http://museum.example/diary.txt", formatText, 32768); err != nil || !strings.Contains(page.Text, "Señor") {
		t.Errorf("Latin-1: %+v, %v", page, err)
	}
	if page, err = replay(t, "http://museum.example/tickets.json", formatMarkdown, 32768); err != nil || !strings.HasPrefix(page.Text, `{"currency"`) {
		t.Errorf("JSON: %+v, %v", page, err)
	}
	if page, err = replay(t, "http://museum.example/catalogue", "raw", 32768); err != nil || len(page.Text) != 32768 || !page.Truncated {
		t.Errorf("a large page: %d bytes, truncated %v, %v", len(page.Text), page.Truncated, err)
	}
	for at, status := range map[string]int{"http://museum.example/exhibits/moon-dial": http.StatusNotFound, "http://museum.example/guestbook": http.StatusInternalServerError} {
		if page, err = replay(t, at, formatText, 32768); err != nil || page.Status != status {
			t.Errorf("%s: %+v, %v", at, page, err)
		}
	}
}

func TestReplayOfFailures(t *testing.T) {
	for at, words := range map[string]string{
		"http://museum.example/archive": "took too long", "http://museum.example/sounds": "broke off", "http://museum.example/plan.png": "is of type",
		"http://museum.example/loop": "more than 5 times", "http://shop.museum.example/": "no host", "http://museum.example/nosuch": "not in the recording",
		"http://127.0.0.1/": "not in the recording", "https://museum.example/": "not in the recording",
	} {
		_, err := replay(t, at, formatText, 32768)
		refusedTo(t, err, words)
	}
}

// TestTooLargeToRecord: what is larger than anybody may read is so in replay, too, and is not read to its end.
func TestTooLargeToRecord(t *testing.T) {
	w := newWorld(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for chunk := []byte(strings.Repeat("x", 1<<16)); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	name := filepath.Join(t.TempDir(), "large")
	if _, err := record(t.Context(), name, w.browser(), []string{"http://public.test/"}); err != nil {
		t.Fatal(err)
	}
	r, err := newRecording(cassette.NewDiskFS(), name)
	if err != nil {
		t.Fatal(err)
	}
	b := browser{transport: r, room: newRoom(), time: fetchTime, log: slog.New(slog.DiscardHandler)}
	page, err := b.fetch(t.Context(), Fetch{URL: "http://public.test/", MaxBytes: maxBytes, Format: "raw"})
	if err != nil || len(page.Text) != maxBytes || !page.Truncated {
		t.Errorf("%d bytes, truncated %v, %v", len(page.Text), page.Truncated, err)
	}
}

// TestNothingIsRecordedOfWrongAddresses: a slip must not cost the recording that is there.
func TestNothingIsRecordedOfWrongAddresses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "web")
	w := newWorld(t, "", http.HandlerFunc(hello))
	_, err := record(t.Context(), name, w.browser(), []string{"http://public.test/", "-help"})
	refusedTo(t, err, "no address")
	if _, err := os.Stat(name + ".yaml"); err == nil || len(w.dialled) > 0 {
		t.Errorf("there is a recording, or %v was dialled", w.dialled)
	}
}

// TestRecordingWithoutPages: the recording that is there is worth more than one of failures.
func TestRecordingWithoutPages(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "web")
	w := newWorld(t, "", http.HandlerFunc(hello))
	if tally, err := record(t.Context(), name, w.browser(), []string{"http://public.test/", "http://10.0.0.1/"}); err != nil || tally.String() != "2 addresses: 1 page, 1 failure (refused)" {
		t.Fatalf("%v, %v", tally, err)
	}
	before, err := os.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = record(t.Context(), name, w.browser(), []string{"http://10.0.0.1/", "http://10.0.0.2/"})
	var none *noPageError
	if !errors.As(err, &none) || none.tally.failures["refused"] != 2 {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := record(ctx, name, w.browser(), []string{"http://public.test/"}); !errors.Is(err, context.Canceled) {
		t.Errorf("its caller has gone: %v", err)
	}
	if after, err := os.ReadFile(name + ".yaml"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the recording has changed: %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v are left, %v", files, err)
	}
}

// TestRecordCommand: the exit code tells whether there is a recording. Nothing is dialled: both are refused.
func TestRecordCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(recordingFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if code := recordMain([]string{"http://127.0.0.1/", "http://[::1]/"}); code != 1 {
		t.Errorf("exit code %d without a page", code)
	}
	if files, err := os.ReadDir(filepath.Dir(recordingFile)); err != nil || len(files) > 0 {
		t.Errorf("%v are written, %v", files, err)
	}
}
