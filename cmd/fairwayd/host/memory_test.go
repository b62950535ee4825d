package host

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryOfTheControlGroup(t *testing.T) {
	machine, _ := availableMemory(t.TempDir())
	for _, c := range []struct {
		name   string
		files  map[string]string
		want   int64
		origin string
	}{
		{"no group", nil, machine, "machine"},
		{"version 2", map[string]string{"proc/self/cgroup": "0::/system.slice/fairwayd.service\n",
			"sys/fs/cgroup/system.slice/fairwayd.service/memory.max": "max\n",
			"sys/fs/cgroup/system.slice/memory.max":                  "1073741824\n"}, 1 << 30, "control group"},
		{"version 1", map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "536870912\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n"}, 512 << 20, "control group"},
		{"a container's own view", map[string]string{"proc/self/cgroup": "0::/docker/abc\n",
			"sys/fs/cgroup/memory.max": "268435456\n"}, 256 << 20, "control group"},
		{"nonsense", map[string]string{"proc/self/cgroup": "0\n:\n0::\n", "sys/fs/cgroup/memory.max": "-1\n"}, machine,
			"machine"},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			p := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, from := availableMemory(root); got != c.want || from != c.origin {
			t.Errorf("%s: %d of the %s, want %d of the %s", c.name, got, from, c.want, c.origin)
		}
	}
}
