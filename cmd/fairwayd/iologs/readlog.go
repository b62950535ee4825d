//go:build cgo

package iologs

import (
	"context"
	"fmt"
	"time"

	"fairway/anomaly/rootcause"
	"fairway/tsdb/history/archive"
	"fairway/tsdb/history/iolog"
	"fairway/tsdb/history/logread"
)

// readLog turns files into rows of the archive, each job with the explanation of its reads and writes.
// Times that files write without a zone are in that zone.
func readLog(zone string) (func(context.Context, archive.Input) (*iolog.Log, error), error) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("--zone %q: %w; want a name such as America/Los_Angeles", zone, err)
	}
	return func(_ context.Context, in archive.Input) (*iolog.Log, error) {
		return explained(in, logread.Options{Zone: loc, NoAccounts: in.Users})
	}, nil
}

func explained(in archive.Input, o logread.Options) (*iolog.Log, error) {
	l, err := logread.Read(in.Content, in.ID, o)
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
