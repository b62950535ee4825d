package failslow

import (
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// TestMetadataOfAJobIsComparedWithItsOtherForwarders: metadata that takes five times as long as at the job's other
// forwarders makes a suspect and accuses nobody, until a canary's stat shows it, too.
func TestMetadataOfAJobIsComparedWithItsOtherForwarders(t *testing.T) {
	for _, canaries := range []bool{false, true} {
		l, d := newLayer(6), New(DefaultSettings())
		job := Job{ID: "j"}
		for _, o := range l.rows[:4] {
			job.Nodes = append(job.Nodes, o.Node)
		}
		d.Second(time.Unix(l.now+1, 0), l.next(nil))
		d.Jobs([]Job{job})
		sick, accused, due := l.rows[1].Node, map[topology.NodeID]bool{}, 0
		for s := range 1500 {
			late := s >= 900
			rows := l.next(func(n int, o *Observation) {
				if o.Class[Meta] = (ClassSecond{}); n < 4 {
					o.Class[Meta] = ClassSecond{Ops: 300, Exec: 300e-6}
				}
				if n == 1 && late {
					slower(o, Meta, 5)
				}
			})
			now := time.Unix(l.now, 0)
			for _, v := range d.Second(now, rows) {
				accused[v.Node] = accused[v.Node] || v.Level == anomaly.Alarm
			}
			suspects, idle := d.Due(now)
			for _, n := range append(suspects, idle...) {
				d.Asked(now, n)
				p := Probe{n, [classes]float64{4e-3, 5e-3, 1e-3}}
				if n == sick && late {
					due++
					if p.Took[Meta] = 5e-3; !canaries {
						continue
					}
				}
				d.Probe(now, p)
			}
		}
		if accused[sick] != canaries || due < 20 {
			t.Errorf("with canaries %v: accused %v, %d canaries sent", canaries, accused[sick], due)
		}
		delete(accused, sick)
		for n, is := range accused {
			if is {
				t.Errorf("with canaries %v: %s was accused", canaries, n)
			}
		}
	}
}

// TestLoadClearsWhomCanariesAccused: once requests wait, no canary shows that a forwarder is well again; what it serves
// does.
func TestLoadClearsWhomCanariesAccused(t *testing.T) {
	l, d := newLayer(6), New(DefaultSettings())
	sick, level := l.rows[1].Node, anomaly.Clean
	was := level
	for s := range 2400 {
		ill, waits := s >= 900 && s < 1500, s >= 1500
		rows := l.next(func(n int, o *Observation) {
			if n == 1 && waits {
				o.QueueLen = 5
			}
		})
		now := time.Unix(l.now, 0)
		for _, v := range d.Second(now, rows) {
			if v.Node == sick {
				level = v.Level
			}
		}
		suspects, idle := d.Due(now)
		for _, n := range append(suspects, idle...) {
			d.Asked(now, n)
			p := Probe{n, [classes]float64{4e-3, 5e-3, 1e-3}}
			if n == sick && ill {
				p.Took = [classes]float64{12e-3, 15e-3, 1e-3}
			}
			d.Probe(now, p)
		}
		if s == 1499 {
			was = level
		}
	}
	if was != anomaly.Alarm || level == anomaly.Alarm {
		t.Errorf("level %d while canaries were slow, %d 900 s later", was, level)
	}
}

// TestACanaryThroughAFullForwarderAccusesNobody: what streams as much as a forwarder can leaves a canary the rest.
func TestACanaryThroughAFullForwarderAccusesNobody(t *testing.T) {
	for _, full := range []bool{true, false} {
		l, d := newLayer(6), New(DefaultSettings())
		accused := false
		for s := range 2400 {
			late := s >= 900
			rows := l.next(func(n int, o *Observation) {
				// what a forwarder can, and half of it
				if s < 300 && n < 2 || n == 1 && late && full || n > 1 && s%100 < 50 {
					ops := 16e3
					if n > 1 {
						ops = 9e3
					}
					o.Class[Write] = ClassSecond{Ops: ops, Bytes: ops * 128e3, Wait: 30e-6, Exec: 1500e-6}
				}
			})
			now := time.Unix(l.now, 0)
			for _, v := range d.Second(now, rows) {
				accused = accused || v.Node == rows[1].Node && v.Level == anomaly.Alarm
			}
			suspects, idle := d.Due(now)
			for _, n := range append(suspects, idle...) {
				d.Asked(now, n)
				p := Probe{n, [classes]float64{4e-3, 5e-3, 1e-3}}
				if n == rows[1].Node && late {
					p.Took = [classes]float64{8e-3, 10e-3, 1e-3}
				}
				d.Probe(now, p)
			}
		}
		if accused == full {
			t.Errorf("full %v: accused %v", full, accused)
		}
	}
}
