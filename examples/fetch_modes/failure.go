package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
)

// A failureKind says in which way a page could not be had. Recordings hold the words.
type failureKind string

const (
	refused        failureKind = "refused"
	noSuchHost     failureKind = "no_such_host"
	timedOut       failureKind = "timeout"
	badCertificate failureKind = "bad_certificate"
	unreachable    failureKind = "unreachable" // not connected, or the connection broke
	notRecorded    failureKind = "not_recorded"
)

// A failure is a request that got no answer, or not all of it. It is an error of a RoundTripper.
type failure struct {
	kind failureKind
	err  error // the cause, for the log; it may name addresses that no agent should learn
}

func (f *failure) Error() string {
	if f.err != nil {
		return fmt.Sprintf("%s: %v", f.kind, f.err)
	}
	return string(f.kind)
}

func (f *failure) Unwrap() error { return f.err }

// kindOf sorts the error of a request.
func kindOf(err error) failureKind {
	var f *failure
	var certificate *tls.CertificateVerificationError
	var network net.Error
	switch {
	case errors.As(err, &f):
		return f.kind
	case errors.As(err, &certificate):
		return badCertificate
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return timedOut
	}
	return unreachable
}

// tell is what the model reads of a failure: what it can do, and nothing of the cause.
func (k failureKind) tell(at *url.URL) string {
	switch k {
	case refused:
		return fmt.Sprintf("%s may not be fetched: only public hosts on ports 80 and 443 may", pageOf(at))
	case noSuchHost:
		return fmt.Sprintf("there is no host %s: check the address", at.Hostname())
	case timedOut:
		return fmt.Sprintf("%s took too long to answer: try again later, or another page", pageOf(at))
	case badCertificate:
		return fmt.Sprintf("%s has no valid certificate for that name: check the address, or try another page", at.Hostname())
	case notRecorded:
		return fmt.Sprintf("%s is not in the recording: list_pages has all that is", pageOf(at))
	}
	return fmt.Sprintf("%s could not be reached, or broke off: try again later, or another page", pageOf(at))
}
