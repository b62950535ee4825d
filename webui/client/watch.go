package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"

	"fairway/webui/api"
)

const (
	// silence is how long a feed that beats every second may say nothing before it counts as lost.
	silence = 5 * time.Second
	// The wait between two attempts to connect, doubled from the first to the last, and jittered
	// by half so that two hundred consoles do not return to a restarted daemon as one.
	firstRetry = 250 * time.Millisecond
	lastRetry  = 4 * time.Second
	// maxMessage bounds one message of the feed.
	maxMessage = 32 << 20
)

// Watch calls update with each new overview (1 Hz, the newest only for a slow reader) until ctx ends. While the server
// cannot be reached it calls update with the last one and an error that wraps api.ErrUnreachable, and keeps trying.
func (c *Client) Watch(ctx context.Context, update func(api.Overview, error)) {
	var last api.Overview
	retry := firstRetry
	for ctx.Err() == nil {
		err := c.follow(ctx, func(o api.Overview) {
			last, retry = o, firstRetry
			update(o, nil)
		})
		if ctx.Err() != nil {
			return
		}
		update(last, err)
		wait := time.NewTimer(retry/2 + rand.N(retry))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		retry = min(2*retry, lastRetry)
	}
}

// follow reads one connection until it ends; the error says why and is never nil.
func (c *Client) follow(ctx context.Context, update func(api.Overview)) error {
	u := c.url(url.Values{"topics": {"overview"}}, "live")
	conn, resp, err := c.to.dialWS(ctx, u, c.header())
	if err != nil {
		return c.dialError(resp, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	conn.SetReadLimit(maxMessage)
	for {
		if err := conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return &lostError{c.name, err}
		}
		kind, r, err := conn.NextReader()
		if err != nil {
			return &lostError{c.name, err}
		}
		if kind != websocket.TextMessage {
			continue
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return &lostError{c.name, err}
		}
		m := api.LiveMessage{}
		if err := json.Unmarshal(b, &m); err != nil {
			return fmt.Errorf("live feed of %s: the message is not what this version of fairway reads: %w", c.name, err)
		}
		if m.Overview != nil {
			m.Overview.SentAt = m.Now
			update(*m.Overview)
		}
	}
}

// dialError says why the feed was not opened: refused by the server, or no server there.
func (c *Client) dialError(resp *http.Response, err error) error {
	if errors.Is(err, websocket.ErrBadHandshake) && resp != nil {
		// The library keeps the first kilobyte of the body, which holds a whole problem.
		body, _ := io.ReadAll(resp.Body)
		return refusal(resp, body)
	}
	return &lostError{c.name, err}
}
