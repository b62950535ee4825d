// Package replay plays records of real systems through the sources, frames and detectors as they ship, faster than real
// time, and holds what these find against the records' labels.
package replay
