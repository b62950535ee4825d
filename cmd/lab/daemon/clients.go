package daemon

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"fairway/collector/topology"
	"fairway/webui/api"
)

// Waited is what requests of a class took some compute nodes, and others in the same time, by their own clocks.
type Waited struct {
	Class        string
	Took, Others float64 // seconds a request
}

// Ratio is how many times as long as the others' the nodes' requests took; 0 is not known.
func (w Waited) Ratio() float64 {
	if w.Others == 0 {
		return 0
	}
	return w.Took / w.Others
}

// ClientsWaited asks a daemon what requests took nodes and others from one time to another, of the class that these
// nodes waited longest for in all: the truth that a headline is held against.
func ClientsWaited(ask func(path string, into any) error, nodes, others []topology.NodeID,
	from, to time.Time) (worst Waited, err error) {
	most := 0.0
	for _, c := range []struct{ name, ops, took string }{{"read", "read_ops", "client_read"},
		{"write", "write_ops", "client_write"}, {"metadata", "meta_ops", "client_meta"}} {
		var ended, waited [2]float64
		for side, of := range [][]topology.NodeID{nodes, others} {
			if ended[side], waited[side], err = sums(ask, of, c.ops, c.took, from, to); err != nil {
				return worst, err
			}
		}
		if waited[0] > most && ended[1] > 0 {
			most, worst = waited[0], Waited{c.name, waited[0] / ended[0], waited[1] / ended[1]}
		}
	}
	return worst, nil
}

// sums are the requests that ended, and the seconds that they took together.
func sums(ask func(path string, into any) error, nodes []topology.NodeID, ops, took string,
	from, to time.Time) (ended, waited float64, err error) {
	var names []string
	for _, n := range nodes {
		names = append(names, string(n))
	}
	var of [2]map[topology.NodeID]map[int64]float64
	for i, metric := range []string{ops, took} {
		var answer api.SeriesAnswer
		q := url.Values{"node": {strings.Join(names, ",")}, "metric": {metric},
			"from": {fmt.Sprint(from.UnixMilli())}, "to": {fmt.Sprint(to.UnixMilli())}}
		if err := ask("/api/v1/series?"+q.Encode(), &answer); err != nil {
			return 0, 0, err
		}
		of[i] = map[topology.NodeID]map[int64]float64{}
		for _, s := range answer.Series {
			of[i][s.Node] = map[int64]float64{}
			for _, p := range s.Points {
				if p.Value != nil {
					of[i][s.Node][p.TimeMillis] = *p.Value
				}
			}
		}
	}
	for node, seconds := range of[0] {
		for at, n := range seconds {
			if each := of[1][node][at]; each > 0 {
				ended, waited = ended+n, waited+n*each
			}
		}
	}
	return ended, waited, nil
}
