package webui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzhttp"

	"fairway/webui/access"
)

//go:embed static
var staticFS embed.FS

// staticFile is one file of the console, ready to be sent.
type staticFile struct {
	kind        string
	plain, gzip []byte
	etag        string
}

// staticFiles are the pages, read and compressed once. Names in the pages carry the hash of all
// files (?v=...), so that a browser keeps them for good and never mixes two versions.
type staticFiles struct {
	version string
	files   map[string]*staticFile
}

// versionMark stands in the sources where the hash goes.
const versionMark = "__V__"

// loadStatic reads and compresses them once: what is embedded never changes.
var loadStatic = sync.OnceValues(func() (*staticFiles, error) {
	s := &staticFiles{files: map[string]*staticFile{}}
	raw := map[string][]byte{}
	sum := sha256.New()
	err := fs.WalkDir(staticFS, "static", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := staticFS.ReadFile(p)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(p, "static/")
		raw[name] = b
		fmt.Fprintf(sum, "%s %d\n", name, len(b))
		sum.Write(b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the embedded pages: %w", err)
	}
	s.version = hex.EncodeToString(sum.Sum(nil))[:12]
	for name, b := range raw {
		if s.files[name], err = newStaticFile(name,
			bytes.ReplaceAll(b, []byte(versionMark), []byte(s.version))); err != nil {
			return nil, err
		}
	}
	if s.files["index.html"] == nil {
		return nil, fmt.Errorf("the embedded pages have no index.html")
	}
	return s, nil
})

func newStaticFile(name string, b []byte) (*staticFile, error) {
	f := &staticFile{plain: b, kind: mime.TypeByExtension(path.Ext(name))}
	switch path.Ext(name) { // not what this host's mime table happens to say
	case ".js":
		f.kind = "text/javascript; charset=utf-8"
	case ".css":
		f.kind = "text/css; charset=utf-8"
	case ".svg":
		f.kind = "image/svg+xml"
	case ".txt", ".sha256", "":
		f.kind = "text/plain; charset=utf-8"
	}
	var z bytes.Buffer
	w, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if z.Len() < len(b) {
		f.gzip = z.Bytes()
	}
	sum := sha256.Sum256(b)
	f.etag = `"` + hex.EncodeToString(sum[:8]) + `"`
	return f, nil
}

// serve answers a file by its name, and every other address with the console's one page, which
// knows what to show there.
func (s *staticFiles) serve(w http.ResponseWriter, r *http.Request) {
	name, found := strings.CutPrefix(r.URL.Path, "/static/")
	f := s.files[name]
	h := w.Header()
	switch {
	case found && f == nil:
		http.Error(w, "no such file", http.StatusNotFound)
		return
	case found && r.URL.Query().Get("v") == s.version:
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	default:
		h.Set("Cache-Control", "no-cache")
	}
	if !found {
		f = s.files["index.html"]
	}
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.etag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	status := http.StatusOK
	if !found && !isPage(r.URL.Path) {
		status = http.StatusNotFound // the page says so, too
	}
	body := f.plain
	if f.gzip != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.gzip
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the reader is gone when this fails
}

// pages are the first words of the console's addresses, as app.js has them.
var pages = []string{"", "overview", "forwarders", "propose", "plans", "audit", "findings", "jobs", "logs", "whatif",
	"occupancy", "report", "history"}

func isPage(address string) bool {
	word, _, _ := strings.Cut(strings.Trim(path.Clean("/"+address), "/"), "/")
	return slices.Contains(pages, word)
}

// zip compresses JSON of a packet's size and more for who asks for that.
var zip = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1400), gzhttp.ContentTypes([]string{"application/json"}),
		gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return wrap
}()

// zipped lets a route's JSON be compressed. Answers with secrets must not be: their length says something about them.
func zipped(r row) row {
	secret := r.Kind&(socket|long) != 0 || r.Method != http.MethodGet || strings.HasPrefix(r.Path, "/api/v1/session") ||
		!strings.Contains(r.Path, "/api/v1/")
	if secret {
		return r
	}
	next := r.Handle
	r.Handle = func(w http.ResponseWriter, r *http.Request, by access.Caller) (err error) {
		zip(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { err = next(w, r, by) })).ServeHTTP(w, r)
		return err
	}
	return r
}
