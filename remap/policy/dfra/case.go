package dfra

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"fairway/collector/topology"
	"fairway/remap/policy/strictjson"
)

// Config holds every threshold of the decision. The zero value of a field that says "default" takes
// it; ReadCase fills them in.
type Config struct {
	// VMinBytes is the least I/O volume of the last run that makes a job worth more forwarders, bytes,
	// exclusive; default 20 GB (DFRA section 4).
	VMinBytes float64 `json:"v_min_bytes" toml:"v_min_bytes" help:"I/O volume above which a job may scale out, bytes."`
	// NMin is the least number of compute nodes doing I/O, inclusive; default F (DFRA section 4).
	NMin float64 `json:"n_min" toml:"n_min" help:"Least compute nodes doing I/O to scale out; 0: f."`
	// WMetadata bounds the mean number of metadata operations waiting at a forwarder: below it a job
	// may scale out, above it the job is metadata-heavy; default 32, twice TaihuLight's pool of 16
	// threads (DFRA section 4).
	WMetadata float64 `json:"w_metadata" toml:"w_metadata" help:"Metadata queue of a metadata-heavy job."`
	// FwdPeakBW and CNPeakBW are the peak bandwidths of one forwarder and one compute node, bytes/s;
	// F is their quotient where it is not given.
	FwdPeakBW float64 `json:"fwd_peak_bw" toml:"-"`
	CNPeakBW  float64 `json:"cn_peak_bw" toml:"cn_peak_bw" help:"Peak of a compute node, bytes/s; 0: not known."`
	// F is how many compute nodes doing I/O one forwarder can carry; default FwdPeakBW/CNPeakBW, else
	// 32 (DFRA section 4).
	F float64 `json:"f" toml:"f" help:"Compute nodes a forwarder carries; 0: by the peaks, else 32."`
	// DefaultRatio is the site's compute nodes per forwarder, used only for a job whose default
	// forwarders are not known; default 512 (DFRA section 2.1).
	DefaultRatio float64 `json:"default_ratio" toml:"-"`
	// HighBW and HighIOPS make a job high-bandwidth or high-IOPS, bytes/s and 1/s, inclusive. The
	// paper's values were in a lost footnote: 0 means that the rule is off here, and the daemon learns them.
	HighBW   float64 `json:"high_bw" toml:"-"`
	HighIOPS float64 `json:"high_iops" toml:"-"`
	// LowBW, LowIOPS and LowMeta are what a running neighbour must not exceed, in all three, to count
	// as quiet; bytes/s, 1/s, waiting operations.
	LowBW   float64 `json:"low_bw" toml:"-"`
	LowIOPS float64 `json:"low_iops" toml:"-"`
	LowMeta float64 `json:"low_meta" toml:"-"`
	// UnknownMetadata says what a run is whose metadata queue nobody measured: UnknownRefuse or empty, not shown to be
	// light enough for more forwarders, or UnknownLight, light.
	UnknownMetadata string `json:"unknown_metadata,omitempty" toml:"unknown_metadata" help:"Unknown: refuse or light."`
}

// What a run counts as whose metadata queue is not known.
const (
	UnknownRefuse = "refuse"
	UnknownLight  = "light"
)

// Job is the job about to start.
type Job struct {
	App               string                 `json:"app"`
	User              string                 `json:"user"`
	Project           string                 `json:"project"`
	Nodes             NodeCount              `json:"nodes"`
	DefaultForwarders []topology.ForwarderID `json:"default_forwarders"`
}

// NodeCount is a number of compute nodes; in JSON a number or a list of names.
type NodeCount int

// UnmarshalJSON reads a number or counts a list.
func (c *NodeCount) UnmarshalJSON(b []byte) error {
	var names []string
	if json.Unmarshal(b, &names) == nil {
		*c = NodeCount(len(names))
		return nil
	}
	var n int
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("nodes: %s is neither a count nor a list of names", b)
	}
	*c = NodeCount(n)
	return nil
}

