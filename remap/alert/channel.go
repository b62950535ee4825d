package alert

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"fairway/collector/appendlog"
)

// channel gives messages to one receiver. send is called by one goroutine; it returns nil once the receiver has
// taken the whole message. A message with the same ID is the same message, given again.
type channel interface {
	send(ctx context.Context, m *message) error
}

func newChannel(r *Receiver) (channel, error) {
	secret, err := r.secret()
	if err != nil {
		return nil, err
	}
	// A proxy of the environment would be asked for every alert, and redirects would carry the secret elsewhere.
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	switch r.Kind {
	case kindAlertmanager:
		return &alertmanager{url: strings.TrimRight(r.URL, "/") + "/api/v2/alerts", token: secret, client: client}, nil
	case kindWebhook:
		return &webhook{url: r.URL, key: []byte(secret), client: client}, nil
	case kindMail:
		return &mailer{r: r, password: secret}, nil
	case kindSyslog:
		return &logger{address: r.Address}, nil
	}
	return &command{words: r.Command}, nil
}

// secret reads the receiver's secret, which nobody but its owner may read.
func (r *Receiver) secret() (string, error) {
	if r.SecretFile == "" {
		return "", nil
	}
	secret, err := appendlog.ReadPrivate(r.SecretFile)
	if err != nil {
		return "", fmt.Errorf("secret_file: %w", err)
	}
	if secret == "" {
		return "", fmt.Errorf("secret_file %s is empty", r.SecretFile)
	}
	return secret, nil
}

// message is what a receiver is given at once; a webhook and a command are given it as JSON.
type message struct {
	Version int    `json:"version"`
	Site    string `json:"site"`
	// ID names the message. After a crash or without an answer the same message is given again.
	ID     string    `json:"message"`
	At     time.Time `json:"at"`
	Alerts []Alert   `json:"alerts"`
}

func (m *message) encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("BUG: encode alerts: %w", err)
	}
	return b, nil
}

// post sends JSON and wants an answer of 200 to 299.
func post(ctx context.Context, c *http.Client, url string, header http.Header, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "fairwayd")
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, 300))
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("%s answered %s: %q", url, res.Status, answer)
	}
	return nil
}

// alertmanager posts to the v2 API. Alertmanager knows an alert by its labels, groups, and ends what nobody repeats.
type alertmanager struct {
	url, token string
	client     *http.Client
}

// endsAfter is when Alertmanager ends an alert that is not repeated: after three refreshes that did not come.
const endsAfter = 4 * time.Minute

func (a *alertmanager) send(ctx context.Context, m *message) error {
	type posted struct {
		Labels       map[string]string `json:"labels"`
		Annotations  map[string]string `json:"annotations"`
		StartsAt     time.Time         `json:"startsAt"`
		EndsAt       time.Time         `json:"endsAt"`
		GeneratorURL string            `json:"generatorURL,omitempty"`
	}
	out := make([]posted, len(m.Alerts))
	for i := range m.Alerts {
		one := &m.Alerts[i]
		// Labels are the alert's identity and must not change during its life: the severity may.
		p := posted{Labels: map[string]string{"alertname": "fairway_" + one.Kind, "id": one.ID, "site": m.Site},
			Annotations: map[string]string{"summary": one.Summary, "severity": string(one.Severity)},
			StartsAt:    one.Since, EndsAt: time.Now().Add(endsAfter), GeneratorURL: one.URL}
		if one.Node != "" {
			p.Labels["node"] = string(one.Node)
		}
		if len(one.Hurt) > 0 {
			p.Annotations["hurt"] = hurtWords(one.Hurt)
		}
		if one.Owner != "" {
			p.Annotations["owner"] = one.Owner
		}
		if !one.Ended.IsZero() {
			p.EndsAt = one.Ended
		}
		out[i] = p
	}
	body, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("BUG: encode alerts: %w", err)
	}
	h := http.Header{}
	if a.token != "" {
		h.Set("Authorization", "Bearer "+a.token)
	}
	return post(ctx, a.client, a.url, h, body)
}

// webhook posts the message with a signature over the time and the body:
//
//	Fairway-Signature: t=UNIX SECONDS,v1=HEX OF HMAC-SHA256(key, t + "." + body)
type webhook struct {
	url    string
	key    []byte
	client *http.Client
}

func (w *webhook) send(ctx context.Context, m *message) error {
	body, err := m.encode()
	if err != nil {
		return err
	}
	t := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, w.key)
	io.WriteString(mac, t+".")
	mac.Write(body)
	return post(ctx, w.client, w.url, http.Header{
		"Fairway-Signature": {"t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))}}, body)
}

// logger writes a line an alert to syslog (RFC 3164), with the identity fairway and the facility daemon. Package syslog
// knows no deadline: a server that takes nothing would hold the daemon's end.
type logger struct{ address string }

// The facility daemon and the severities of RFC 3164.
const (
	facilityDaemon                                = 3 << 3
	severityCrit, severityWarning, severityNotice = 2, 4, 5
)

func (l *logger) send(ctx context.Context, m *message) error {
	conn, head, err := l.dial(ctx)
	if err != nil {
		return fmt.Errorf("syslog: %w", err)
	}
	defer conn.Close()
	if until, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(until)
	}
	for i := range m.Alerts {
		a, severity := &m.Alerts[i], severityWarning
		switch {
		case !a.Ended.IsZero():
			severity = severityNotice
		case a.Severity == Critical:
			severity = severityCrit
		}
		if _, err := fmt.Fprintf(conn, "<%d>%s fairway[%d]: %s: %s\n", facilityDaemon|severity, head, os.Getpid(),
			m.Site, line(a)); err != nil {
			return fmt.Errorf("syslog: %w", err)
		}
	}
	return nil
}

// dial connects to the server, or to this host's, and returns what comes before the identity.
func (l *logger) dial(ctx context.Context) (conn net.Conn, head string, err error) {
	var d net.Dialer
	if network, addr, there := strings.Cut(l.address, ":"); there {
		host, err := os.Hostname()
		if err != nil {
			return nil, "", err
		}
		conn, err := d.DialContext(ctx, network, addr)
		return conn, time.Now().Format(time.RFC3339) + " " + host, err
	}
	for _, network := range []string{"unixgram", "unix"} {
		if conn, err = d.DialContext(ctx, network, "/dev/log"); err == nil {
			return conn, time.Now().Format(time.Stamp), nil
		}
	}
	return nil, "", err
}

// command runs a program of the site with the message on its standard input. Its words are never a shell's.
type command struct{ words []string }

func (c *command) send(ctx context.Context, m *message) error {
	body, err := m.encode()
	if err != nil {
		return err
	}
	p := exec.CommandContext(ctx, c.words[0], c.words[1:]...)
	p.Stdin, p.WaitDelay = bytes.NewReader(body), time.Second
	var output tail
	p.Stdout, p.Stderr = &output, &output
	if err := p.Run(); err != nil {
		return fmt.Errorf("%s: %w: %q", c.words[0], err, output.b)
	}
	return nil
}

// tail keeps the last bytes that a program wrote.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-300):]
	return len(p), nil
}

var errNoAddress = errors.New("no address: to has only {user}, and the users of the hurt jobs are unknown")
