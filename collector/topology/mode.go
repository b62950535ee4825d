package topology

// Mode is how a job's processes share files ("Automatic, Application-Aware I/O Forwarding Resource
// Allocation", FAST'19, section 2.1).
type Mode string

// The I/O modes; the empty mode is unknown. Counters of nodes cannot distinguish N-N from N-1: that comes
// from mounts and logs, which know files.
const (
	ModeNN Mode = "N-N"
	ModeN1 Mode = "N-1"
	Mode11 Mode = "1-1"
	ModeNM Mode = "N-M"
)
