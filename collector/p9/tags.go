package p9

import "sync"

// tags are the numbers of one connection's requests. A server must not answer a request after it has confirmed that it
// forgot it; nfs-ganesha does. The tag of such a request is not used again while others are left, so that a late answer
// is never taken for another request's.
type tags struct {
	free chan uint16

	mu    sync.Mutex      // guards everything that follows
	next  uint16          // the least that was never used
	late  map[uint16]bool // forgotten, and not answered
	order []uint16        // of those that were forgotten, the oldest first
}

func newTags() *tags {
	t := &tags{free: make(chan uint16, maxInFlight), next: maxInFlight, late: map[uint16]bool{}}
	for n := range uint16(maxInFlight) {
		t.free <- n
	}
	return t
}

// retire gives a tag up that the server has forgotten without an answer, and frees another one.
func (t *tags) retire(tag uint16) {
	t.mu.Lock()
	t.late[tag] = true
	t.order = append(t.order, tag)
	next := t.next
	if next != noTag {
		t.next++
	} else {
		next = t.order[0]
		t.order = t.order[1:]
		delete(t.late, next)
	}
	t.mu.Unlock()
	t.free <- next
}

// came reports whether an answer to a tag that is not in use is a late one.
func (t *tags) came(tag uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := t.late[tag]
	delete(t.late, tag)
	return late
}
