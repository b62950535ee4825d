// Package endtoend looks at fairway as an operator does: it starts the demo in a terminal, presses keys, reads the
// screen and the browser's pages, and checks that nothing stays behind. It holds tests only.
package endtoend
