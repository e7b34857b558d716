// Package proc starts the measured servers, each as a process of its own, and reads from the kernel what they use. Linux
// only: CPU by the process's own clock, memory from /proc.
package proc
