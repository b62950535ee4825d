package queue

// What tests of queues together with their senders need: forwarders and clients in the test's own time.
var (
	NewPipes     = newPipes
	DialPipes    = (*pipes).dial
	NewForwarder = newForwarder
	DialFwd      = (*forwarder).dial
	KeepWriting  = work
)
