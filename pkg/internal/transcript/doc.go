// Package transcript plays conversations with a server that are written down in files, and holds the server to every
// byte of its part. The files are tests and documentation at once.
//
// A file is a txtar archive: prose that says what it shows, then sections, each a line "-- NAME --" and a body:
//
//	server WORDS          the server to play against, first of all; the test knows the words
//	open SOCKET PATH      opens a WebSocket; the body may hold headers
//	> SOCKET              sends the body as a text message
//	> SOCKET quoted       likewise; the body is a Go string literal, for what a text file cannot show
//	> SOCKET binary       sends a binary message, from a Go string literal
//	> SOCKET close CODE   closes the socket; the body is the reason
//	< SOCKET              the next text message that comes; "binary" and "close CODE" as above
//	> METHOD PATH         a request: headers, an empty line, and the body, either of which may be left out
//	< STATUS              its answer: all headers but Date and Content-Length, an empty line, and the body. With
//	                      "eventually" at the end the request is sent again until this is the answer
//
// A body ends before its last newlines; answers are held to the ending that their type demands: an empty line after an
// event stream, a newline after plain text, none after anything else. Empty lines and lines beginning with # at the end
// of a body are notes for the reader.
//
// Values that differ from run to run have names: $EPISODE1 is the first value that the pattern called EPISODE finds in
// the server's part. From there on the name stands for the value, in both directions.
//
// When a test runs with -update, the server's part of each file is rewritten with what really came; read the difference
// as you would read code. The files are parsed here, and not by golang.org/x/tools/txtar, because a few lines do it that
// also know line numbers, and that module would raise the versions of what this one requires.
package transcript
