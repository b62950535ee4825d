package stream

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"fairway/collector/topology"
)

const (
	enrollPath = "/api/v1/enroll"
	// maxEnrolled bounds the daemon's answer, bytes.
	maxEnrolled = 4 << 10
)

// Enroll gets a node its own token from the daemon at an address as in Client.URL, by a join token.
func Enroll(ctx context.Context, daemon string, conf *tls.Config, join string, n topology.NodeID) (token string,
	err error) {
	t, err := parseURL(daemon)
	if err != nil {
		return "", err
	}
	at := strings.TrimSuffix("http"+strings.TrimPrefix(t.url, "ws"), ingestPath) + enrollPath
	body, err := json.Marshal(map[string]topology.NodeID{"node": n})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	q.Header.Set("Authorization", "Bearer "+join)
	q.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if t.network != "" {
				network, addr = t.network, t.addr
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the join token is for this daemon
	}}
	res, err := client.Do(q)
	if err != nil {
		return "", fmt.Errorf("enrolling at %s: %w", daemon, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxEnrolled))
	if err != nil {
		return "", fmt.Errorf("enrolling at %s: %w", daemon, err)
	}
	return enrolled(daemon, res.Status, res.StatusCode, text)
}

// enrolled reads the daemon's answer.
func enrolled(daemon, status string, code int, text []byte) (token string, err error) {
	var answer struct{ Token, Detail string }
	err = json.Unmarshal(text, &answer)
	switch {
	case code != http.StatusOK:
		return "", fmt.Errorf("enrolling at %s: %s", daemon, topology.Clean(status+": "+answer.Detail))
	case err != nil:
		return "", fmt.Errorf("enrolling at %s: %w", daemon, err)
	case answer.Token == "" || strings.ContainsAny(answer.Token, "\r\n"):
		return "", fmt.Errorf("enrolling at %s: the answer holds no token", daemon)
	}
	return answer.Token, nil
}
