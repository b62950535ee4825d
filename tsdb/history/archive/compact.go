package archive

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/collector/appendlog"
)

// A site that imports every few minutes makes hundreds of small parts a day, and a query opens each.
const (
	// manyParts is how many small parts a day may have before they are merged.
	manyParts = 16
	// smallPart is the size below which a part is merged, bytes; larger ones are not written again.
	smallPart = 32 << 20
)

// compact merges the small parts of every table and day that has too many. The new folder takes the
// old one's place by one exchange of their names, so that readers see the one or the other; a kill
// leaves a folder below pending that the next import removes.
func (s *store) compact(ctx context.Context) error {
	for _, t := range tables {
		days, err := filepath.Glob(filepath.Join(s.dir, t.name, "day=*"))
		if err != nil {
			return fmt.Errorf("archive: BUG: %w", err)
		}
		for _, day := range days {
			if ctx.Err() != nil {
				return nil // merging can wait
			}
			if err := s.compactDay(t, day); err != nil {
				return fmt.Errorf("archive: merge %s/%s: %w", t.name, filepath.Base(day), err)
			}
		}
	}
	return nil
}

func (s *store) compactDay(t *table, day string) error {
	parts, err := os.ReadDir(day)
	if err != nil {
		return err
	}
	var small, large []string
	for _, p := range parts {
		info, err := p.Info()
		if err != nil {
			return err
		}
		if path := filepath.Join(day, p.Name()); info.Size() < smallPart {
			small = append(small, path)
		} else {
			large = append(large, path)
		}
	}
	if len(small) <= manyParts {
		return nil
	}
	folder, err := s.begin("merge-" + t.name + "-" + filepath.Base(day))
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) // the new parts before the exchange, the old ones after it
	fresh := filepath.Join(folder, filepath.Base(day))
	if err := os.Mkdir(fresh, 0o750); err != nil {
		return err
	}
	for _, p := range large {
		if err := os.Link(p, filepath.Join(fresh, filepath.Base(p))); err != nil {
			return err
		}
	}
	if err := merge(t, small, filepath.Join(fresh, mergedName(small)), folder); err != nil {
		return err
	}
	if err := syncTree(fresh); err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, day, unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	return appendlog.SyncDir(filepath.Dir(day))
}

// mergedName depends on what is merged, so that it cannot meet an older part.
func mergedName(parts []string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return fmt.Sprintf("merged-%x.parquet", sum[:8])
}

// merge writes the rows of parts into one, in the table's order. A file's name is in it once.
func merge(t *table, parts []string, to, scratch string) error {
	quoted := make([]string, len(parts))
	for i, p := range parts {
		quoted[i] = quote(p)
	}
	what := "*"
	if t == fileTable {
		what = "DISTINCT *"
	}
	conn, done, err := openDB(context.Background())
	if err != nil {
		return err
	}
	defer done()
	_, err = conn.ExecContext(context.Background(), fmt.Sprintf(
		"SET memory_limit = '%s'; SET temp_directory = %s; COPY (SELECT %s FROM read_parquet([%s], union_by_name = "+
			"true, hive_partitioning = false) ORDER BY %s) TO %s (FORMAT parquet, COMPRESSION zstd)",
		memoryLimit, quote(scratch), what, strings.Join(quoted, ", "), t.order, quote(to)), nil)
	return err
}
