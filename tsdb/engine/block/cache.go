package block

import "sync"

// indexCacheBytes is how much of the blocks' indexes stays in memory: of 240 forwarders some days of a metric.
const indexCacheBytes = 16 << 20

// cache keeps directories and indexes that were read, as they are in the file, and the columns of who asks for
// few nodes: what a page asks for it asks for again a second later. They are in two halves; when the younger one is
// full it becomes the older one.
type cache struct {
	mu         sync.Mutex
	young, old map[cacheKey][]byte
	bytes      int // of young
}

type cacheKey struct {
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
func (c *cache) get(k cacheKey) []byte {
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

func (c *cache) add(k cacheKey, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(k, b)
}

func (c *cache) put(k cacheKey, b []byte) {
	if c.young == nil || c.bytes+len(b)+cacheEntry > indexCacheBytes/2 {
		c.young, c.old, c.bytes = map[cacheKey][]byte{}, c.young, 0
	}
	c.young[k] = b
	c.bytes += len(b) + cacheEntry
}

// clear lets go of everything, and so of files that are removed.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old, c.bytes = nil, nil, 0
}
