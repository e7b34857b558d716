package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"
)

// replacing is a disk whose files are replaced whole, or not at all.
type replacing struct{ cassette.FS }

// WriteFile writes beside the file that is there, and then puts the new one in its place.
func (replacing) WriteFile(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// A tally counts what came of addresses.
type tally struct {
	pages    int
	failures map[string]int // by what went wrong
}

func (t *tally) fail(why string) {
	if t.failures == nil {
		t.failures = map[string]int{}
	}
	t.failures[why]++
}

// String is a tally as it is printed: "3 addresses: 1 page, 2 failures (1 no such host, 1 timeout)".
func (t tally) String() string {
	failed := 0
	var whys []string
	for _, why := range slices.Sorted(maps.Keys(t.failures)) {
		failed += t.failures[why]
		whys = append(whys, fmt.Sprintf("%d %s", t.failures[why], why))
	}
	text := number(t.pages+failed, "address", "es") + ": " + number(t.pages, "page", "s")
	switch {
	case failed == 0:
		return text
	case len(whys) == 1:
		_, whys[0], _ = strings.Cut(whys[0], " ") // the number is that of all
	}
	return text + ", " + number(failed, "failure", "s") + " (" + strings.Join(whys, ", ") + ")"
}

func number(n int, what, plural string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %s%s", n, what, plural)
}

// A noPageError is a recording that was not written, for it would hold no page.
type noPageError struct{ tally tally }

func (e *noPageError) Error() string {
	return e.tally.String() + ": nothing is recorded, and the recording that was there stays; check the addresses, or allow them by -fetch-allow"
}

// record fetches pages, follows their redirects, and writes what came of it to NAME.yaml, failures included. If no page is
// among that, or ctx ends, it writes nothing.
func record(ctx context.Context, name string, b browser, addresses []string) (tally, error) {
	for _, address := range addresses {
		if _, err := parseURL(address); err != nil {
			return tally{}, err
		}
	}
	network := &recordable{next: b.transport}
	tape, err := newRecorder(name, network)
	if err != nil {
		return tally{}, err
	}
	b.transport = tape
	var t tally
	for _, address := range addresses {
		why, err := b.outcome(ctx, network, address)
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		if why == "" {
			t.pages++
			continue
		}
		t.fail(why)
		b.log.Info("recorded as it is", "url", address, "failure", why, "error", err)
	}
	if t.pages == 0 {
		return t, &noPageError{t}
	}
	return t, tape.Stop()
}

// outcome fetches a page by a recorder of network, and says in a few words why there is none.
func (b browser) outcome(ctx context.Context, network *recordable, address string) (why string, err error) {
	network.failed, why = "", "redirects not followed"
	err = b.do(ctx, http.MethodGet, address, func(ctx context.Context, res *http.Response) error {
		why = "not readable"
		_, err := b.render(ctx, res, Fetch{URL: address, MaxBytes: maxBytes, Format: formatText})
		return err
	})
	switch {
	case network.failed != "":
		return strings.ReplaceAll(string(network.failed), "_", " "), err
	case err == nil:
		return "", nil
	}
	return why, err
}
