// Package sandbox runs code of code mode in processes of its own, so that no code can take the memory or the time of the
// server. A [Pool] starts this program's own executable again for them: the package's init sees the mark that the pool
// sets, serves runs over the standard input and output, and never comes to main. Tools are called in the pool's process.
//
// A child has the memory that [Options] gives, one processor, no environment to speak of, no files but three pipes, and
// system calls that reach nothing else: it is bounded by the kernel (resource limits and seccomp), not by its good will. What it
// sends is checked like a stranger's. It ends with its pool's process, and after a run that reached a limit.
//
// Children need Linux on amd64 or arm64; elsewhere [New] fails with an [*UnsupportedError].
package sandbox
