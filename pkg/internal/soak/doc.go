// Package soak is a test under load: a server in a process of its own, and clients of every kind that use it, misuse it and
// vanish. OPENENV_SOAK says for how long (10m, say; a few seconds where it is unset), OPENENV_SOAK_SEED repeats a run's
// choices. docs/reliability.md has what it holds and what it found last.
package soak
