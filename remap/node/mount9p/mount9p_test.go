package mount9p

import (
	"bufio"
	"encoding/json"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"fairway/collector/source/mount"
	"fairway/collector/wire"
)

// serveMount answers control requests in the mount's place.
func serveMount(t *testing.T, answer func(mount.Request) string) string {
	socket := filepath.Join(t.TempDir(), "control")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadBytes('\n')
			var q mount.Request
			json.Unmarshal(line, &q)
			conn.Write([]byte(answer(q) + "\n"))
			conn.Close()
		}
	}()
	return socket
}

func TestOrders(t *testing.T) {
	var got mount.Request
	socket := serveMount(t, func(q mount.Request) string {
		if got = q; q.Addr == "bad" {
			return `{"error":"no such forwarder","report":{"mount_point":"/pfs"}}`
		}
		return `{"report":{"forwarder":"fwd2","generation":4}}`
	})
	m := Mover{Socket: socket}
	a, err := m.Move(t.Context(), wire.RemapOrder{Node: "cn01", Forwarder: "fwd2", Addr: "h:1", Force: true})
	if err != nil || !reflect.DeepEqual(a, wire.RouteAnswer{Forwarder: "fwd2", Generation: 4}) || got.Op != "force" ||
		got.Addr != "h:1" {
		t.Errorf("answer %+v, %v to %+v", a, err, got)
	}
	if _, err := m.Move(t.Context(), wire.RemapOrder{Addr: "bad"}); err == nil ||
		!strings.Contains(err.Error(), "/pfs") || !strings.Contains(err.Error(), "no such forwarder") {
		t.Errorf("a refusal reads %v", err)
	}
	if a, err := m.Route(t.Context()); err != nil || a.Forwarder != "fwd2" || a.Generation != 4 || got.Op != "stats" {
		t.Errorf("the route is %+v, %v, asked for by %+v", a, err, got)
	}
}
