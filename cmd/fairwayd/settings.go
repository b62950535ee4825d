package main

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// setting is what an operator is told about one key.
type setting struct {
	key  string
	text string // what it does, its unit, and where its default comes from
}

// settings lists every key in the order in which `fairwayd config` prints them.
var settings = []setting{
	{"name", "The machine's name, on every screen."},
	{"state_dir", "Directory of the store and the journal; absolute."},
	{"log_level", "debug, info, warn or error."},
	{"listen.socket", "Unix socket of the console and of local commands; empty: none. Who asks is known from the kernel."},
	{"listen.http", "HOST:PORT for agents and browsers; empty: none. This host only, until you name another address."},
	{"access.agent_token_file", "File of agents' tokens, one `NAME TOKEN` a line; empty: only agents of this host without a token."},
	{"access.user_token_file", "File of people's tokens, one `NAME ROLE TOKEN` a line; empty: the browser is read-only."},
	{"access.operator_groups", "Unix groups whose members are operators on the socket. root is an admin, everybody else a viewer."},
	{"access.admin_groups", "Unix groups whose members are admins on the socket."},
	{"store.sync", "Longest wait of frames for the disk, and so for their acknowledgement."},
	{"observe.stale_after", "Age at which a route is not believed any more (CONSOLE.md section 3)."},
	{"forwarder.peak_bytes_per_sec", "Peak bandwidth of a forwarder in one direction, bytes/s, where its [[node]] does not say; 0: not known, then it has no occupancy."},
	{"desk.proposal_ttl", "How long a proposal waits for approvals (CONSOLE.md section 6)."},
	{"desk.approval_ttl", "How long an approved plan may wait for its start (CONSOLE.md section 6)."},
	{"desk.verify_within", "How long the collector may take to see a new mapping before the plan counts as partial."},
	{"desk.self_approval", "Whether who proposed a plan may approve it; for sites where one operator works alone."},
	{"desk.two_persons", "Whether big or doubtful plans need two approvals (CONSOLE.md section 6)."},
	{"desk.big_plan", "Moves above which a plan is big (CONSOLE.md section 6)."},
	{"desk.healthy_floor", "Smallest number of healthy forwarders that a plan must leave for everybody."},
	{"desk.max_excluded", "Largest share of the forwarders that may be excluded at once, 0 to 1."},
	{"desk.feed_lease", "How long a reader of the exclusion feed may rely on it without a newer one."},
	{"desk.max_applying", "Plans that may be applied at once; a roll back never waits."},
	{"driver.kind", "How compute nodes are told to move: none (refuse), or fwdmount (orders to their agents)."},
	{"driver.parallel", "Orders under way together."},
	{"driver.tries", "Tries per order."},
	{"driver.backoff", "Wait before the second try; doubles with each further one."},
	{"driver.timeout", "Longest wait for the answer to one try."},
	{"node", "The machine's nodes; more are learned from what reports. Each has id, role (compute, forwarder, storage, metadata), rack, addr (HOST:PORT of a forwarder's file service; needed to move nodes there) and peak_bytes_per_sec."},
	{"default_mapping", "The site's fixed mapping: compute node = forwarder."},
}

// printConfig writes c as a file that could be its source, each setting with its explanation, its
// default where it differs, and the line that set it.
func printConfig(w io.Writer, c *Config, text []byte, meta toml.MetaData) error {
	def := defaultConfig()
	table := ""
	for _, s := range settings {
		value, err := lookUp(reflect.ValueOf(c).Elem(), s.key)
		if err != nil {
			return err
		}
		was, err := lookUp(reflect.ValueOf(&def).Elem(), s.key)
		if err != nil {
			return err
		}
		head, name := "", s.key
		if i := strings.LastIndexByte(s.key, '.'); i >= 0 {
			head, name = s.key[:i], s.key[i+1:]
		}
		fmt.Fprintln(w)
		if head != "" && head != table {
			table = head
			fmt.Fprintf(w, "[%s]\n", table)
		}
		for _, line := range wrap(s.text, 100) {
			fmt.Fprintf(w, "# %s\n", line)
		}
		if value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct || value.Kind() == reflect.Map {
			if err := printTable(w, name, value); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s = %s%s\n", name, literal(value), origin(s.key, literal(was), text, meta))
	}
	return nil
}

func origin(key, was string, text []byte, meta toml.MetaData) string {
	if !meta.IsDefined(strings.Split(key, ".")...) {
		return ""
	}
	return fmt.Sprintf(" # line %d; default %s", lineOf(text, toml.Key(strings.Split(key, "."))), was)
}

// printTable writes what stands last in the file: nodes and the mapping.
func printTable(w io.Writer, name string, v reflect.Value) error {
	if v.Len() == 0 {
		_, err := fmt.Fprintf(w, "# none\n")
		return err
	}
	e := toml.NewEncoder(w)
	e.Indent = ""
	return e.Encode(map[string]any{name: v.Interface()})
}

// lookUp finds the field behind a dotted key.
func lookUp(v reflect.Value, key string) (reflect.Value, error) {
	for part := range strings.SplitSeq(key, ".") {
		found := false
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("toml") == part {
				v, found = v.Field(i), true
				break
			}
		}
		if !found {
			return v, fmt.Errorf("BUG: setting %q is explained and does not exist", key)
		}
	}
	return v, nil
}

// literal writes a value as TOML.
func literal(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return fmt.Sprintf("%q", x.String())
	case string:
		return fmt.Sprintf("%q", x)
	case []string:
		quoted := make([]string, len(x))
		for i, s := range x {
			quoted[i] = fmt.Sprintf("%q", s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case float64:
		if text := fmt.Sprint(x); strings.ContainsAny(text, ".e") {
			return text
		}
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprint(v.Interface())
}

// wrap breaks text into lines of at most width bytes.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
