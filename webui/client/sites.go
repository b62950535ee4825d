package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"fairway/collector/topology"
	"fairway/webui/api"
	"fairway/webui/sites"
)

// siteTimeout bounds each of the two rounds in which all sites are asked.
const siteTimeout = 4 * time.Second

// Place is the daemon of one site.
type Place struct{ Name, Addr, TokenFile string }

// ReadToken reads a bearer token from its file; "" without a path.
func ReadToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", fmt.Errorf("token file %s: %w: it is empty", path, api.ErrInvalid)
	}
	return token, nil
}

// AskSites asks the daemons of several sites at once, each with its own token: first what is wrong there, then who uses
// the storage targets that one of them accuses. One that does not answer in time costs only its own part.
func AskSites(ctx context.Context, places []Place) []sites.Answer {
	answers := make([]sites.Answer, len(places))
	daemons := make([]*Client, len(places))
	each := func(ask func(context.Context, *Client, *sites.Answer)) {
		ctx, cancel := context.WithTimeout(ctx, siteTimeout)
		defer cancel()
		var wait sync.WaitGroup
		for i := range places {
			if answers[i].Err == nil {
				wait.Go(func() { ask(ctx, daemons[i], &answers[i]) })
			}
		}
		wait.Wait()
	}
	for i, p := range places {
		answers[i] = sites.Answer{Site: p.Name, Addr: p.Addr}
		token, err := ReadToken(p.TokenFile)
		if err == nil {
			daemons[i], err = New(p.Addr, token)
		}
		if answers[i].Err = err; err == nil {
			defer daemons[i].Close()
		}
	}
	each(func(ctx context.Context, c *Client, a *sites.Answer) {
		if a.Overview, a.Err = c.Overview(ctx); errors.Is(a.Err, context.DeadlineExceeded) {
			a.Err = fmt.Errorf("%w: no answer within %s", api.ErrUnreachable, siteTimeout)
		}
		if a.Err == nil {
			a.Jobs, _ = c.Jobs(ctx) // without them a job has no user
		}
	})
	if of := sites.Accused(answers); len(of) > 0 {
		each(func(ctx context.Context, c *Client, a *sites.Answer) { a.Uses, a.UsesErr = c.TargetUses(ctx, of) })
	}
	return answers
}

// TargetUses says what jobs move at storage targets now; nil where the machine does not report that.
func (c *Client) TargetUses(ctx context.Context, of []topology.NodeID) ([]api.TargetUse, error) {
	q := url.Values{}
	for _, id := range of {
		q.Add("target", string(id))
	}
	v, err := get[struct {
		Targets []api.TargetUse `json:"targets"`
	}](ctx, c, q, "flow")
	return v.Targets, err
}
