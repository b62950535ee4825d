package share

// flow is one maximum flow: source -> open jobs (t times their share) -> open servers they use (no
// limit) -> sink (a server's capacity), by Dinic's method: level by level, blocking flows.
type flow struct {
	g        *placement
	need     []float64 // job -> share not placed yet
	room     []float64 // server -> capacity not used yet
	rounding []float64 // job -> what of need is no more than rounding
	on       [][]float64
	uses     [][]edge // job -> where it appears
	jobLevel []int
	srvLevel []int
	jobNext  []int // edges before this are used up in this phase
	srvNext  []int
}

// edge is a job's place in a server's list.
type edge struct{ server, place int }

func (g *placement) maxFlow(t float64) *flow {
	jobs, servers := len(g.share), len(g.on)
	f := &flow{
		g: g, need: make([]float64, jobs), room: make([]float64, servers), rounding: make([]float64, jobs),
		on: make([][]float64, servers), uses: make([][]edge, jobs),
		jobLevel: make([]int, jobs), srvLevel: make([]int, servers),
	}
	for i, list := range g.on {
		f.on[i] = make([]float64, len(list))
		if g.doneSrv[i] {
			continue
		}
		f.room[i] = g.capacity
		for k, j := range list {
			if !g.doneJob[j] {
				f.uses[j] = append(f.uses[j], edge{i, k})
			}
		}
	}
	for j := range f.need {
		if !g.doneJob[j] {
			f.need[j] = t * g.share[j]
			f.rounding[j] = f.need[j] * 1e-12
		}
	}
	for f.levels() {
		f.jobNext, f.srvNext = make([]int, jobs), make([]int, servers)
		for j := range f.need {
			for f.jobLevel[j] == 1 && f.need[j] > 0 {
				x := f.push(j, f.need[j])
				if x == 0 {
					break
				}
				f.need[j] -= x
			}
		}
	}
	return f
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
			if f.srvLevel[e.server] > 0 {
				continue
			}
			f.srvLevel[e.server] = f.jobLevel[j] + 1
			found = found || f.room[e.server] > 0
			for k, back := range f.g.on[e.server] {
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
		if f.srvLevel[e.server] != f.jobLevel[j]+1 {
			continue
		}
		if x := f.through(e.server, amount); x > 0 {
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
		back := f.g.on[i][k]
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

// short names the jobs on the source's side of the minimum cut and the servers they use; none when
// every job got its part.
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

// keep writes the flow of some jobs into the placement.
func (f *flow) keep(jobs []int) {
	for _, j := range jobs {
		for _, e := range f.uses[j] {
			f.g.flow[e.server][e.place] = f.on[e.server][e.place]
		}
	}
}
