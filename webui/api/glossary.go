package api

// Term is a word of the faces and what it means.
type Term struct {
	Word  string `json:"word"`
	Means string `json:"means"`
}

// Glossary is what both faces' help explains.
func Glossary() []Term {
	return []Term{
		{"forwarder", "a node through which the I/O of compute nodes goes to storage"},
		{"peers", "the other forwarders that do I/O now; what is slow is slow beside them, at the same load"},
		{"10x slow", "an operation takes 10 times as long as on its peers"},
		{"suspect", "it looks slow, and too few seconds have shown it: no move is offered yet"},
		{"finding", "what is wrong with one node, from the first second to its end (F-0001)"},
		{"waits", "the part of its time that a job waits for a forwarder beyond what its operations take elsewhere"},
		{"lost", "that waiting, added up: each of the job's nodes lost as much"},
		{"plan", "compute nodes that would use another forwarder; nothing moves before it is approved (P-000001)"},
		{"verified", "the nodes were seen on the new forwarder, not only ordered there"},
		{"helped", "measured after the move, beside nodes that were not moved"},
		{"drain", "no job gets the forwarder any more; nobody is moved, and it can be returned"},
		{"trial", "returned after a drain and watched before it counts as healthy"},
		{"canary", "one small write, read and stat through a forwarder, to see what they take"},
		{"silent", "its agent does not report: nothing is known of it, which is not the same as slow"},
		{"~ and -", "~148 is estimated, - is not known; 0 was measured"},
	}
}
