package webui

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestUnknownAddressesAreNotFound compares the server's list of pages with the console's, and asks for some.
func TestUnknownAddressesAreNotFound(t *testing.T) {
	files, err := loadStatic()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(files.files["app.js"].plain), "const pages = {\n")
	rest, _, _ = strings.Cut(rest, "\n};")
	found := []string{"", "history"} // the first page, and an address of earlier versions
	for _, m := range regexp.MustCompile(`(?m)^  (\w+):`).FindAllStringSubmatch(rest, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	if want := slices.Sorted(slices.Values(pages)); !slices.Equal(found, want) {
		t.Errorf("app.js has the pages %q, the server %q", found, want)
	}
	for path, want := range map[string]int{"/": 200, "/overview?at=-1m": 200, "/jobs/17/why": 200,
		"/wp-admin.php": 404, "/overviews": 404, "/overview/../../x": 404, "/.env": 404, "/static/app.js": 200,
		"/static/none.js": 404,
		"/findings/":      200} {
		w := httptest.NewRecorder()
		files.serve(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}
