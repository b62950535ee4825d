package model

// Stat is a counted quantity since a node's start: how often, and of what was measured the least, the most, the sum
// and the sum of squares, which wraps.
type Stat struct {
	Name                      string
	Unit                      string // usec, reqs, bytes, sec, bufs
	N, Min, Max, Sum, SquareS uint64
}

// Add counts one value.
func (s *Stat) Add(v uint64) {
	if s.N == 0 || v < s.Min {
		s.Min = v
	}
	s.N++
	s.Max = max(s.Max, v)
	s.Sum += v
	s.SquareS += v * v
}

// Stats are the quantities of one file, in the order in which they first occurred.
type Stats struct {
	List []*Stat
	by   map[string]*Stat
}

// Of finds or makes a quantity.
func (s *Stats) Of(name, unit string) *Stat {
	if st := s.by[name]; st != nil {
		return st
	}
	if s.by == nil {
		s.by = map[string]*Stat{}
	}
	st := &Stat{Name: name, Unit: unit}
	s.by[name] = st
	s.List = append(s.List, st)
	return st
}

// Get is a quantity that may not have occurred.
func (s *Stats) Get(name string) Stat {
	if st := s.by[name]; st != nil {
		return *st
	}
	return Stat{Name: name}
}
