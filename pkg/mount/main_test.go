package mount_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs this binary as a mounted server where it is asked to, and the tests otherwise. A goroutine that is left
// after the tests fails them.
func TestMain(m *testing.M) {
	if kind := os.Getenv(childVariable); kind != "" {
		runChild(kind)
		return
	}
	goleak.VerifyTestMain(m)
}
