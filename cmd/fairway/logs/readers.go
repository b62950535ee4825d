package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/collector/source/lnet"
	"fairway/collector/source/lustre"
	"fairway/collector/source/lwfs"
)

// whole reads a file named on the command line.
func whole(cmd *cobra.Command, name string) ([]byte, error) {
	in, err := cli.OpenInput(cmd, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, cli.MaxFileBytes+1))
	if err == nil && len(b) > cli.MaxFileBytes {
		err = fmt.Errorf("more than %d bytes", cli.MaxFileBytes)
	}
	return b, err
}

// lustreKinds are what `fairway lustre` reads.
const lustreKinds = "stats, job_stats, rpc_stats, brw_stats, LNet's stats and peers, or the output of lctl get_param"

// newLustre is `fairway lustre`: what the Lustre and LNet readers understand of counter files.
func newLustre() *cobra.Command {
	return &cobra.Command{
		Use:   "lustre FILE...",
		Short: "Print what is understood of Lustre and LNet counter files, as JSON lines",
		Long: "The kind of a file is recognized by its content: " + lustreKinds + ",\n" +
			"of which parameters of other kinds are passed over. Files may be compressed by gzip; \"-\" reads " +
			"standard input.",
		Example: "  lctl get_param '*.*.job_stats' | fairway lustre -",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return jsonLines(cmd, args, func(name string, emit func(any) error) error {
				b, err := whole(cmd, name)
				if err != nil {
					return err
				}
				params := lustre.ParseParams(b)
				if len(params) == 0 {
					return lustreFile(emit, lustreLine{File: name}, b)
				}
				return lustreParams(emit, name, params)
			})
		},
	}
}

// lnetNumbers are at least in LNet's stats; releases append further ones.
const lnetNumbers = 11

// errKind says that a file or parameter is of no kind that is read.
var errKind = errors.New("not of a kind that is read: " + lustreKinds)

// lustreLine is one line of `fairway lustre`.
type lustreLine struct {
	File  string           `json:"file"`
	Param string           `json:"param,omitempty"`
	Stat  *lustre.Stat     `json:"stat,omitempty"`
	Job   *lustre.JobStat  `json:"job,omitempty"`
	RPC   *lustre.RPCStats `json:"rpc,omitempty"`
	LNet  *lnet.Stats      `json:"lnet,omitempty"`
	Peer  *lnet.Peer       `json:"peer,omitempty"`
}

// lustreParams prints the parameters of an lctl output; a bad one does not stop the rest.
func lustreParams(emit func(any) error, name string, params []lustre.Param) error {
	var bad []error
	read := 0
	for _, p := range params {
		err := lustreFile(emit, lustreLine{File: name, Param: p.Path}, p.Value)
		if errors.Is(err, errKind) {
			continue
		}
		read++
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", p.Path, err))
		}
	}
	if read == 0 {
		return fmt.Errorf("none of its %d parameters is read; %w", len(params), errKind)
	}
	return errors.Join(bad...)
}

// lustreFile prints one file or parameter, recognized by its content.
func lustreFile(emit func(any) error, line lustreLine, b []byte) error {
	start := bytes.TrimSpace(b)
	first, _, _ := bytes.Cut(start, []byte("\n"))
	switch words := bytes.Fields(first); {
	case bytes.HasPrefix(start, []byte("job_stats:")):
		jobs, bad := lustre.ParseJobStats(b)
		return printEach(emit, jobs, bad, func(j *lustre.JobStat) any { line.Job = j; return line })
	case bytes.Contains(b, []byte("% cum %")):
		r, bad := lustre.ParseRPCStats(b)
		return printEach(emit, []lustre.RPCStats{r}, bad, func(r *lustre.RPCStats) any { line.RPC = r; return line })
	case bytes.HasPrefix(start, []byte("snapshot_time")), bytes.Contains(b, []byte(" samples [")):
		stats, bad := lustre.ParseStats(b)
		return printEach(emit, stats, bad, func(s *lustre.Stat) any { line.Stat = s; return line })
	case len(words) >= lnetNumbers && len(first) == len(start):
		s, bad := lnet.ParseStats(b)
		if bad != nil {
			return errKind
		}
		return printEach(emit, []lnet.Stats{s}, nil, func(s *lnet.Stats) any { line.LNet = s; return line })
	case len(words) == 10 && string(words[0]) == "nid":
		peers, bad := lnet.ParsePeers(b)
		return printEach(emit, peers, bad, func(p *lnet.Peer) any { line.Peer = p; return line })
	}
	return errKind
}

// printEach prints what was read, then says what could not be.
func printEach[T any](emit func(any) error, all []T, bad error, line func(*T) any) error {
	for i := range all {
		if err := emit(line(&all[i])); err != nil {
			return err
		}
	}
	return bad
}

// newLwfs is `fairway lwfs`: what the LWFS readers understand of traces.
func newLwfs() *cobra.Command {
	var client bool
	var zone time.Duration
	c := &cobra.Command{
		Use:   "lwfs FILE...",
		Short: "Print what is understood of LWFS server or client traces, as JSON lines",
		Long: "Lines of the LWFS traces that Beacon's tools write, in bytes and seconds; histograms and counts " +
			"are cumulative.",
		Example: "  fairway lwfs --utc-offset 8h dev_hosts.txt",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := time.FixedZone("", int(zone.Seconds()))
			return jsonLines(cmd, args, func(name string, emit func(any) error) error {
				b, err := whole(cmd, name)
				if err != nil {
					return err
				}
				return lwfsFile(emit, b, func(line []byte) (any, bool, error) {
					if client {
						return asAny(lwfs.ParseClientLine(line, at))
					}
					return asAny(lwfs.ParseLine(line, at))
				})
			})
		},
	}
	c.Flags().BoolVar(&client, "client", false, "the files are compute nodes' client traces")
	c.Flags().DurationVar(&zone, "utc-offset", 8*time.Hour, "the traces' local time, ahead of UTC")
	return c
}

func asAny[T any](v T, ok bool, err error) (any, bool, error) { return v, ok, err }

func lwfsFile(emit func(any) error, b []byte, parse func([]byte) (any, bool, error)) error {
	var bad error
	n, understood := 0, 0
	for line := range strings.Lines(string(b)) {
		n++
		v, ok, err := parse([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil && bad == nil {
			bad = fmt.Errorf("line %d: %w", n, err)
		}
		if !ok {
			continue
		}
		understood++
		if err := emit(v); err != nil {
			return err
		}
	}
	if understood == 0 && bad == nil {
		return errors.New(
			"no line of an LWFS trace in it (HOST [YYYY-MM-DD HH:MM:SS] [Trace]: ...; --client for compute nodes')")
	}
	return bad
}
