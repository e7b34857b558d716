package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// heapBound is what maxRenders pages take while they are rendered, whatever is in them, with what waits for them and what
// the collector has not come to.
const heapBound = 384 << 20

// TestMemory: many sessions fetch pages that are small when they come, and as large as may be when they are rendered.
func TestMemory(t *testing.T) {
	sessions := 16
	if underRace {
		sessions = 2 * maxRenders
	}
	for name, unit := range map[string]string{
		"paragraphs": "<p>a", "attributes": "<a href=x href=x href=x href=x>", "cells": "<table><td>", "reopened": formattingLeftOpen(480) + "<p>x<p>x<p>x",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", gzipped(t, unit, 20<<20))
			b := w.browser()
			b.time = 5 * time.Minute // the machine's pace is not what is tested
			done := make(chan struct{})
			peak := watchHeap(done)
			var fetches sync.WaitGroup
			for range sessions {
				fetches.Go(func() {
					page, err := b.fetch(t.Context(), Fetch{URL: "http://public.test/", MaxBytes: maxBytes, Format: formatMarkdown})
					if err != nil || !page.Truncated {
						t.Errorf("truncated %v, %v", page.Truncated, err)
					}
				})
			}
			fetches.Wait()
			close(done)
			most := <-peak
			t.Logf("%d MiB", most>>20)
			if most > heapBound {
				t.Errorf("the heap came to %d MiB; want %d at most", most>>20, heapBound>>20)
			}
		})
	}
}

// formattingLeftOpen is what the parser of HTML 5 repeats in each block that follows.
func formattingLeftOpen(levels int) string {
	var s strings.Builder
	for n := range levels {
		fmt.Fprintf(&s, "<b a=%d>", n)
	}
	return s.String()
}

// gzipped serves size bytes of HTML.
func gzipped(t *testing.T, unit string, size int) http.HandlerFunc {
	t.Helper()
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	io.WriteString(z, strings.Repeat(unit, size/len(unit)))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(body.Bytes())
	}
}

// watchHeap sends the most bytes that objects on the heap came to until done is closed.
func watchHeap(done <-chan struct{}) <-chan uint64 {
	peak := make(chan uint64, 1)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for most := uint64(0); ; {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-tick.C:
			case <-done:
				peak <- most
				return
			}
		}
	}()
	return peak
}

// TestWaitForRoom: a fetch whose time is up, or whose caller has gone, does not wait until others are rendered.
func TestWaitForRoom(t *testing.T) {
	pages := museumRecording(t)
	synctest.Test(t, func(t *testing.T) {
		b := browser{transport: pages, room: newRoom(), time: fetchTime, log: slog.New(slog.DiscardHandler)}
		if err := b.room.Acquire(t.Context(), maxRenders); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		fetch := func() {
			_, err := b.fetch(ctx, Fetch{URL: "http://museum.example/", MaxBytes: 1000, Format: formatMarkdown})
			ended <- err
		}
		start := time.Now()
		go fetch()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(start) > 0 {
			t.Errorf("its caller has gone: %v after %v", err, time.Since(start))
		}
		ctx = t.Context()
		go fetch()
		if err := <-ended; time.Since(start) != fetchTime {
			t.Errorf("its time is up: %v after %v", err, time.Since(start))
		} else {
			refusedTo(t, err, "took too long")
		}
		b.room.Release(maxRenders)
		go fetch()
		if err := <-ended; err != nil {
			t.Errorf("there is room: %v", err)
		}
	})
}

// TestNothingIsRenderedForNobody: a caller who has gone ends the rendering, too.
func TestNothingIsRenderedForNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, format := range []string{formatMarkdown, formatText, "raw"} {
		if _, text, _, err := renderHTML(ctx, sample, here, format); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %d bytes, %v", format, len(text), err)
		}
	}
}
