package listen

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/fairwayd/certify"
	"fairway/cmd/fairwayd/config"
	"fairway/webui/api"
)

func TestCertificatesAreReadAnew(t *testing.T) {
	const lookEvery = time.Second // as config has it
	synctest.Test(t, func(t *testing.T) {
		now, dir := time.Now(), t.TempDir()
		certify := func(at time.Time) {
			a, _, err := certify.Open(dir, at)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.IssueServer([]string{"127.0.0.1"}, at); err != nil {
				t.Fatal(err)
			}
		}
		certify(now.AddDate(0, 0, -355)) // ends in ten days
		c := config.Listen{TLS: config.TLS{Certificate: filepath.Join(dir, "server.pem"),
			Key: filepath.Join(dir, "server.key"), ClientCA: filepath.Join(dir, "ca.pem")}}
		w, err := watchKeys(&c.TLS, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := checkEncryption(&c, w, now); got.Level != api.CheckWarned || got.Fix == "" {
			t.Errorf("a certificate that ends in ten days: %+v", got)
		}
		if got := checkEncryption(&c, w, now.AddDate(0, 0, 20)); got.Level != api.CheckFailed {
			t.Errorf("a certificate that has ended: %+v", got)
		}
		old, err := w.Get()
		if err != nil {
			t.Fatal(err)
		}
		certify(now)
		time.Sleep(2 * lookEvery)
		fresh, err := w.Get()
		if err != nil || bytes.Equal(old.certificate.Certificate[0], fresh.certificate.Certificate[0]) {
			t.Errorf("the new certificate was not read: %v", err)
		}
		if got := checkEncryption(&c, w, now); got.Level != api.CheckOK {
			t.Errorf("the new certificate: %+v", got)
		}
		if err := os.WriteFile(c.TLS.Key, []byte("no key"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * lookEvery)
		if kept, err := w.Get(); err != nil || !bytes.Equal(kept.certificate.Certificate[0],
			fresh.certificate.Certificate[0]) {
			t.Errorf("a spoiled key took the certificate out of use: %v", err)
		}
		if err := os.Chmod(c.TLS.Key, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readKeys(&c.TLS); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a key that others can read: %v", err)
		}
	})
}

// TestClearTextIsAWarning where it was asked for.
func TestClearTextIsAWarning(t *testing.T) {
	l := config.Listen{HTTP: ":7117", ClearText: true}
	if got := checkEncryption(&l, nil, time.Now()); got.Level != api.CheckWarned ||
		!strings.Contains(got.Text, ":7117") {
		t.Errorf("clear text: %+v", got)
	}
}
