//go:build cgo

package main

import (
	"context"
	"errors"

	"fairway/anomaly/rootcause"
	"fairway/tsdb/history/archive"
	"fairway/tsdb/history/iolog"
	"fairway/tsdb/history/logread"
)

// readLog turns a file into rows of the archive, each job with the explanation of its reads and writes.
func readLog(_ context.Context, in archive.Input) (*iolog.Log, error) {
	l, err := logread.Read(in.Content, in.ID)
	if errors.Is(err, logread.ErrUnknown) {
		return nil, archive.ErrNotALog
	}
	if err != nil {
		return nil, err
	}
	for i := range l.Jobs {
		j := &l.Jobs[i]
		j.Read = rootcause.Summarise(j, l.JobFiles, rootcause.Read)
		j.Write = rootcause.Summarise(j, l.JobFiles, rootcause.Write)
	}
	return l, nil
}
