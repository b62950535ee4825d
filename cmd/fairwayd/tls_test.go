package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/cmd/fairwayd/certify"
	"fairway/cmd/fairwayd/config"
	"fairway/cmd/fairwayd/enrol"
	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/access"
)

// certificates makes an authority, the daemon's certificate and those of nodes.
func certificates(t testing.TB, nodes ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	a, _, err := certify.Open(dir, time.Now())
	if err == nil {
		_, err = a.IssueServer([]string{"127.0.0.1", "localhost"}, time.Now())
	}
	for _, n := range nodes {
		if err == nil {
			_, err = a.IssueNode(n, time.Now())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// trusting is what a client speaks that trusts a directory's authority, with a node's certificate if it is named.
func trusting(t testing.TB, dir, node string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	conf := &tls.Config{RootCAs: x509.NewCertPool()}
	conf.RootCAs.AppendCertsFromPEM(pem)
	if node != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, node+".pem"), filepath.Join(dir, node+".key"))
		if err != nil {
			t.Fatal(err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf
}

func encrypted(t testing.TB, dir string) *config.Config {
	c := testConf(t)
	c.Listen.Agents = "127.0.0.1:0"
	c.Listen.TLS = config.TLS{Certificate: filepath.Join(dir, "server.pem"), Key: filepath.Join(dir, "server.key"),
		ClientCA: filepath.Join(dir, "ca.pem")}
	return c
}

// bring sends n seconds of a node and waits until the daemon has them; an error says why it does not take them.
func bring(t testing.TB, url, token string, conf *tls.Config, n topology.NodeID, seconds int) error {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	spool, err := stream.OpenSpool(filepath.Join(t.TempDir(), "spool"), 64<<20, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	client := &stream.Client{URL: url, Token: token, TLS: conf, Node: n, Role: topology.Compute, Spool: spool,
		Log: quiet}
	if err := client.Probe(t.Context()); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _ = client.Run(ctx); close(done) }()
	defer func() { stop(); <-done }()
	begin := time.Now().Add(-time.Duration(seconds) * time.Second)
	var frames []collector.Frame
	for i := range seconds {
		frames = append(frames, collector.Frame{Node: n, Role: topology.Compute,
			TimeMillis: begin.Add(time.Duration(i) * time.Second).UnixMilli(),
			Samples:    []collector.Sample{{Metric: collector.WriteBytes, Value: float64(i)}}})
	}
	for message := range slices.Chunk(frames, 500) {
		if err := spool.Append(message); err != nil {
			t.Fatal(err)
		}
	}
	within, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return client.Drain(within)
}

func TestEverythingOverTLS(t *testing.T) {
	dir := certificates(t, "cn5")
	c := encrypted(t, dir)
	c.Access.Enrolment.SecretFile = filepath.Join(c.StateDir, "secret")
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := enrol.HaveSecret(c.Access.Enrolment.SecretFile, false); err != nil {
		t.Fatal(err)
	}
	d := start(t, c)
	defer d.Close()
	url := "wss://" + d.listeners.Addr(access.IngestPort)

	if err := bring(t, url, "", trusting(t, dir, "cn5"), "cn5", 5); err != nil {
		t.Errorf("cn5 by its certificate: %v", err)
	}
	if err := bring(t, url, "", trusting(t, dir, ""), "cn5", 1); err == nil {
		t.Error("an agent without certificate and token was taken")
	}
	other := certificates(t, "cn5")
	forged := trusting(t, dir, "")
	forged.Certificates = trusting(t, other, "cn5").Certificates
	if err := bring(t, url, "", forged, "cn5", 1); err == nil {
		t.Error("a certificate of another authority was taken")
	}
	if err := bring(t, url, "", trusting(t, other, ""), "cn5", 1); err == nil {
		t.Error("the agent took a daemon of another authority")
	}
	join, err := enrol.Tokens(c.Access.Enrolment.SecretFile, nil, nil).JoinToken("cn*", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	token, err := stream.Enroll(t.Context(), url, trusting(t, dir, ""), join, "cn6")
	if err != nil {
		t.Fatal(err)
	}
	if err := bring(t, url, token, trusting(t, dir, ""), "cn6", 2); err != nil {
		t.Errorf("cn6 by the token that it joined with: %v", err)
	}
	if _, err := stream.Enroll(t.Context(), url, trusting(t, dir, ""), join, "fwd1"); err == nil {
		t.Error("a join token of compute nodes enrolled a forwarder")
	}
	if err := enrol.Revoke(t.Context(), c.Listen.Socket, []string{"cn5", "cn6"}); err != nil {
		t.Fatal(err)
	}
	if err := bring(t, url, "", trusting(t, dir, "cn5"), "cn5", 1); err == nil {
		t.Error("a revoked certificate was taken")
	}
	authority, _, err := certify.Open(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.New("not tried")
	for begun := time.Now(); err != nil && time.Since(begun) < 20*time.Second; { // one of the same second is refused
		if _, err := authority.IssueNode("cn5", time.Now()); err != nil {
			t.Fatal(err)
		}
		err = bring(t, url, "", trusting(t, dir, "cn5"), "cn5", 1)
	}
	if err != nil {
		t.Errorf("cn5 by a certificate made after the revocation: %v", err)
	}
	if err := bring(t, url, token, trusting(t, dir, ""), "cn6", 1); err == nil {
		t.Error("a revoked token was taken")
	}

	if res, err := http.Get("http://" + d.listeners.Addr(access.TCP) + "/healthz"); err == nil &&
		res.StatusCode == http.StatusOK {
		t.Error("the listener answers in clear text")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(t, dir, ""), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	res, err := client.Get("https://" + d.listeners.Addr(access.TCP) + "/healthz")
	if err != nil || res.ProtoMajor != 2 || res.StatusCode != http.StatusOK {
		t.Fatalf("a browser gets %+v, %v", res, err)
	}
	res.Body.Close()
}

// TestSessionCookieIsThisServersAlone: over TLS no other port and no other name gets or sets the session's cookie.
func TestSessionCookieIsThisServersAlone(t *testing.T) {
	dir := certificates(t)
	c := encrypted(t, dir)
	c.Access.Accounts = []access.Account{{Name: "olga", Role: remap.Operator,
		Hash: access.HashPassword("a long password")}}
	d := start(t, c)
	defer d.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(t, dir, "")}}
	defer client.CloseIdleConnections()
	at := "https://" + d.listeners.Addr(access.TCP)
	q, err := http.NewRequest(http.MethodPost, at+"/api/v1/session",
		strings.NewReader(`{"name":"olga","password":"a long password"}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Origin", at)
	res, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	all := slices.DeleteFunc(res.Cookies(), func(k *http.Cookie) bool { return !strings.Contains(k.Name, "session") })
	if len(all) != 1 || all[0].Name != access.SecureCookieName || !all[0].Secure || !all[0].HttpOnly ||
		all[0].Path != "/" || all[0].Domain != "" {
		t.Errorf("status %d, cookies %+v", res.StatusCode, all)
	}
}

// BenchmarkIngest compares the processor time of a second of a node that arrives in clear text and over TLS, by turns.
func BenchmarkIngest(b *testing.B) {
	dir := certificates(b)
	var used [2]time.Duration
	const seconds = 20000
	for range b.N {
		for secure := range 2 {
			c := testConf(b)
			if secure == 1 {
				c = encrypted(b, dir)
			} else {
				c.Listen.Agents = "127.0.0.1:0"
			}
			c.Access.Tokens = []config.Token{{Name: "a", Role: access.RoleAgent, SHA256: access.HashToken("secret")}}
			d, err := openDaemon(c, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			url := []string{"ws://", "wss://"}[secure] + d.listeners.Addr(access.IngestPort)
			before := processorTime(b)
			if err := bring(b, url, "secret", trusting(b, dir, ""), "cn1", seconds); err != nil {
				b.Fatal(err)
			}
			used[secure] += processorTime(b) - before
			if err := d.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(used[0].Microseconds())/float64(b.N*seconds), "clear-us/frame")
	b.ReportMetric(float64(used[1].Microseconds())/float64(b.N*seconds), "tls-us/frame")
	b.ReportMetric(float64(used[1])/float64(used[0]), "ratio")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