// Run is what is kept of one past run.
type Run struct {
	App         string        `json:"app"`
	User        string        `json:"user"`
	Project     string        `json:"project"`
	Nodes       NodeCount     `json:"nodes"`
	End         float64       `json:"end"` // Unix seconds
	VolumeBytes float64       `json:"volume_bytes"`
	IONodes     float64       `json:"io_nodes"`
	Mode        topology.Mode `json:"mode"`
	MetaQueue   float64       `json:"meta_queue"` // mean metadata operations waiting at a forwarder
	BW          float64       `json:"bw"`         // peak, bytes/s
	IOPS        float64       `json:"iops"`       // peak, 1/s
	// MetaUnknown says that nobody measured MetaQueue: the run is then neither shown to be light enough
	// for more forwarders nor heavy.
	MetaUnknown bool `json:"-"`
	// MetaWithin is the factor to which MetaQueue is known: so many times as much must not be too much. 0: measured.
	MetaWithin float64 `json:"-"`
}

// Live is what a running neighbour does now, its peak so far on the forwarders concerned.
type Live struct {
	BW        float64 `json:"bw"`
	IOPS      float64 `json:"iops"`
	MetaQueue float64 `json:"meta_queue"`
}

// Neighbour is a running job; it matters where it shares a default forwarder with the new one.
type Neighbour struct {
	Job        topology.JobID         `json:"job"`
	Forwarders []topology.ForwarderID `json:"forwarders"`
	History    *Run                   `json:"history"`
	Live       *Live                  `json:"live"`
}

// Rival is another job that wants forwarders at the same time.
type Rival struct {
	Job     Job   `json:"job"`
	History []Run `json:"history"`
}

// Pool is the state of the forwarding layer.
type Pool struct {
	Idle      []topology.ForwarderID `json:"idle"`
	Anomalous []topology.ForwarderID `json:"anomalous"`
	// Why says of anomalous ones what is the matter where it is not they themselves.
	Why map[topology.ForwarderID]string `json:"why,omitempty"`
	// Promised are idle ones that are not among Idle: a plan that waits or is under way, named here,
	// sends nodes there.
	Promised map[topology.ForwarderID]string `json:"promised,omitempty"`
}

// Case is everything a decision depends on.
type Case struct {
	Config     Config      `json:"config"`
	Job        Job         `json:"job"`
	History    []Run       `json:"history"`
	Forwarders Pool        `json:"forwarders"`
	Neighbours []Neighbour `json:"neighbours"`
	// Rivals are jobs that are decided on at the same time; only arbitrating policies read them.
	Rivals []Rival `json:"rivals,omitempty"`
	// Depth is the number of earlier runs where History holds the latest one only, Blind that of those of whose I/O
	// nothing is known.
	Depth int `json:"-"`
	Blind int `json:"-"`
}

// maxCase bounds a case, bytes.
const maxCase = 512 << 20

// ReadCase reads and checks one case in the format of `fairway decide`. Its errors name the field.
func ReadCase(r io.Reader) (Case, error) {
	var c Case
	if err := strictjson.Read(r, maxCase, &c); err != nil {
		return Case{}, err
	}
	return c, c.check()
}

// check refuses what cannot be decided on and fills in defaults.
func (c *Case) check() error {
	for _, f := range c.Config.fields() {
		if f.v < 0 || math.IsNaN(f.v) {
			return fmt.Errorf("config.%s: %v is negative", f.name, f.v)
		}
	}
	if err := c.Config.checkWords(); err != nil {
		return fmt.Errorf("config.%w", err)
	}
	c.Config = c.Config.withDefaults()
	if c.Job.Nodes < 1 {
		return fmt.Errorf("job.nodes: a job has at least one compute node, not %d", c.Job.Nodes)
	}
	if err := distinct("job.default_forwarders", c.Job.DefaultForwarders); err != nil {
		return err
	}
	if err := distinct("forwarders.idle", c.Forwarders.Idle); err != nil {
		return err
	}
	for i, r := range c.History {
		if err := r.check(); err != nil {
			return fmt.Errorf("history[%d].%w", i, err)
		}
	}
	for i, r := range c.Rivals {
		for k, h := range r.History {
			if err := h.check(); err != nil {
				return fmt.Errorf("rivals[%d].history[%d].%w", i, k, err)
			}
		}
	}
	for i, n := range c.Neighbours {
		if n.History != nil {
			if err := n.History.check(); err != nil {
				return fmt.Errorf("neighbours[%d].history.%w", i, err)
			}
		}
		if l := n.Live; l != nil && (l.BW < 0 || l.IOPS < 0 || l.MetaQueue < 0) {
			return fmt.Errorf("neighbours[%d].live: a rate or queue is negative", i)
		}
	}
	return nil
}

