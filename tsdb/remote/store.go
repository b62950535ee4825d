package remote

import (
	"context"
	"errors"
	"io"

	"fairway/collector"
	"fairway/tsdb"
)

// Server is what a Store reads from.
type Server struct {
	Reader
	// Known lists every series, for the directory of nodes.
	Known func(ctx context.Context) ([]Known, error)
	// Release lets go of the connections, once, at Close.
	Release func()
}

// Store is a tsdb.Store over a server. Append answers when the frames are on this machine's disk; reads see
// what the server shows.
type Store struct {
	queue  *Queue
	server Server
	nodes  *Directory
}

var _ tsdb.Store = (*Store)(nil)

// OpenStore opens the spool and begins to send. It does not wait for the server: one that is away is
// logged and counted, and gets everything when it is back.
func OpenStore(cfg Config, server Server) (*Store, error) {
	queue, err := Open(cfg)
	if err != nil {
		server.Release()
		return nil, err
	}
	return &Store{queue: queue, server: server, nodes: NewDirectory(server.Known)}, nil
}

// Append implements tsdb.Store.
func (s *Store) Append(ctx context.Context, frames []collector.Frame) error {
	err := s.queue.Append(ctx, frames)
	s.nodes.Note(frames)
	return err
}

// Select implements tsdb.Store.
func (s *Store) Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	if s.queue.Closed() {
		return nil, tsdb.ErrClosed
	}
	return s.server.Select(ctx, q)
}

// Occupancy implements tsdb.Store.
func (s *Store) Occupancy(ctx context.Context, q tsdb.OccupancyQuery) ([]tsdb.NodeOccupancy, error) {
	if s.queue.Closed() {
		return nil, tsdb.ErrClosed
	}
	return s.server.Occupancy(ctx, q)
}

// Nodes implements tsdb.Store.
func (s *Store) Nodes(ctx context.Context) ([]tsdb.NodeInfo, error) {
	if s.queue.Closed() {
		return nil, tsdb.ErrClosed
	}
	return s.nodes.List(ctx)
}

// Hours lists the hours, as their Unix seconds, between the first and the last sample.
func (s *Store) Hours(ctx context.Context) ([]int64, error) {
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	return s.server.Hours(ctx, nodes)
}

// Flush returns when the server has taken everything appended before it; it may show it later.
func (s *Store) Flush(ctx context.Context) error { return s.queue.Flush(ctx) }

// WriteMetrics writes the spool's state in Prometheus text format.
func (s *Store) WriteMetrics(w io.Writer) { s.queue.WriteMetrics(w) }

// Close ends the sending; what the server has not taken waits on disk for the next Open.
func (s *Store) Close() error {
	err := s.queue.Close()
	if !errors.Is(err, tsdb.ErrClosed) {
		s.server.Release()
	}
	return err
}
