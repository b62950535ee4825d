package tsdb

import "time"

// RetainForTest applies the retention settings as the sealer does.
func (db *DB) RetainForTest(now time.Time) { db.retain(now) }
