package share

import "slices"

// Server is one server's controller: the jobs it has seen and the shares it serves them by. It is not
// safe for concurrent use.
//
// A server knows only the jobs that use it, so until the next AllGather it divides itself among those
// alone; what the servers do together may then differ from the policy. A state like that does not
// outlast the interval lambda at which AllGather is called (section 3.1, lambda-delayed fairness).
type Server struct {
	policy Policy
	jobs   []Job
	shares []float64
}

// NewServer makes a controller that has seen no job.
func NewServer(p Policy) *Server { return &Server{policy: p} }

// See adds a job, or takes what is new of one that is known, and falls back to local shares.
func (s *Server) See(j Job) {
	if i := s.find(j.Name); i < 0 {
		s.jobs = append(s.jobs, j)
	} else if s.jobs[i] == j {
		return
	} else {
		s.jobs[i] = j
	}
	s.shares = Shares(s.policy, s.jobs)
}

// Forget removes a job that ended, and falls back to local shares.
func (s *Server) Forget(name string) {
	if i := s.find(name); i >= 0 {
		s.jobs = slices.Delete(s.jobs, i, i+1)
		s.shares = Shares(s.policy, s.jobs)
	}
}

func (s *Server) find(name string) int {
	return slices.IndexFunc(s.jobs, func(k Job) bool { return k.Name == name })
}

// Jobs and Shares are what this server serves by: shares of itself, 0..1, in the order of Jobs.
func (s *Server) Jobs() []Job       { return s.jobs }
func (s *Server) Shares() []float64 { return s.shares }

// AllGather merges what the servers have seen and gives each its part of the global shares. The jobs
// are those of all servers in order of appearance; the split speaks of them by index.
func AllGather(p Policy, servers []*Server) (jobs []Job, split Split) {
	index := map[string]int{}
	on := make([][]int, len(servers))
	for i, s := range servers {
		for _, j := range s.jobs {
			k, found := index[j.Name]
			if !found {
				k = len(jobs)
				index[j.Name] = k
				jobs = append(jobs, j)
			}
			on[i] = append(on[i], k)
		}
	}
	split = Global(Shares(p, jobs), on)
	for i, s := range servers {
		s.shares = split.Server[i]
	}
	return jobs, split
}
