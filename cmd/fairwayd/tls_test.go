package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/access"
	"fairway/webui/api"
)

// certificates makes an authority, the daemon's certificate and those of nodes.
func certificates(t testing.TB, now time.Time, nodes ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	c := newCertificate()
	c.SetOut(io.Discard)
	if err := certify(c, dir, []string{"127.0.0.1", "localhost"}, false, now); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if err := certify(c, dir, []string{n}, true, now); err != nil {
			t.Fatal(err)
		}
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

func encrypted(t testing.TB, dir string) *Config {
	c := testConf(t)
	c.Listen.Agents = "127.0.0.1:0"
	c.Listen.TLS = TLS{Certificate: filepath.Join(dir, "server.pem"), Key: filepath.Join(dir, "server.key"),
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
	dir := certificates(t, time.Now(), "cn5")
	c := encrypted(t, dir)
	c.Access.Enrolment.SecretFile = filepath.Join(c.StateDir, "secret")
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := c.haveSecret(false); err != nil {
		t.Fatal(err)
	}
	d := start(t, c)
	defer d.Close()
	url := "wss://" + d.addr(access.IngestPort)

	if err := bring(t, url, "", trusting(t, dir, "cn5"), "cn5", 5); err != nil {
		t.Errorf("cn5 by its certificate: %v", err)
	}
	if err := bring(t, url, "", trusting(t, dir, ""), "cn5", 1); err == nil {
		t.Error("an agent without certificate and token was taken")
	}
	other := certificates(t, time.Now(), "cn5")
	forged := trusting(t, dir, "")
	forged.Certificates = trusting(t, other, "cn5").Certificates
	if err := bring(t, url, "", forged, "cn5", 1); err == nil {
		t.Error("a certificate of another authority was taken")
	}
	if err := bring(t, url, "", trusting(t, other, ""), "cn5", 1); err == nil {
		t.Error("the agent took a daemon of another authority")
	}
	join, err := d.conf.enrolment(nil, nil).JoinToken("cn*", time.Now().Add(time.Hour))
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
	if err := d.conf.revoke(t.Context(), []string{"cn6"}); err != nil {
		t.Fatal(err)
	}
	if err := bring(t, url, token, trusting(t, dir, ""), "cn6", 1); err == nil {
		t.Error("a revoked token was taken")
	}

	if res, err := http.Get("http://" + d.addr(access.TCP) + "/healthz"); err == nil &&
		res.StatusCode == http.StatusOK {
		t.Error("the listener answers in clear text")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(t, dir, ""), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	res, err := client.Get("https://" + d.addr(access.TCP) + "/healthz")
	if err != nil || res.ProtoMajor != 2 || res.StatusCode != http.StatusOK {
		t.Fatalf("a browser gets %+v, %v", res, err)
	}
	res.Body.Close()
}

// TestSessionCookieIsThisServersAlone: over TLS no other port and no other name gets or sets the session's cookie.
func TestSessionCookieIsThisServersAlone(t *testing.T) {
	dir := certificates(t, time.Now())
	c := encrypted(t, dir)
	c.Access.Accounts = []Account{{Name: "olga", Role: remap.Operator, Hash: access.HashPassword("a long password")}}
	d := start(t, c)
	defer d.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(t, dir, "")}}
	defer client.CloseIdleConnections()
	at := "https://" + d.addr(access.TCP)
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

func TestCertificatesAreReadAnew(t *testing.T) {
	now := time.Now()
	dir := certificates(t, now.AddDate(0, 0, -355)) // ends in ten days
	c := encrypted(t, dir)
	w, err := c.Listen.TLS.watch(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got := encryptionCheck(&c.Listen, w, now); got.Level != api.CheckWarned || got.Fix == "" {
		t.Errorf("a certificate that ends in ten days: %+v", got)
	}
	if got := encryptionCheck(&c.Listen, w, now.AddDate(0, 0, 20)); got.Level != api.CheckFailed {
		t.Errorf("a certificate that has ended: %+v", got)
	}
	old, err := w.get()
	if err != nil {
		t.Fatal(err)
	}
	if err := certify(newCertificate(), dir, []string{"127.0.0.1"}, false, now); err != nil {
		t.Fatal(err)
	}
	w.looked = time.Time{}
	fresh, err := w.get()
	if err != nil || bytes.Equal(old.certificate.Certificate[0], fresh.certificate.Certificate[0]) {
		t.Errorf("the new certificate was not read: %v", err)
	}
	if got := encryptionCheck(&c.Listen, w, now); got.Level != api.CheckOK {
		t.Errorf("the new certificate: %+v", got)
	}
	if err := os.WriteFile(c.Listen.TLS.Key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.looked = time.Time{}
	if kept, err := w.get(); err != nil || !bytes.Equal(kept.certificate.Certificate[0],
		fresh.certificate.Certificate[0]) {
		t.Errorf("a spoiled key took the certificate out of use: %v", err)
	}
	if err := os.Chmod(c.Listen.TLS.Key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Listen.TLS.read(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
}

func TestClearTextBeyondThisHost(t *testing.T) {
	for _, c := range []struct {
		listen Listen
		ok     bool
	}{
		{Listen{HTTP: "127.0.0.1:7117"}, true}, {Listen{HTTP: "[::1]:7117"}, true}, {Listen{HTTP: "localhost:1"}, true},
		{Listen{HTTP: "0.0.0.0:7117"}, false}, {Listen{HTTP: ":7117"}, false}, {Listen{Agents: "10.0.0.1:7118"}, false},
		{Listen{HTTP: ":7117", ClearText: true}, true},
		{Listen{HTTP: ":7117", TLS: TLS{Certificate: "c", Key: "k"}}, true},
		{Listen{HTTP: ":7117", TLS: TLS{Certificate: "c"}}, false}, {Listen{TLS: TLS{ClientCA: "c"}}, false},
	} {
		if err := c.listen.validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.listen, err)
		}
	}
	l := Listen{HTTP: ":7117", ClearText: true}
	if got := encryptionCheck(&l, nil, time.Now()); got.Level != api.CheckWarned ||
		!strings.Contains(got.Text, ":7117") {
		t.Errorf("clear text: %+v", got)
	}
}

// BenchmarkIngest compares the processor time of a second of a node that arrives in clear text and over TLS, by turns.
func BenchmarkIngest(b *testing.B) {
	dir := certificates(b, time.Now())
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
			c.Access.Tokens = []Token{{Name: "a", Role: access.RoleAgent, SHA256: access.HashToken("secret")}}
			d, err := openDaemon(c, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			url := []string{"ws://", "wss://"}[secure] + d.addr(access.IngestPort)
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
