package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector/topology"
	"fairway/webui/api"
	"fairway/webui/sites"
)

const (
	// siteTimeout bounds each of the two questions that a site is asked.
	siteTimeout = 4 * time.Second
	// askEvery is how long a site that is watched is left alone in between.
	askEvery = 3 * time.Second
	// mostAnswer bounds one answer of a site, mostAnswers what is read of all sites at once, bytes. A machine of 240
	// forwarders answers with a thirtieth of the first.
	mostAnswer  = 8 << 20
	mostAnswers = 64 << 20
	// mostJobs are asked for, to name those that do most of the I/O.
	mostJobs = "1000"
)

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

// share is what the answers of all sites may take of this host's memory while they are read.
type share struct{ used atomic.Int64 }

var errShare = fmt.Errorf("the answers of all sites together are larger than %d bytes", mostAnswers)

// taken is one answer's part of a share.
type taken struct {
	from  io.Reader
	share *share
	bytes int64
}

func (t *taken) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	t.bytes += int64(n)
	if t.share.used.Add(int64(n)) > mostAnswers {
		return n, errShare
	}
	return n, err
}

func (t *taken) giveBack() { t.share.used.Add(-t.bytes) }

// Sites asks the daemons of several sites, each with its own token and at its own pace: one that is slow, dead or not
// understood costs its own part. Its methods may be called concurrently.
type Sites struct {
	places []Place
	share  share

	mu      sync.Mutex // guards answers
	answers []sites.Answer
}

// NewSites asks nobody yet.
func NewSites(places []Place) *Sites {
	s := &Sites{places: places, answers: make([]sites.Answer, len(places))}
	for i, p := range places {
		s.answers[i] = sites.Answer{Site: p.Name, Addr: p.Addr, Since: time.Now(),
			Err: fmt.Errorf("%w: it has not answered yet", api.ErrUnreachable)}
	}
	return s
}

// Answers are the newest ones, in the order of the places.
func (s *Sites) Answers() []sites.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.answers)
}

// Run asks each site until ctx ends, and who uses the storage targets that of returns; where it returns nil, nobody
// is asked.
func (s *Sites) Run(ctx context.Context, of func() []topology.NodeID) {
	var wait sync.WaitGroup
	for i := range s.places {
		wait.Go(func() {
			for ctx.Err() == nil {
				if targets := of(); targets != nil {
					s.ask(ctx, i, targets)
				}
				select {
				case <-ctx.Done():
				case <-time.After(askEvery):
				}
			}
		})
	}
	wait.Wait()
}

// AskSites asks the daemons of several sites once, all at the same time: first what is wrong there, then who uses the
// storage targets that one of them accuses.
func AskSites(ctx context.Context, places []Place) []sites.Answer {
	s := NewSites(places)
	each := func(targets []topology.NodeID) {
		var wait sync.WaitGroup
		for i := range places {
			wait.Go(func() { s.ask(ctx, i, targets) })
		}
		wait.Wait()
	}
	each(nil)
	if of := sites.Accused(s.Answers()); len(of) > 0 {
		each(of)
	}
	for i := range s.answers {
		s.answers[i].Since = time.Time{} // of one question it is not known
	}
	return s.answers
}

// ask asks one site what is wrong there and, where there are targets, who uses these.
func (s *Sites) ask(ctx context.Context, i int, targets []topology.NodeID) {
	p := s.places[i]
	a := sites.Answer{Site: p.Name, Addr: p.Addr}
	token, err := ReadToken(p.TokenFile) // each time: a token that is wrong may be mended
	var c *Client
	if err == nil {
		c, err = New(p.Addr, token)
	}
	if err == nil {
		defer c.Close()
		c.share = &s.share
		a.Overview, err = within(ctx, func(ctx context.Context) (sites.Overview, error) {
			return get[sites.Overview](ctx, c, nil, "overview")
		})
	}
	if err == nil && len(targets) > 0 {
		a.Uses, a.UsesErr = within(ctx, func(ctx context.Context) ([]sites.Use, error) {
			// without jobs the one that does most has no user
			a.Jobs, _ = get[sites.List[sites.Job]](ctx, c, url.Values{"limit": {mostJobs}}, "jobs")
			return c.targetUses(ctx, targets)
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Err = err; err != nil {
		if a.Since = s.answers[i].Since; a.Since.IsZero() {
			a.Since = time.Now()
		}
	}
	s.answers[i] = a
}

// within bounds a question to a site, and says so where that ends it.
func within[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, siteTimeout)
	defer cancel()
	v, err := ask(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: no answer within %s", api.ErrUnreachable, siteTimeout)
	}
	return v, err
}

// targetUses says what jobs move at storage targets now; nil where the machine does not report that.
func (c *Client) targetUses(ctx context.Context, of []topology.NodeID) ([]sites.Use, error) {
	q := url.Values{}
	for _, id := range of {
		q.Add("target", string(id))
	}
	v, err := get[struct {
		Targets sites.List[sites.Use] `json:"targets"`
	}](ctx, c, q, "flow")
	return v.Targets, err
}

// ViewOfSites is what a daemon that watches several sites knows of them.
func (c *Client) ViewOfSites(ctx context.Context) (sites.View, error) {
	return get[sites.View](ctx, c, nil, "sites")
}
