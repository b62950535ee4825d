package tsdb

import "fairway/collector"

// relatedMetrics are the operations that a metric's value belongs to: bytes are a multiple of
// them, and where there were none there is nothing to wait for. The block format depends on this
// table; changing it needs a new version.
var relatedMetrics = func() (t [collector.MetricCount][2]collector.Metric) {
	for ops, of := range map[collector.Metric][]collector.Metric{
		collector.ReadOps:  {collector.ReadBytes, collector.ReadWait, collector.ReadExec, collector.ClientRead},
		collector.WriteOps: {collector.WriteBytes, collector.WriteWait, collector.WriteExec, collector.ClientWrite},
		collector.MetaOps:  {collector.MetaWait, collector.MetaExec, collector.ClientMeta, collector.MetaQueueLen},
	} {
		for _, m := range of {
			t[m][0] = ops
		}
	}
	for _, m := range []collector.Metric{collector.QueueLen, collector.ServerTime, collector.ThreadsBusy} {
		t[m] = [2]collector.Metric{collector.ReadOps, collector.WriteOps}
	}
	return t
}()
