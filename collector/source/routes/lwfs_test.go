package routes

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// A node of LWFS uses the server of the volume file that its link leads to.
func TestLWFS(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "lwfs.vol")
	s := New(Options{Kind: LWFS, Node: "cn1", Root: os.DirFS(dir), Volume: "lwfs.vol",
		Forwarders: map[topology.ForwarderID]string{"gio1": "lwfs_gio001.vol", "gio2": "lwfs_gio002.vol"}})
	for _, c := range []struct {
		to   string
		want topology.ForwarderID
	}{{"", ""}, {"/etc/lwfs/lwfs_gio001.vol", "gio1"}, {"lwfs_gio002.vol", "gio2"}, {"lwfs_gio009.vol", ""}} {
		_ = os.Remove(link)
		if c.to != "" {
			if err := os.Symlink(c.to, link); err != nil {
				t.Fatal(err)
			}
		}
		r := collector.Reading{Now: time.Unix(50, 0)}
		err := s.Read(t.Context(), &r)
		if (c.want == "") != (err != nil) || c.want != "" && (len(r.Routes) != 1 || r.Routes[0].Forwarder != c.want) {
			t.Errorf("a link to %q: %+v, %v", c.to, r.Routes, err)
		}
	}
}
