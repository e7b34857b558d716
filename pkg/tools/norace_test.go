//go:build !race

package tools

const slowdown = 1
