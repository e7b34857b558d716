// Package codemodetest has the corpus of code mode and the harbour whose tools it calls, for the tests of every layer.
//
// The corpus is in pkg/codemode/testdata, whose README.md says what its files hold.
package codemodetest
