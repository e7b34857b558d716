package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"
	"gopkg.in/dnaeon/go-vcr.v4/pkg/recorder"
)

// A cassette holds answers only. A request that failed is recorded as an answer of this status, with its kind in a header.
const (
	failedStatus = 599
	failedHeader = "Openenv-Fetch-Failure"
)

// A recording replays what a cassette holds, and touches no network. It does not change, so that all sessions share it.
type recording struct {
	pages   []string // in their order
	answers map[string]*cassette.Interaction
}

// newRecording loads NAME.yaml.
func newRecording(fs cassette.FS, name string) (*recording, error) {
	c, err := cassette.LoadWithFS(name, fs)
	if err != nil {
		return nil, fmt.Errorf("the recording %s: %w", name, err)
	}
	r := &recording{answers: map[string]*cassette.Interaction{}}
	for _, i := range c.Interactions {
		u, err := url.Parse(i.Request.URL)
		if err != nil {
			return nil, fmt.Errorf("the recording %s: %w", name, err)
		}
		if _, twice := r.answers[pageOf(u)]; !twice {
			r.answers[pageOf(u)] = i
			r.pages = append(r.pages, pageOf(u))
		}
	}
	return r, nil
}

// RoundTrip answers as the recorded server did, failures included.
func (r *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	i, found := r.answers[pageOf(req.URL)]
	if !found {
		return nil, &failure{kind: notRecorded}
	}
	if kind := i.Response.Headers.Get(failedHeader); kind != "" {
		return nil, &failure{kind: failureKind(kind)}
	}
	res, err := i.GetHTTPResponse()
	if err != nil {
		return nil, err
	}
	res.Request = req
	return res, nil
}

// embeddedFS is where the program's own recording is.
type embeddedFS struct{ embed.FS }

func (embeddedFS) WriteFile(string, []byte) error { return errors.ErrUnsupported }

func (fs embeddedFS) IsFileExists(name string) bool {
	_, err := fs.Open(name)
	return err == nil
}

// newRecorder records what next answers into NAME.yaml, at its Stop. What varies from one recording to the next is left
// out, and what may be secret.
func newRecorder(name string, next *recordable) (*recorder.Recorder, error) {
	return recorder.New(name,
		recorder.WithMode(recorder.ModeRecordOnly),
		recorder.WithFS(replacing{cassette.NewDiskFS()}),
		recorder.WithReplayableInteractions(true), // a page that several lead to is recorded once
		recorder.WithRealTransport(next),
		recorder.WithMatcher(func(r *http.Request, recorded cassette.Request) bool { return r.URL.String() == recorded.URL }),
		recorder.WithSkipRequestLatency(true),
		recorder.WithHook(func(i *cassette.Interaction) error {
			i.Response.Duration = 0
			i.Response.Headers.Del("Date")
			i.Response.Headers.Del("Set-Cookie")
			return nil
		}, recorder.AfterCaptureHook),
	)
}

// A recordable makes answers of failures, and whole bodies of what may break off or never end.
type recordable struct {
	next   http.RoundTripper
	failed failureKind // of the last request that failed
}

func (r *recordable) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := r.next.RoundTrip(req)
	if err != nil {
		return r.fail(req, err), nil
	}
	defer res.Body.Close()
	body, more, err := readBody(res.Body, maxBytes)
	if err != nil {
		return r.fail(req, err), nil
	}
	if more {
		body = append(body, '\n') // one byte more than anybody reads, so that it is too large in replay, too
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

func (r *recordable) fail(req *http.Request, err error) *http.Response {
	r.failed = kindOf(err)
	return &http.Response{
		Status: fmt.Sprint(failedStatus), StatusCode: failedStatus, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{failedHeader: {string(r.failed)}}, Body: http.NoBody, Request: req,
	}
}
