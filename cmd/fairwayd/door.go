package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/driver/fwdmount"
)

// door is the daemon's HTTP face.
type door struct{ mux *http.ServeMux }

func newDoor(_ *daemon) (*door, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	return &door{mux: mux}, nil
}

func (d *door) agents() fwdmount.Orderer { return noAgents{} }

func (d *door) server(bool) *http.Server {
	return &http.Server{Handler: d.mux, ReadHeaderTimeout: 10 * time.Second}
}

func (d *door) Close() {}

type noAgents struct{}

func (noAgents) Order(context.Context, topology.NodeID, wire.Order) (wire.OrderResult, error) {
	return wire.OrderResult{}, errors.New("no agents")
}
func (noAgents) Connected(topology.NodeID) bool { return false }
