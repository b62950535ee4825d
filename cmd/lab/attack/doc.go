// Package attack does to a running fairwayd what a hostile node, user or visitor may do, and measures what it took and
// what others noticed: `make attack` prints the table. It holds tests only.
package attack
