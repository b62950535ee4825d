// Package browsertest drives the pages in a real browser over a daemon with a simulated machine. It takes the guide's
// pictures, and compares both faces. It has tests only.
package browsertest
