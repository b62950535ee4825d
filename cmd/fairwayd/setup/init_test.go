package setup

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/collector/topology"
)

// aMachine is one whose files are given and whose commands print what is given.
func aMachine(t *testing.T, files, commands, names map[string]string, groups ...string) *machine {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		write := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(write), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(write, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &machine{root: root,
		run: func(_ context.Context, name string, args ...string) (string, error) {
			if out, ok := commands[strings.Join(append([]string{name}, args...), " ")]; ok {
				return out, nil
			}
			return "", errors.New("not found")
		},
		nameOf:   func(_ context.Context, addr string) string { return names[addr] },
		hostname: func() (string, error) { return "head.site", nil },
		addrs:    func() []net.IP { return []net.IP{net.ParseIP("10.0.0.9")} },
		group: func(name string) bool {
			for _, g := range groups {
				if g == name {
					return true
				}
			}
			return false
		}}
}

const sinfo = "sinfo --noheader --format=%N"

func TestInitAsksTheMachine(t *testing.T) {
	routes := "Routing disabled\nnet      hops priority   state router\n" +
		"o2ib        1        0      up 10.1.0.1@tcp\no2ib        1        0      up 10.1.0.2@tcp\n"
	names := map[string]string{"10.1.0.1": "r1", "10.1.0.2": "r2", "10.2.0.5": "gw5"}
	link := map[string]string{"sys/class/net/eth0/speed": "25000\n", "sys/class/net/eth0/device": "",
		"sys/class/net/veth1/speed": "100000\n"}
	slurm := map[string]string{sinfo: "cn[1-3]\ncn[2-4]\n", "squeue --json": "{}",
		"scontrol show config": "Configuration data\nClusterName             = tera\n"}
	for _, c := range []struct {
		name                    string
		opt                     initOptions
		files, commands, names  map[string]string
		groups                  []string
		daemon, forwarder, node []string // words of the files
		more                    map[string]string
	}{
		{name: "Slurm and LNet's routes", files: map[string]string{"sys/kernel/debug/lnet/routes": routes,
			"sys/class/net/eth0/speed": "25000\n", "sys/class/net/eth0/device": "",
			"sys/class/infiniband/mlx5_0/ports/1/rate": "100 Gb/sec (4X EDR)\n"},
			commands: slurm, names: names, groups: []string{"wheel", "slurm"},
			opt: initOptions{orders: true, storage: "oss1"},
			daemon: []string{`name = "tera"`, `{id = "r2", role = "forwarder", addr = "10.1.0.2@tcp"}`,
				`{id = "cn4", role = "compute"}`, "peak_bytes_per_sec = 1.25e+10", "link mlx5_0", `wheel = "operator"`,
				`slurm = "scheduler"`, `jobs = ["squeue", "--json"]`, `kind = "agents"`, "drain = true", "(sinfo)"},
			more: map[string]string{"forwarder/capabilities.conf": "CapabilityBoundingSet=CAP_NET_ADMIN\n",
				"compute/capabilities.conf": "CapabilityBoundingSet=CAP_NET_ADMIN CAP_SYS_ADMIN\n",
				"storage/fairway-agent.toml": "network.\nnet = \"tcp\"\n\n[orders]\n# A server chooses the router " +
					"of what it sends. Name the routers as this node reaches them,\n# then enable it.\nenabled = " +
					"false\nby = \"lnet\"\n\n[orders.forwarders]\n# \"r1\" = \"ADDRESS@o2ib\"\n"},
			forwarder: []string{"[source.lnet]\nenabled = true", `role = "forwarder"`, `url = "wss://head.site:7117"`},
			node: []string{"enabled = true\nby = \"lnet\"", `net = "o2ib"`, `"r1" = "10.1.0.1@tcp"`,
				"[source.lustre]"}},
		{name: "NFS mounts", files: map[string]string{"proc/self/mounts": "/dev/sda1 / ext4 rw 0 0\n" +
			"gw:/export /scratch nfs4 rw,vers=4.1,addr=10.2.0.5 0 0\n"}, commands: slurm, names: names,
			daemon:    []string{`{id = "gw5", role = "forwarder"`, "layer nfs (mounts)"},
			forwarder: []string{"[source.procfs]\nenabled = true"},
			node: []string{"by = \"nfs\"\n\n[routes.forwarders]\n\"gw5\" = \"10.2.0.5\"", "[source.procfs]",
				"enabled = false\nby = \"remount\"", `point = "/scratch"`}},
		{name: "all by flags", files: link, opt: initOptions{layer: "diod", compute: "n[01-02]", name: "small",
			forwarders: "f1=10.0.0.7:1564,f[2-3]", storage: "s1", operators: "ops", address: "fairway.site",
			call: callOptions{"http://a:9093", "ops@site", "mail.site:25"}},
			daemon: []string{`name = "small"`, `{id = "f1", role = "forwarder", addr = "10.0.0.7:1564"}`,
				`{id = "f3", role = "forwarder", addr = "f3:564"}`, `{id = "n02", role = "compute"}`,
				`{id = "s1", role = "storage"}`, `ops = "operator"`, "peak_bytes_per_sec = 3.125e+09", "link eth0",
				`kind = "alertmanager"`, `server = "mail.site:25"`},
			forwarder: []string{`url = "wss://fairway.site:7117"`, `addr = ":564"`},
			node: []string{"[source.mount]\nenabled = true", `by = "mount9p"`,
				`allow = ["10.0.0.7", "f2", "f3"]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := c.opt
			o.dir, o.port, o.joinFor = t.TempDir(), "7117", time.Hour
			if o.call.mailServer == "" {
				o.call.mailServer = "127.0.0.1:25"
			}
			found, err := o.look(t.Context(), aMachine(t, c.files, c.commands, c.names, c.groups...))
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := o.write(&out, found, time.Now()); err != nil {
				t.Fatal(err)
			}
			for file, words := range map[string][]string{"fairwayd.toml": c.daemon,
				"nodes/forwarder/fairway-agent.toml": c.forwarder, "nodes/compute/fairway-agent.toml": c.node} {
				text, err := os.ReadFile(filepath.Join(o.dir, file))
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range words {
					if !strings.Contains(string(text), w) {
						t.Errorf("%s has no %q:\n%s", file, w, text)
					}
				}
			}
			for file, words := range c.more {
				text, err := os.ReadFile(filepath.Join(o.dir, "nodes", file))
				if err != nil || !strings.Contains(string(text), words) {
					t.Errorf("%s has no %q: %v\n%s", file, words, err, text)
				}
			}
			checkKeys(t, &o, found)
			if err := o.write(&out, found, time.Now()); err == nil || !strings.Contains(err.Error(), "--force") {
				t.Errorf("written again: %v", err)
			}
			secret, err := os.ReadFile(filepath.Join(o.dir, "enroll.secret"))
			if err != nil {
				t.Fatal(err)
			}
			o.force = true
			if err := o.write(&out, found, time.Now()); err != nil {
				t.Fatal(err)
			}
			if again, err := os.ReadFile(filepath.Join(o.dir, "enroll.secret")); err != nil ||
				string(again) != string(secret) {
				t.Errorf("--force changed the secret: %v", err)
			}
		})
	}
}

// checkKeys: the daemon can serve by its certificate under the name that agents use, the join token is for the nodes,
// and no secret can be read by others.
func checkKeys(t *testing.T, o *initOptions, found *site) {
	t.Helper()
	conf, err := config.File.Load(filepath.Join(o.dir, "fairwayd.toml"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(conf.Listen.TLS.Certificate, conf.Listen.TLS.Key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(o.dir, "nodes/compute/ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: found.names[0]}); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{"enroll.secret", "tls/server.key", "tls/ca.key", "nodes/compute/join.token",
		"nodes/forwarder/join.token"} {
		if info, err := os.Stat(filepath.Join(o.dir, secret)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", secret, info.Mode(), err)
		}
	}
}

func TestInitSaysWhatItCannotFindOut(t *testing.T) {
	someNodes := map[string]string{sinfo: "cn[1-4]\n"}
	for name, c := range map[string]struct {
		opt             initOptions
		files, commands map[string]string
		want            string
	}{
		"no nodes":          {want: "--compute 'cn[1-512]'"},
		"a wrong host list": {opt: initOptions{compute: "cn[1-"}, want: "--compute"},
		"no layer":          {commands: someNodes, want: "--layer (diod, ganesha"},
		"an unknown layer":  {commands: someNodes, opt: initOptions{layer: "magic"}, want: `--layer "magic"`},
		"a layer first":     {opt: initOptions{layer: "magic"}, want: `--layer "magic"`},
		"no forwarders":     {commands: someNodes, opt: initOptions{layer: "lwfs"}, want: "--forwarders 'fwd[1-4]'"},
		"a node twice":      {opt: initOptions{layer: "diod", compute: "a,b", forwarders: "b"}, want: "node b"},
		"a router's no name": {commands: someNodes,
			files: map[string]string{
				"proc/sys/lnet/routes": "Routing disabled\nnet hops priority state router\no2ib 1 0 up 10.9.0.1@tcp\n"},
			want: "the router 10.9.0.1@tcp has no name"},
		"no network behind the routers": {commands: someNodes,
			opt: initOptions{layer: "lnet", forwarders: "r1=1.2.3.4@tcp"}, want: "--net tcp1"},
		"a bad address": {commands: someNodes, opt: initOptions{layer: "diod", forwarders: "f1="},
			want: "NAME=ADDRESS"},
		"no address for mail": {commands: someNodes, opt: initOptions{layer: "diod", forwarders: "f1",
			call: callOptions{mailTo: "no address"}}, want: "alert"},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.opt
			o.dir, o.port, o.call.mailServer = t.TempDir(), "7117", "127.0.0.1:25"
			found, err := o.look(t.Context(), aMachine(t, c.files, c.commands, nil))
			if err == nil {
				err = o.write(&strings.Builder{}, found, time.Now())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if left, _ := filepath.Glob(filepath.Join(o.dir, "*.toml")); len(left) > 0 {
				t.Errorf("wrote %v nevertheless", left)
			}
		})
	}
}

func TestPatternOfNodes(t *testing.T) {
	for want, nodes := range map[string][]topology.NodeID{"cn*": {"cn1", "cn12", "cn2"}, "*": {"a1", "b1"},
		"login1*": {"login1"}, "x-*": {"x-100", "x-101"}} {
		if got := patternOf(nodes); got != want {
			t.Errorf("%v: %q, want %q", nodes, got, want)
		}
	}
}
