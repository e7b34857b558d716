// Package report has what the measurements have found, the verdicts on it, and its tables and plots.
package report
