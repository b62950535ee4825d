package webui

import (
	"iter"

	"fairway/remap/journal"
	"fairway/webui/access"
)

// What tests outside of the package look at.
const (
	TopicFindings = topicFindings
	TopicBeat     = topicBeat
)

// Routes are the API's.
func (s *Server) Routes() []access.Route { return s.site.Routes }

// Clients, Dropped and Stalled count the live feed's streams, their lost frames and those that were let go.
func (s *Server) Clients() int64 { return s.feed.clients.Load() }

// Dropped is described at Clients.
func (s *Server) Dropped() uint64 { return s.feed.dropped.Load() }

// Stalled is described at Clients.
func (s *Server) Stalled() uint64 { return s.feed.stalled.Load() }

// Records replaces the journal that causes are explained with.
func (s *Server) Records(read func(journal.Wanted) iter.Seq2[*journal.Record, error]) {
	s.parts.records = read
}
