package logread

import (
	"bytes"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"time"

	"fairway/collector/logs/slurm"
	"fairway/tsdb/history/iolog"
)

// looksLikeSlurm recognizes sacct's and scontrol's output by its first bytes.
func looksLikeSlurm(head []byte) bool {
	head = bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n")
	line, _, _ := bytes.Cut(head, []byte("\n"))
	switch {
	case bytes.HasPrefix(head, []byte("JobId=")):
		return true
	case bytes.HasPrefix(head, []byte("{")):
		return bytes.Contains(head, []byte(`"jobs"`)) || bytes.Contains(head, []byte(`"jobidraw"`)) ||
			bytes.Contains(bytes.ToLower(head), []byte(`"slurm"`))
	}
	return bytes.Count(line, []byte("|")) >= 3 && (bytes.Contains(line, []byte("JobID")) || sacctLine.Match(line))
}

var sacctLine = regexp.MustCompile(`^[0-9]+(_[0-9\[\]-]+)?(\+[0-9]+)?(\.[a-z0-9+]+)?\|`)

// Slurm reads what Slurm accounts for: one row a job, none for its steps.
func Slurm(in io.Reader, o Options) (*iolog.Log, error) { return slurmRows(in, o, mostMemory) }

func slurmRows(in io.Reader, o Options, left room) (*iolog.Log, error) {
	l := &iolog.Log{Kind: "slurm"}
	err := slurm.Read(in, slurm.Options{Zone: o.Zone}, func(j *slurm.Job) error {
		if j.Step != "" {
			return nil
		}
		l.Slurm = append(l.Slurm, slurmRow(j))
		return left.take(rowBytes + nameBytes*len(j.Nodes))
	})
	if err == nil && len(l.Slurm) == 0 {
		return nil, errors.New("no jobs in it")
	}
	return kept(l, err)
}

// What a row takes besides its nodes, and each of these, about.
const rowBytes, nameBytes = 1 << 10, 32

func slurmRow(j *slurm.Job) iolog.Slurm {
	row := iolog.Slurm{
		JobID: string(j.ID), SlurmID: string(j.ID), Name: j.Name, App: slurm.Application(j.Name, j.Comment),
		User: j.User, Account: j.Account, Partition: j.Partition, State: j.State,
		Submit: j.Submit, Start: j.Start, End: j.End, NodeCount: j.NodeCount, ProcCount: j.CPUs, RunSeconds: math.NaN(),
	}
	if j.RawID > 0 {
		row.JobID = strconv.FormatInt(j.RawID, 10)
	}
	if j.State == "PENDING" { // the start is expected
		row.Start = time.Time{}
	}
	if j.ElapsedSeconds != nil {
		row.RunSeconds = float64(*j.ElapsedSeconds)
	}
	for _, n := range j.Nodes {
		row.Nodes = append(row.Nodes, string(n))
	}
	return row
}
