package periodic

import "math"

// Unplanned is what happens without a pattern: everybody starts at once, does I/O when the computation
// is done, and the bandwidth in use is divided fairly between processors. Nothing is lost to
// congestion here, so a real system does worse than this.
type Unplanned struct {
	SysEfficiency float64 `json:"sys_efficiency"`
	Dilation      float64 `json:"dilation"`
}

// FairShare follows a checked set without a pattern, for the given seconds and until everybody has
// ended an instance. Efficiency counts to the end of the last instance (section 2.3).
func FairShare(s Set, seconds float64) Unplanned {
	apps := make([]fluid, len(s.Apps))
	for i, a := range s.Apps {
		apps[i] = fluid{compute: a.Work}
	}
	for t, waiting := 0.0, len(apps); t < seconds || waiting > 0; {
		share(s, apps)
		dt := math.Inf(1)
		for i := range apps {
			dt = min(dt, apps[i].left())
		}
		t += dt
		for i := range apps {
			if apps[i].run(s.Apps[i], dt) {
				if apps[i].n == 0 {
					waiting--
				}
				apps[i].n++
				apps[i].end = t
			}
		}
	}
	u := Unplanned{Dilation: 1}
	for i, a := range s.Apps {
		n := float64(apps[i].n)
		u.SysEfficiency += a.Procs * n * a.Work / (s.Procs * apps[i].end)
		u.Dilation = max(u.Dilation, apps[i].end/(n*s.cycle(a)))
	}
	return u
}

// fluid is an application at an instant: seconds of computation left, or GB of I/O at a rate.
type fluid struct {
	compute, volume, rate float64
	settled               bool    // has its rate already
	n                     int     // instances so far
	end                   float64 // of the last one
}

func (f *fluid) left() float64 {
	if f.compute > 0 {
		return f.compute
	}
	return f.volume / f.rate
}

// run goes on for dt seconds, no more than left, and changes phase at the end; it says whether that
// ended an instance.
func (f *fluid) run(a App, dt float64) (ended bool) {
	switch ends := dt >= f.left()*(1-tiny); {
	case f.compute > 0:
		f.compute -= dt
		if ends {
			f.compute, f.volume = 0, a.Volume
		}
	case ends:
		f.compute, f.volume = a.Work, 0
		return true
	default:
		f.volume -= f.rate * dt
	}
	return false
}

// share gives each application in its I/O a rate: the same for every processor, up to what it can
// take; what one cannot take goes to the others.
func share(s Set, apps []fluid) {
	room, procs := s.Bandwidth, 0.0
	for i := range apps {
		apps[i].settled = apps[i].compute > 0
		if !apps[i].settled {
			procs += s.Apps[i].Procs
		}
	}
	for settled := true; settled; {
		settled = false
		level := room / math.Max(procs, 1)
		for i, a := range s.Apps {
			f := &apps[i]
			if f.settled {
				continue
			}
			if most := s.rate(a); most <= level*a.Procs {
				f.rate, f.settled, settled = most, true, true
				room -= most
				procs -= a.Procs
				break
			}
			f.rate = level * a.Procs
		}
	}
}
