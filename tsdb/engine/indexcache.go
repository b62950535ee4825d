package engine

import "sync"

// indexCacheBytes is how much of the blocks' indexes stays in memory: of 240 forwarders some days of a metric.
const indexCacheBytes = 16 << 20

// indexCache keeps directories and indexes that were read, as they are in the file, and the columns of who asks for
// few nodes: what a page asks for it asks for again a second later. They are in two halves; when the younger one is
// full it becomes the older one.
type indexCache struct {
	mu         sync.Mutex
	young, old map[indexKey][]byte
	bytes      int // of young
}

type indexKey struct {
	frame  *frame
	metric *frameMetric
	dataAt int64 // where the column's bytes begin in the data, or wholeIndex
}

const (
	wholeIndex = -1
	// cacheEntry is about what an entry takes beside its bytes.
	cacheEntry = 128
)

// get returns what is kept, nil where nothing is.
func (c *indexCache) get(k indexKey) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.young[k]; b != nil {
		return b
	}
	b := c.old[k]
	if b != nil {
		c.put(k, b)
	}
	return b
}

func (c *indexCache) add(k indexKey, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(k, b)
}

func (c *indexCache) put(k indexKey, b []byte) {
	if c.young == nil || c.bytes+len(b)+cacheEntry > indexCacheBytes/2 {
		c.young, c.old, c.bytes = map[indexKey][]byte{}, c.young, 0
	}
	c.young[k] = b
	c.bytes += len(b) + cacheEntry
}

// clear lets go of everything, and so of files that are removed.
func (c *indexCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old, c.bytes = nil, nil, 0
}
