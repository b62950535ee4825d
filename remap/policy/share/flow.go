package share

// flow is one maximum flow: source -> jobs (what they need) -> servers where they have work (the most they
// can take there) -> sink (what a server has), by Dinic's method: level by level, blocking flows.
type flow struct {
	places   []Place
	need     []float64 // job -> what is not placed yet
	room     []float64 // server -> what is not used yet
	rounding []float64 // job -> what of need is only rounding
	on       [][]float64
	uses     [][]edge // job -> where it appears
	jobLevel []int
	srvLevel []int
	jobNext  []int // edges before this are used up in this phase
	srvNext  []int
}

// edge is a job's place in a server's list.
type edge struct{ server, place int }

// newFlow begins with what is placed already, which must fit; nil for nothing.
func newFlow(places []Place, need, room []float64, placed [][]float64) *flow {
	jobs, servers := len(need), len(places)
	f := &flow{
		places: places, need: append([]float64(nil), need...), room: append([]float64(nil), room...),
		rounding: make([]float64, jobs), on: placed, uses: make([][]edge, jobs),
		jobLevel: make([]int, jobs), srvLevel: make([]int, servers),
	}
	if placed == nil {
		f.on = make([][]float64, servers)
	}
	for i := range places {
		if placed == nil {
			f.on[i] = make([]float64, len(places[i].Jobs))
		}
		for k, j := range places[i].Jobs {
			f.uses[j] = append(f.uses[j], edge{i, k})
			f.need[j] -= f.on[i][k]
			f.room[i] -= f.on[i][k]
		}
	}
	for j := range f.need {
		f.rounding[j] = need[j] * 1e-12
	}
	return f
}

func (f *flow) run() {
	for f.levels() {
		f.jobNext, f.srvNext = make([]int, len(f.need)), make([]int, len(f.room))
		for j := range f.need {
			for f.jobLevel[j] == 1 && f.need[j] > f.rounding[j] {
				x := f.push(j, f.need[j])
				if x == 0 {
					break
				}
				f.need[j] -= x
			}
		}
	}
}

// left is what a job can still take at a server; what is only rounding is nothing.
func (f *flow) left(e edge, j int) float64 {
	x := f.places[e.server].most(e.place) - f.on[e.server][e.place]
	if x <= f.rounding[j] {
		return 0
	}
	return x
}

// levels numbers jobs and servers by their distance from the source in the residual graph, 0 for out
// of reach; it says whether a server with room can be reached.
func (f *flow) levels() (found bool) {
	clear(f.jobLevel)
	clear(f.srvLevel)
	var queue []int
	for j, n := range f.need {
		if n > f.rounding[j] {
			f.jobLevel[j] = 1
			queue = append(queue, j)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		j := queue[0]
		for _, e := range f.uses[j] {
			if f.srvLevel[e.server] > 0 || f.left(e, j) == 0 {
				continue
			}
			f.srvLevel[e.server] = f.jobLevel[j] + 1
			found = found || f.room[e.server] > 0
			for k, back := range f.places[e.server].Jobs {
				if f.on[e.server][k] > 0 && f.jobLevel[back] == 0 {
					f.jobLevel[back] = f.srvLevel[e.server] + 1
					queue = append(queue, back)
				}
			}
		}
	}
	return found
}

// push sends up to amount from a job towards the sink and says how much went.
func (f *flow) push(j int, amount float64) float64 {
	for ; f.jobNext[j] < len(f.uses[j]); f.jobNext[j]++ {
		e := f.uses[j][f.jobNext[j]]
		most := min(amount, f.left(e, j))
		if f.srvLevel[e.server] != f.jobLevel[j]+1 || most == 0 {
			continue
		}
		if x := f.through(e.server, most); x > 0 {
			f.on[e.server][e.place] += x
			return x
		}
	}
	return 0
}

// through takes amount at a server: into its room, or by sending another job's part elsewhere.
func (f *flow) through(i int, amount float64) float64 {
	if f.room[i] > 0 {
		x := min(amount, f.room[i])
		f.room[i] -= x
		return x
	}
	for ; f.srvNext[i] < len(f.on[i]); f.srvNext[i]++ {
		k := f.srvNext[i]
		back := f.places[i].Jobs[k]
		if f.on[i][k] == 0 || f.jobLevel[back] != f.srvLevel[i]+1 {
			continue
		}
		if x := f.push(back, min(amount, f.on[i][k])); x > 0 {
			f.on[i][k] -= x
			return x
		}
	}
	return 0
}

// short names the jobs on the source's side of the minimum cut and the servers there; none when every
// job got its part.
func (f *flow) short() (jobs, servers []int) {
	f.levels()
	for j, l := range f.jobLevel {
		if l > 0 {
			jobs = append(jobs, j)
		}
	}
	for i, l := range f.srvLevel {
		if l > 0 {
			servers = append(servers, i)
		}
	}
	return jobs, servers
}