func (r Run) check() error {
	for _, f := range []struct {
		name string
		v    float64
	}{{"volume_bytes", r.VolumeBytes}, {"io_nodes", r.IONodes}, {"meta_queue", r.MetaQueue}, {"bw", r.BW},
		{"iops", r.IOPS}} {
		if f.v < 0 {
			return fmt.Errorf("%s: %v is negative", f.name, f.v)
		}
	}
	if !slices.Contains([]topology.Mode{"", topology.ModeNN, topology.ModeN1, topology.Mode11, topology.ModeNM},
		r.Mode) {
		return fmt.Errorf("mode: %q is not one of N-N, N-1, 1-1, N-M", r.Mode)
	}
	return nil
}

func distinct(field string, ids []topology.ForwarderID) error {
	seen := make(map[topology.ForwarderID]bool, len(ids))
	for i, id := range ids {
		if id == "" {
			return fmt.Errorf("%s[%d]: empty name", field, i)
		}
		if seen[id] {
			return fmt.Errorf("%s[%d]: %s is listed twice", field, i, id)
		}
		seen[id] = true
	}
	return nil
}

type namedValue struct {
	name string
	v    float64
}

func (c Config) fields() []namedValue {
	return []namedValue{
		{"v_min_bytes", c.VMinBytes}, {"n_min", c.NMin}, {"w_metadata", c.WMetadata},
		{"fwd_peak_bw", c.FwdPeakBW}, {"cn_peak_bw", c.CNPeakBW}, {"f", c.F},
		{"default_ratio", c.DefaultRatio}, {"high_bw", c.HighBW}, {"high_iops", c.HighIOPS},
		{"low_bw", c.LowBW}, {"low_iops", c.LowIOPS}, {"low_meta", c.LowMeta},
	}
}

// Defaults are the paper's values, as far as it has them. F and NMin follow from the bandwidths where
// both are given.
func Defaults() Config {
	return Config{VMinBytes: defaultVMinBytes, WMetadata: defaultWMetadata, DefaultRatio: defaultRatio,
		UnknownMetadata: UnknownRefuse}
}

// IOSeconds is the least time in which a run's volume passes so many forwarders of its own, by their
// and its compute nodes' peak bandwidth; ok is false where a bandwidth is not known.
func (c Config) IOSeconds(volumeBytes, ioNodes float64, forwarders int) (seconds float64, ok bool) {
	bw := min(float64(forwarders)*c.FwdPeakBW, ioNodes*c.CNPeakBW)
	return volumeBytes / bw, bw > 0
}

func (c Config) checkWords() error {
	if !slices.Contains([]string{"", UnknownRefuse, UnknownLight}, c.UnknownMetadata) {
		return fmt.Errorf("unknown_metadata = %q: want %s or %s", c.UnknownMetadata, UnknownRefuse, UnknownLight)
	}
	return nil
}

// Validate names the setting that cannot be.
func (c Config) Validate() error {
	if err := c.checkWords(); err != nil {
		return err
	}
	for _, f := range c.fields() {
		if f.v < 0 || math.IsNaN(f.v) || math.IsInf(f.v, 0) {
			return fmt.Errorf("%s = %v: want 0 or more", f.name, f.v)
		}
	}
	return nil
}

// TaihuLight's values, the paper's defaults.
const (
	defaultVMinBytes = 20e9
	defaultF         = 32
	defaultWMetadata = 32
	defaultRatio     = 512
)

func (c Config) withDefaults() Config {
	if c.F == 0 && c.FwdPeakBW > 0 && c.CNPeakBW > 0 {
		c.F = c.FwdPeakBW / c.CNPeakBW
	}
	c.F, c.VMinBytes = cmp.Or(c.F, defaultF), cmp.Or(c.VMinBytes, defaultVMinBytes)
	c.NMin, c.WMetadata = cmp.Or(c.NMin, c.F), cmp.Or(c.WMetadata, defaultWMetadata)
	c.DefaultRatio = cmp.Or(c.DefaultRatio, defaultRatio)
	return c
}
