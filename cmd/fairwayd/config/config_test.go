package config

import (
	"bytes"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fairway/cmd/program"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/webui/access"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestConfigErrorsNameTheLine(t *testing.T) {
	for _, c := range []struct {
		name, text string
		words      []string
	}{
		{"misspelt key", "name = \"x\"\n\n[desk]\nself_aproval = true\n",
			[]string{"f.toml:4", `"desk.self_aproval"`, `did you mean "desk.self_approval"`}},
		{"misspelt table", "[dsk]\nself_approval = true\n", []string{"f.toml:1", `"dsk"`}},
		{"misspelt key of a node", "[[node]]\nid = \"f\"\nrole = \"forwarder\"\nadress = \"x\"\n",
			[]string{"f.toml:4", "node.adress"}},
		{"two at once", "nam = \"x\"\nlog = 3\n", []string{"f.toml:1", "f.toml:2"}},
		{"not TOML", "name = \"x\"\nlisten = = 3\n", []string{"f.toml:2"}},
		{"wrong type", "name = \"x\"\n[desk]\nbig_plan = \"many\"\n", []string{"f.toml", "big_plan"}},
		{"wrong duration", "[desk]\nverify_within = \"15 parsecs\"\n", []string{"f.toml", "parsecs"}},
		{"out of range", "[desk]\nverify_within = \"1ms\"\n", []string{"desk.verify_within = 1ms", "1s"}},
		{"unknown driver", "[driver]\nkind = \"magic\"\n",
			[]string{"driver.kind", "magic", "fwdmount is called agents now"}},
		{"unknown policy", "[dispatch]\npolicy = \"luck\"\n", []string{"dispatch.policy", "luck", "dfra"}},
		{"negative threshold", "[dispatch]\nv_min_bytes = -1.0\n", []string{"dispatch.v_min_bytes = -1"}},
		{"misspelt threshold", "[dispatch]\nv_min_byte = 1.0\n",
			[]string{"f.toml:2", `did you mean "dispatch.v_min_bytes"`}},
		{"windows that nobody has", "[queue]\npolicy = \"windows\"\n",
			[]string{"queue.policy", "windows", "dispatch.windows"}},
		{"priorities that nobody reports", "[queue]\npolicy = \"priority-fair\"\n",
			[]string{"queue.policy", "priority-fair", "slurm.jobs"}},
		{"priority of a QOS",
			"[slurm]\njobs = [\"squeue\"]\n[queue]\npolicy = \"priority-fair\"\n[queue.qos]\nhigh = 0.0\n",
			[]string{"queue.qos.high = 0"}},
		{"misspelt key of a mount", "[[mount]]\npoint = \"/lus\"\nfile_sytem = \"snx1\"\n",
			[]string{"f.toml:3", "mount.file_sytem"}},
		{"mount without a file system", "[[mount]]\npoint = \"/lus\"\n", []string{"[[mount]]", "/lus", "file_system"}},
		{"relative mount", "[[mount]]\npoint = \"lus\"\nfile_system = \"snx1\"\n",
			[]string{"[[mount]]", "lus", "absolute"}},
		{"unknown level", "log_level = \"loud\"\n", []string{"log_level", "loud"}},
		{"unknown role", "[[node]]\nid = \"f\"\nrole = \"forwader\"\n", []string{"[[node]] f", "role"}},
		{"a node twice", "[[node]]\nid = \"f\"\nrole = \"forwarder\"\n[[node]]\nid = \"f\"\nrole = \"compute\"\n",
			[]string{"f is listed twice"}},
		{"mapping to a compute node", "[[node]]\nid = \"c\"\nrole = \"compute\"\n[default_mapping]\nd = \"c\"\n",
			[]string{"default_mapping", "d =", "compute"}},
		{"relative directory", "state_dir = \"x\"\n", []string{"state_dir", "absolute"}},
		{"nowhere to listen", "[listen]\nsocket = \"\"\nhttp = \"\"\n", []string{"listen.socket", "listen.http"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := File.Parse("f.toml", []byte(c.text))
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
	if _, err := File.Load("/nonexistent/f.toml"); err == nil ||
		!strings.Contains(err.Error(), "/nonexistent/f.toml") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestEverySettingHasHelp(t *testing.T) {
	var walk func(typ reflect.Type, prefix string)
	walk = func(typ reflect.Type, prefix string) {
		for _, f := range reflect.VisibleFields(typ) {
			key := prefix + f.Tag.Get("toml")
			switch {
			case f.Anonymous, !f.IsExported(), f.Tag.Get("toml") == "-": // its fields follow; what no file sets
			case f.Type.Kind() == reflect.Struct:
				walk(f.Type, key+".")
			case f.Tag.Get("help") == "" || f.Tag.Get("toml") == "":
				t.Errorf("setting %q of %s has no help", key, typ)
			}
			if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct &&
				f.Type.Elem() != reflect.TypeFor[netip.Prefix]() {
				walk(f.Type.Elem(), key+".")
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
	f, _ := reflect.TypeFor[Dispatch]().FieldByName("Policy")
	for _, p := range dispatch.Policies(0) {
		if !strings.Contains(f.Tag.Get("help"), p.Name) {
			t.Errorf("dispatch.policy: its help does not name %s", p.Name)
		}
	}
}

// TestSettingsThatWentAreSaidAndWork: an old file with each of them is read as one without, and each is named with its
// reason and line.
func TestSettingsThatWentAreSaidAndWork(t *testing.T) {
	retired := (*Config)(nil).Retired()
	known := program.KnownSettings(&Config{})
	text := "name = \"old\"\n"
	for key := range retired {
		if slices.Contains(known, key) {
			t.Errorf("%s went and is still a setting", key)
		}
		if !strings.Contains(key, ".") {
			key += ".any"
		}
		text += key + " = 7\n"
	}
	c, _, err := File.Parse("old.toml", []byte(text))
	if err != nil || c.Name != "old" {
		t.Fatalf("an old file: %q, %v", c.Name, err)
	}
	c.Name = Default().Name
	if got, want := fmt.Sprintf("%+v", c), fmt.Sprintf("%+v", Default()); got != want {
		t.Errorf("it is\n%s, want the defaults\n%s", got, want)
	}
	lines := program.Retirements("old.toml", []byte(text), &c)
	for key, why := range retired {
		if !slices.ContainsFunc(lines, func(l string) bool {
			return strings.Contains(l, "the setting "+key+" went") && strings.Contains(l, why) && why != ""
		}) {
			t.Errorf("no line names %s", key)
		}
	}
	if len(lines) != len(retired) {
		t.Errorf("%d lines for %d settings", len(lines), len(retired))
	}
}

// TestRenamedSettingsWork: what has another name is read under it, and a default gives way.
func TestRenamedSettingsWork(t *testing.T) {
	text := "[relay]\npolicy = \"size-fair\"\n[dispatch]\nfwd_peak_bw = 2.5e9\n" +
		"[forwarder]\npeak_bytes_per_sec = 0.0\n[access.oidc]\ndefault = \"viewer\"\nissuer = \"\"\n" +
		"[store]\nkind = \"victoria\"\n[store.victoria]\nwrite_url = \"http://h:8428\"\nread_url = \"http://h:8428\"\n"
	c, _, err := File.Parse("old.toml", []byte(text))
	if err != nil || c.Queue.Policy != "size-fair" || c.Forwarder.PeakBytesPerSec != 2.5e9 ||
		c.Access.OIDC.Roles["*"] != remap.Viewer || c.Store.Kind != StorePrometheus ||
		c.Store.Prometheus != (Prometheus{WriteURL: "http://h:8428", ReadURL: "http://h:8428"}) {
		t.Errorf("%v: it is read as %+v", err, c)
	}
	lines := strings.Join(program.Retirements("old.toml", []byte(text), &c), "\n")
	for now, line := range map[string]string{"queue": ":1: the setting relay is",
		"forwarder.peak_bytes_per_sec": ":4: the",
		"access.oidc.roles.*":          "access.oidc.default is",
		"store.prometheus":             ":12: the setting store.victoria is"} {
		if !strings.Contains(lines, line) || !strings.Contains(lines, "read as "+now) {
			t.Errorf("no line says %s, %s:\n%s", line, now, lines)
		}
	}
}

// TestSettingsAreFew: a further one takes the place of one that went.
func TestSettingsAreFew(t *testing.T) {
	const most = 72
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "fairwayd.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`(?m)^[a-z_0-9]+ = `).FindAll(text, -1)); n > most {
		t.Errorf("%d settings, at most %d", n, most)
	}
}

const sample = `name = "hpc1"
[desk]
self_approval = true
verify_within = "40s"
[driver]
kind = "agents"
[[node]]
id = "fwd1"
role = "forwarder"
addr = "10.0.0.1:564"
[default_mapping]
cn1 = "fwd1"
[access.groups]
wheel = "admin"
[[access.token]]
name = "agents"
role = "agent"
file = "/etc/fairway/agent.token"
nodes = ["cn*", "fwd*"]
[access.oidc]
issuer = "https://sso.site/realms/hpc"
client_id = "fairway"
url = "https://fairway.site"
[access.oidc.roles]
hpc-ops = "operator"
[[access.proxy]]
from = ["10.0.0.0/8"]
user_header = "X-Remote-User"
`

// TestConfigIsPrintedAsAFile checks the golden text, and that it reads back as what it shows.
func TestConfigIsPrintedAsAFile(t *testing.T) {
	for name, text := range map[string]string{"default": "", "sample": sample} {
		c, meta, err := File.Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		def := Default()
		if err := program.PrintSettings(&out, &c, &def, []byte(text), meta); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", "config-"+name+".toml")
		if name == "default" {
			golden = filepath.Join("..", "..", "..", "docs", "fairwayd.toml") // what operators read
		}
		if *update {
			if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s differs from %s (run with -update and look at the difference):\n%s", name, golden, out.Bytes())
		}
		again, _, err := File.Parse("printed", out.Bytes())
		if err != nil {
			t.Fatalf("%s: the printed file cannot be read: %v", name, err)
		}
		if fmt.Sprintf("%+v", c) != fmt.Sprintf("%+v", again) { // nil and empty lists are the same
			t.Errorf("%s: printed and read again it is\n%+v, was\n%+v", name, again, c)
		}
	}
}

func TestDefaultsAreClosed(t *testing.T) {
	c := Default()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(c.Listen.HTTP, "127.0.0.1:") || c.Access.Anonymous != "" ||
		len(c.Access.Tokens)+len(c.Access.Groups)+len(c.Access.Accounts)+len(c.Access.Proxy) > 0 ||
		c.Driver.Kind != DriverNone || c.Desk.SelfApproval || !c.Desk.TwoPersons {
		t.Errorf("defaults are open: %+v", c)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("[desk\nx"))
	f.Add([]byte("a.b.c = 1\n[]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, _, err := File.Parse("f.toml", text)
		if err == nil && c.Validate() != nil {
			t.Error("a configuration was taken that is not valid")
		}
	})
}

// TestAnyOperator: one role that may act, wherever it is given, is enough.
func TestAnyOperator(t *testing.T) {
	for _, c := range []struct {
		access Access
		want   bool
	}{
		{Access{}, false},
		{Access{Anonymous: remap.Viewer, Groups: map[string]remap.Role{"staff": remap.Viewer,
			"slurm": access.RoleScheduler}, Tokens: []Token{{Role: access.RoleAgent}}}, false},
		{Access{Groups: map[string]remap.Role{"ops": remap.Operator}}, true},
		{Access{Tokens: []Token{{Role: remap.Admin}}}, true},
		{Access{Accounts: []access.Account{{Role: remap.Operator}}}, true},
		{Access{Proxy: []access.Proxy{{Roles: map[string]remap.Role{"ops": remap.Operator}}}}, true},
		{Access{OIDC: access.OIDC{Roles: map[string]remap.Role{"ops": remap.Operator}}}, true},
	} {
		if got := c.access.AnyOperator(); got != c.want {
			t.Errorf("%+v: %v", c.access, got)
		}
	}
}

func TestClearTextBeyondThisHost(t *testing.T) {
	for _, c := range []struct {
		listen Listen
		ok     bool
	}{
		{Listen{HTTP: "127.0.0.1:7117"}, true}, {Listen{HTTP: "[::1]:7117"}, true}, {Listen{HTTP: "localhost:1"}, true},
		{Listen{HTTP: "0.0.0.0:7117"}, false}, {Listen{HTTP: ":7117"}, false}, {Listen{Agents: "10.0.0.1:7118"}, false},
		{Listen{HTTP: ":7117", ClearText: true}, true},
		{Listen{HTTP: ":7117", TLS: TLS{Certificate: "c", Key: "k"}}, true},
		{Listen{HTTP: ":7117", TLS: TLS{Certificate: "c"}}, false}, {Listen{TLS: TLS{ClientCA: "c"}}, false},
		{Listen{HTTP: "127.0.0.1"}, false}, {Listen{Agents: "fw1"}, false},
	} {
		if err := c.listen.Validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.listen, err)
		}
	}
}

func TestStoreSettingsAreChecked(t *testing.T) {
	for text, words := range map[string][]string{
		"kind = \"mongo\"": {"store.kind", "mongo", "prometheus"},
		"kind = \"influx\"\n[store.influx]\nurl = \"http://h:1\"": {
			"store.influx.bucket"},
		"kind = \"influx\"\n[store.influx]\nurl = \"h:1\"\nbucket = \"b\"": {
			"store.influx.url", "h:1"},
		"kind = \"victoria\"\n[store.victoria]\nwrite_url = \"http://h:1\"": {
			"store.prometheus.read_url"},
		"kind = \"prometheus\"\nkeep = \"1h\"\n[store.prometheus]\nwrite_url = \"http://h:1\"\n" +
			"read_url = \"http://h:1\"": {
			"store.keep", "retention"},
		"keep_bytes = -1":          {"store.keep_bytes = -1"},
		"[keep]\nhistory = \"1m\"": {"keep.history"},
		"[keep]\narchive = \"1m\"": {"keep.archive"},
	} {
		_, _, err := File.Parse("f.toml", []byte("[store]\n"+text+"\n"))
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%q: error %v does not say %q", text, err, w)
			}
		}
	}
}

// TestClusterSettingsAreChecked: a list that cannot work is refused by what is wrong with it.
func TestClusterSettingsAreChecked(t *testing.T) {
	daemons := func(n int, addr string) (text string) {
		for i := range n {
			text += fmt.Sprintf("[[cluster.daemon]]\nname = \"d%d\"\naddr = %q\n", i,
				strings.ReplaceAll(addr, "N", strconv.Itoa(i)))
		}
		return text
	}
	for text, words := range map[string][]string{
		"[cluster]\nname = \"d0\"\nsecret_file = \"s\"\n" + daemons(2, "127.0.0.N:1"): {"3, 5 or 7"},
		"[cluster]\nname = \"x\"\nsecret_file = \"s\"\n" + daemons(3, "127.0.0.N:1"):  {"cluster.name", "x"},
		"[cluster]\nname = \"d0\"\n" + daemons(3, "127.0.0.N:1"):                      {"secret_file"},
		"[cluster]\nname = \"d0\"\nsecret_file = \"s\"\n" + daemons(3, "127.0.0.1:1"): {"twice"},
		"[cluster]\n" + daemons(3, "127.0.0.N:1"):                                     {"cluster.name"},
	} {
		_, _, err := File.Parse("f.toml", []byte(text))
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%q: error %v does not say %q", text, err, w)
			}
		}
	}
}
