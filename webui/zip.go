package webui

import (
	"compress/gzip"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"

	"fairway/webui/access"
)

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
