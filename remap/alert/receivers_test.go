package alert

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// receiver is one real receiver: its settings, and what it has been given, in its own words.
type receiver struct {
	settings Receiver
	// got returns what was received so far as text that names each alert with its state.
	got func() string
	// firing and ended are what it shows of an alert.
	firing, ended func(id string) string
	down          func() // it goes away
}

var receivers = map[string]func(*testing.T) receiver{
	kindAlertmanager: alertmanagerReceiver,
	kindWebhook:      webhookReceiver,
	kindMail:         mailReceiver,
	kindSyslog:       syslogReceiver,
	kindCommand:      commandReceiver,
}

// TestReceivers is the conformance suite of every kind: an alert arrives, also twice, it ends, and a receiver that
// is away is an error that names it.
func TestReceivers(t *testing.T) {
	for kind, open := range receivers {
		t.Run(kind, func(t *testing.T) {
			r := open(t)
			r.settings.Name, r.settings.Kind = "x", kind
			if err := (&Settings{Receivers: []Receiver{r.settings}}).Validate(); err != nil {
				t.Fatal(err)
			}
			ch, err := newChannel(&r.settings)
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			m := &message{Version: 1, Site: "hpc1", ID: "m1", At: now, Alerts: []Alert{
				{ID: "F-0091", Kind: "fail_slow", Severity: Critical, Node: "fwd1", Since: now.Add(-time.Minute),
					Summary: "fwd1 is 10x slow at writing: 36 ms,\npeers 3.5 \x1b[31mms",
					Hurt:    []Hurt{{Job: "31", User: "olga", Share: .77}}, URL: "http://h/findings/F-0091"},
				{ID: "P-7", Kind: PlanWaiting, Severity: Warning, Since: now, Summary: "P-7 waits for approval: é"},
			}}
			for range 2 { // the second time as after a crash between its answer and the note of it
				if err := ch.send(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "both are firing", func() bool {
				got := r.got()
				return strings.Contains(got, r.firing("F-0091")) && strings.Contains(got, r.firing("P-7"))
			})
			m.ID, m.Alerts = "m2", m.Alerts[:1]
			m.Alerts[0].Ended = now
			if err := ch.send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			eventually(t, "one has ended", func() bool { return strings.Contains(r.got(), r.ended("F-0091")) })
			if strings.Contains(r.got(), "\x1b") && kind != kindAlertmanager && kind != kindWebhook &&
				kind != kindCommand {
				t.Errorf("escape sequences arrive: %q", r.got())
			}
			if r.down == nil {
				return
			}
			r.down()
			if err := ch.send(t.Context(), m); err == nil {
				t.Error("a receiver that is away took an alert")
			}
		})
	}
}

func freePort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func alertmanagerReceiver(t *testing.T) receiver {
	bin, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		t.Skip("prometheus-alertmanager is not installed")
	}
	dir, addr := t.TempDir(), freePort(t)
	conf := filepath.Join(dir, "c.yml")
	if err := os.WriteFile(conf, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "--config.file="+conf, "--storage.path="+dir, "--web.listen-address="+addr,
		"--cluster.listen-address=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	down := sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	t.Cleanup(down)
	get := func() string {
		// Those that have ended are listed by the state of the group alone, so that both are asked for.
		res, err := http.Get("http://" + addr + "/api/v2/alerts")
		if err != nil {
			return ""
		}
		defer res.Body.Close()
		var list []struct {
			Labels map[string]string
		}
		if json.NewDecoder(res.Body).Decode(&list) != nil {
			return ""
		}
		out := "up:"
		for _, a := range list {
			out += fmt.Sprintf("%s on %s firing;", a.Labels["id"], a.Labels["site"])
		}
		if !strings.Contains(out, "F-0091") {
			out += "F-0091 ended"
		}
		return out
	}
	eventually(t, "alertmanager is up", func() bool { return get() != "" })
	return receiver{settings: Receiver{URL: "http://" + addr}, got: get, down: down,
		firing: func(id string) string { return id + " on hpc1 firing" },
		ended:  func(id string) string { return id + " ended" }}
}

// inbox is what a receiver has been given.
type inbox struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *inbox) add(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(&b.text, format, args...)
}

func (b *inbox) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// addMessage notes the alerts of a webhook's or command's message.
func (b *inbox) addMessage(body []byte) error {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return err
	}
	for _, a := range m.Alerts {
		b.add("%s %t %s;", a.ID, a.Ended.IsZero(), m.Site)
	}
	return nil
}

