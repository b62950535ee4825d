package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/collector/lustre"
	"fairway/collector/lwfs"
)

// maxFileBytes bounds one file given to an offline reader.
const maxFileBytes = 256 << 20

// eachInput reads the named files one after the other and hands each to read; bad ones are said and do
// not stop the rest.
func eachInput(cmd *cobra.Command, names []string, read func(name string, b []byte) error) error {
	failed := 0
	for _, name := range names {
		if err := oneInput(cmd, name, read); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "fairway: %s: %v\n", name, err)
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files had lines that could not be read (named above); the rest is printed", failed, len(names))
	}
	return nil
}

func oneInput(cmd *cobra.Command, name string, read func(name string, b []byte) error) error {
	in, err := openInput(cmd, name)
	if err != nil {
		return err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err != nil {
		return err
	}
	if len(b) > maxFileBytes {
		return fmt.Errorf("more than %d bytes", maxFileBytes)
	}
	return read(name, b)
}

// newLustre is `fairway lustre`: what the Lustre readers understand of counter files.
func newLustre() *cobra.Command {
	return &cobra.Command{
		Use:   "lustre FILE...",
		Short: "Print what is understood of Lustre counter files, as JSON lines",
		Long: "The kind of a file is told by its name: job_stats, rpc_stats and brw_stats, and stats for all else;\n" +
			"files of `lctl get_param` output are cut into their parameters. \"-\" reads standard input.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e := json.NewEncoder(cmd.OutOrStdout())
			return eachInput(cmd, args, func(name string, b []byte) error {
				params := lustre.ParseParams(b)
				if len(params) == 0 {
					return lustreFile(e, name, name, b)
				}
				for _, p := range params {
					if err := lustreFile(e, name, p.Path, p.Value); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// lustreLine is one line of `fairway lustre`.
type lustreLine struct {
	File  string           `json:"file"`
	Param string           `json:"param,omitempty"`
	Stat  *lustre.Stat     `json:"stat,omitempty"`
	Job   *lustre.JobStat  `json:"job,omitempty"`
	RPC   *lustre.RPCStats `json:"rpc,omitempty"`
}

// lustreFile prints one file, or one parameter of an lctl output; parameters of other kinds are passed
// over.
func lustreFile(e *json.Encoder, name, what string, b []byte) error {
	line := lustreLine{File: name}
	if what != name {
		line.Param = what
	}
	kind := path.Base(what)
	if i := strings.LastIndexByte(what, '.'); what != name && i >= 0 {
		kind = what[i+1:]
	}
	switch {
	case strings.HasPrefix(kind, "job_stats"):
		jobs, bad := lustre.ParseJobStats(b)
		for i := range jobs {
			line.Job = &jobs[i]
			if err := e.Encode(line); err != nil {
				return err
			}
		}
		return bad
	case strings.HasPrefix(kind, "rpc_stats"), strings.HasPrefix(kind, "brw_stats"):
		r, bad := lustre.ParseRPCStats(b)
		line.RPC = &r
		if err := e.Encode(line); err != nil {
			return err
		}
		return bad
	case what != name && kind != "stats" && kind != "md_stats":
		return nil
	}
	stats, bad := lustre.ParseStats(b)
	for i := range stats {
		line.Stat = &stats[i]
		if err := e.Encode(line); err != nil {
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
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := bufio.NewWriter(cmd.OutOrStdout())
			e := json.NewEncoder(w)
			at := time.FixedZone("", int(zone.Seconds()))
			err := eachInput(cmd, args, func(_ string, b []byte) error {
				return lwfsFile(e, b, func(line []byte) (any, bool, error) {
					if client {
						return asAny(lwfs.ParseClientLine(line, at))
					}
					return asAny(lwfs.ParseLine(line, at))
				})
			})
			if flushErr := w.Flush(); err == nil {
				err = flushErr
			}
			return err
		},
	}
	c.Flags().BoolVar(&client, "client", false, "the files are compute nodes' client traces")
	c.Flags().DurationVar(&zone, "utc-offset", 8*time.Hour, "the traces' local time, ahead of UTC")
	return c
}

func asAny[T any](v T, ok bool, err error) (any, bool, error) { return v, ok, err }

func lwfsFile(e *json.Encoder, b []byte, parse func([]byte) (any, bool, error)) error {
	var bad error
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		v, ok, err := parse([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil && bad == nil {
			bad = fmt.Errorf("line %d: %w", n, err)
		}
		if !ok {
			continue
		}
		if err := e.Encode(v); err != nil {
			return err
		}
	}
	return bad
}
