// Command server serves the environment that the tests with the MCP SDKs play with: a tool for each thing that a server
// can do to a client. What needs the client (progress, logs, questions, samples) is done with the SDK, as an author with a
// server of his own would do it.
package main
