// Package browsertest drives the browser's pages over a whole daemon with a simulated machine, takes the guide's
// pictures, and compares both faces. It has tests only.
package browsertest
