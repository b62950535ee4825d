// Package api is the language of the HTTP API: the values that the server writes and that the faces and commands
// read, the errors, and how a refusal looks on the wire (RFC 9457). It knows no server and no terminal.
package api
