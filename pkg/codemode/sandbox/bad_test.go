//go:build linux && (amd64 || arm64)

package sandbox_test

const orphanVariable = "SANDBOX_TEST_ORPHAN"

func misbehave(string) {}
func orphan()          {}
