package transport

import (
	"testing"

	"go.uber.org/goleak"
)

// Nothing outlives its session, its socket or its server: a goroutine that is left after the tests fails them.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
