package session

import (
	"errors"
	"fmt"
	"time"
)

// A Code says why a session could not be had.
type Code int

const (
	CapacityReached Code = iota + 1 // every slot is taken
	FactoryFailed                   // the environment could not be built
	Unknown                         // no session has that id, or it is closing
	Initializing                    // the session's environment is still being built
	Busy                            // another gym channel has the session
	Closed                          // the session ended while the call waited or ran
	ShuttingDown                    // the server takes no new sessions
	TooMany                         // the session has minted all the handles it may
)

// An Error is a session that could not be had.
type Error struct {
	Code        Code
	Message     string
	Active, Max int    // CapacityReached
	Factory     string // FactoryFailed: the environment's name
	Err         error  // FactoryFailed: why
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

func errUnknown(id string) error {
	return &Error{Code: Unknown, Message: fmt.Sprintf("unknown session %.64q: it was never opened here, or has ended", id)}
}

func errClosed() *Error {
	return &Error{Code: Closed, Message: "the session was closed"}
}

// A TimeoutError is a call whose deadline passed: while it waited for its turn, or while the environment ran.
type TimeoutError struct {
	What  string        // what was called: reset, step, list_tools, state, or tool "name"
	Limit time.Duration // how long it was given
	Ran   bool          // whether it had its turn
}

func (e *TimeoutError) Error() string {
	if e.Ran {
		return fmt.Sprintf("%s did not finish within %v", e.What, e.Limit)
	}
	return fmt.Sprintf("%s waited %v for an earlier call of the session and did not run", e.What, e.Limit)
}

// errDeadline is the cause of a call's context whose own time is up.
var errDeadline = errors.New("the call's deadline has passed")