func messageFiring(id string) string { return id + " true hpc1" }
func messageEnded(id string) string  { return id + " false hpc1" }

func webhookReceiver(t *testing.T) receiver {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var in inbox
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		stamp, sum, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Fairway-Signature"), "t="), ",v1=")
		mac := hmac.New(sha256.New, []byte("sesame"))
		mac.Write([]byte(stamp + "." + string(body)))
		if sum != hex.EncodeToString(mac.Sum(nil)) || in.addMessage(body) != nil {
			http.Error(w, "bad signature", http.StatusForbidden)
		}
	}))
	t.Cleanup(s.Close)
	return receiver{settings: Receiver{URL: s.URL, SecretFile: key}, got: in.String, down: s.Close,
		firing: messageFiring, ended: messageEnded}
}

func commandReceiver(t *testing.T) receiver {
	dir := t.TempDir()
	out, script := filepath.Join(dir, "out"), filepath.Join(dir, "call")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ncat >> \"$1\"; echo >> \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return receiver{settings: Receiver{Command: []string{script, out}}, got: func() string {
		var in inbox
		b, _ := os.ReadFile(out)
		for l := range bytes.Lines(b) {
			_ = in.addMessage(l)
		}
		return in.String()
	}, down: func() { _ = os.WriteFile(script, []byte("#!/bin/sh\necho no pager; exit 3\n"), 0o700) },
		firing: messageFiring, ended: messageEnded}
}

func syslogReceiver(t *testing.T) receiver {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var in inbox
	go func() {
		buf := make([]byte, 4096)
		for {
			n, _, err := l.ReadFrom(buf)
			if err != nil {
				return
			}
			in.add("%s\n", strings.TrimRight(string(buf[:n]), "\n"))
		}
	}()
	return receiver{settings: Receiver{Address: "udp:" + l.LocalAddr().String()}, got: in.String, // UDP is never away
		firing: func(id string) string { return "hpc1: " + id + " firing" },
		ended:  func(id string) string { return "hpc1: " + id + " ended" }}
}

// mailSession is one mail on its way in.
type mailSession struct{ in *inbox }

func (s mailSession) Reset()                                      {}
func (s mailSession) Logout() error                               { return nil }
func (s mailSession) Mail(from string, _ *smtp.MailOptions) error { return nil }

func (s mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.in.add("to %s\n", to)
	return nil
}

func (s mailSession) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(m.Body)
	s.in.add("id %s\n%s\n", m.Header.Get("Message-ID"), strings.ReplaceAll(string(body), "=\r\n", ""))
	return err
}

func mailReceiver(t *testing.T) receiver {
	var in inbox
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return mailSession{&in}, nil }))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return receiver{settings: Receiver{Server: l.Addr().String(), TLS: "none", From: "fairway@example.org",
		To: []string{"oncall@example.org", "{user}@example.org"}}, got: in.String, down: func() { _ = s.Close() },
		firing: func(id string) string { return id + " firing" },
		ended:  func(id string) string { return id + " ended" }}
}

// TestMailIsOneMessage: the same message has the same Message-ID, which mail programs show once, and go to the users
// whom they hurt.
func TestMailIsOneMessage(t *testing.T) {
	r := mailReceiver(t)
	ch, err := newChannel(&Receiver{Kind: kindMail, Server: r.settings.Server, TLS: "none", From: r.settings.From,
		To: r.settings.To})
	if err != nil {
		t.Fatal(err)
	}
	a := Alert{ID: "F-1", Severity: Critical, Since: time.Unix(1e9, 0), Summary: "fwd1 is slow",
		Hurt: []Hurt{{Job: "1", User: "olga"}, {Job: "2", User: "x\r\nBcc: all"}}}
	for range 2 {
		if err := ch.send(context.Background(), &message{Site: "hpc1", ID: "m1", Alerts: []Alert{a}}); err != nil {
			t.Fatal(err)
		}
	}
	got := r.got()
	if n := strings.Count(got, "to olga@example.org"); n != 2 || strings.Count(got, "to ") != 4 {
		t.Errorf("recipients: %s", got)
	}
	_, rest, _ := strings.Cut(got, "id ")
	id, rest, _ := strings.Cut(rest, "\n")
	if !strings.Contains(rest, "id "+id) {
		t.Errorf("two Message-IDs: %s", got)
	}
}

// TestSecretsOfOthersAreRefused: a secret that every user can read is refused.
func TestSecretsOfOthersAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("sesame"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := newChannel(&Receiver{Kind: kindWebhook, URL: "http://h", SecretFile: path})
	if err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("got %v", err)
	}
}
