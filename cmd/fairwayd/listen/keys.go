package listen

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/collector/appendlog"
	"fairway/webui/api"
)

// keys is what the files of TLS hold.
type keys struct {
	certificate tls.Certificate
	clients     *x509.CertPool // nil: client certificates are not asked for
}

func readKeys(t *config.TLS) (k keys, err error) {
	key, err := appendlog.ReadPrivate(t.Key)
	if err != nil {
		return k, fmt.Errorf("listen.tls.key: %w", err)
	}
	chain, err := os.ReadFile(t.Certificate)
	if err != nil {
		return k, fmt.Errorf("listen.tls.certificate: %w", err)
	}
	if k.certificate, err = tls.X509KeyPair(chain, []byte(key)); err != nil {
		return k, fmt.Errorf("listen.tls.certificate: %s: %w", t.Certificate, err)
	}
	if t.ClientCA == "" {
		return k, nil
	}
	ca, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return k, fmt.Errorf("listen.tls.client_ca: %w", err)
	}
	k.clients = x509.NewCertPool()
	if !k.clients.AppendCertsFromPEM(ca) {
		return k, fmt.Errorf("listen.tls.client_ca: %s holds no certificate", t.ClientCA)
	}
	return k, nil
}

// watchKeys reads the files now, and anew when they change; nil without a certificate.
func watchKeys(t *config.TLS, log *slog.Logger) (*config.Watched[keys], error) {
	if t.Certificate == "" {
		return nil, nil
	}
	w := config.Watch(log, func() (keys, error) { return readKeys(t) }, t.Certificate, t.Key, t.ClientCA)
	_, err := w.Get()
	return w, err
}

// serverTLS is what a listener speaks by the newest reading of the files.
func serverTLS(w *config.Watched[keys], protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			k, err := w.Get()
			if err != nil {
				return nil, err
			}
			c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols,
				Certificates: []tls.Certificate{k.certificate}}
			if k.clients != nil {
				c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, k.clients
			}
			return c, nil
		}}
}

// endsSoon is how long before its end a certificate is warned of.
const endsSoon = 30 * 24 * time.Hour

// checkEncryption says what is in clear text and when the certificate ends.
func checkEncryption(l *config.Listen, w *config.Watched[keys], now time.Time) api.Check {
	c := api.Check{Name: "encryption", Level: api.CheckOK}
	if w == nil {
		c.Text = "this host alone is listened on"
		if addrs := l.Clear(); len(addrs) > 0 {
			return c.Is(api.CheckWarned, strings.Join(addrs, " and ")+" is in clear text beyond this host",
				"set [listen.tls] ('fairwayd certificate' makes certificates), or keep TLS in the proxy in front of it")
		}
		return c
	}
	k, err := w.Get()
	if err == nil {
		k.certificate.Leaf, err = x509.ParseCertificate(k.certificate.Certificate[0])
	}
	if err != nil {
		return c.Is(api.CheckFailed, err.Error(), "")
	}
	end := k.certificate.Leaf.NotAfter
	c.Text = fmt.Sprintf("TLS; the certificate (%s) ends %s", l.TLS.Certificate, end.UTC().Format("2006-01-02"))
	if k.clients == nil {
		c.Text += "; agents are known by tokens"
	} else {
		c.Text += "; agents are known by certificates or tokens"
	}
	switch {
	case now.After(end):
		c.Level = api.CheckFailed
	case now.Add(endsSoon).After(end):
		c.Level = api.CheckWarned
	default:
		return c
	}
	c.Fix = "put a new certificate and key in place; they are read without a restart"
	return c
}
