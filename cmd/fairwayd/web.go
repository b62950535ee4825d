package main

import (
	"context"
	"strings"

	"fairway/cmd/fairwayd/iologs"
	"fairway/cmd/fairwayd/view"
	"fairway/remap"
	"fairway/remap/alert"
	"fairway/remap/desk"
	"fairway/tsdb/promapi"
	"fairway/webui"
	"fairway/webui/access"
	"fairway/webui/access/budget"
	"fairway/webui/api"
	"fairway/webui/live"
)

// openWeb makes what people and programs ask.
func (d *daemon) openWeb(ctx context.Context, people access.Config, shown *live.Picture, moves remap.Driver,
	calls *alert.Sender, meters []webui.MetricsWriter) (*webui.Server, error) {
	leader := d.member.PassOn()
	if d.conf.View {
		leader = view.Refuse
	}
	limits := budget.Defaults()
	conf, judges := d.conf, &d.judges
	promql := promapi.New(promapi.Config{Store: d.store, Log: d.log, MaxSamples: limits.QuerySamples / limits.Queries,
		MaxBytes: limits.AnswerBytes, Racks: d.situation.Racks, Peaks: d.situation.Peaks})
	return webui.New(webui.Config{Access: people, Picture: shown, Store: d.store, Desk: d.desk, Ingest: d.agents,
		Jobs: d.jobs.dispatch, Review: desk.NewReview(d.desk, judges.findings), Findings: judges.findings.Settings(),
		Rules: d.jobs.evacuate, Gathering: d.sharing.Gathering, PromQL: promql,
		Options: webui.Options{
			Addresses: webui.Addresses{Hosts: conf.Listen.Hosts, BrowserURL: d.browserURL(),
				Sites: view.Consoles(d.log)},
			Mounts: conf.Mounts, Priority: conf.Priority(), Driver: observer(moves, conf.Driver.Kind),
			Archive: iologs.Open(conf.StateDir, self), Canaries: judges.asked(d.desk), Checks: d.checks(),
			Shared: view.AskOthers(ctx, conf, d.browserURL(), shown, d.tasks.Go, d.log),
			Effect: d.jobs.effects.Newest, Alerts: calls, Runs: d.jobs.history.Each, Leader: leader,
			Metrics: meters, Version: version, Log: d.log}})
}

// notice is what every screen says of this daemon.
func (d *daemon) notice() string {
	if d.conf.View {
		return view.Notice
	}
	return d.member.Notice()
}

// checks are what the doctor asks besides.
func (d *daemon) checks() []func(context.Context) api.Check {
	all := []func(context.Context) api.Check{d.listeners.Check}
	if !d.member.Alone() {
		all = append(all, func(ctx context.Context) api.Check { return d.member.Check(ctx, d.desk.Head().Records) })
	}
	return all
}

// browserURL is where a browser reaches the daemon, as far as it knows; "" where it cannot.
func (d *daemon) browserURL() string {
	if at := d.conf.Access.OIDC.URL; at != "" {
		return strings.TrimSuffix(at, "/")
	}
	return d.listeners.BrowserURL()
}
