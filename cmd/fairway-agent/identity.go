package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"fairway/cmd/program"
	"fairway/collector/appendlog"
	"fairway/collector/stream"
	"fairway/collector/topology"
)

// readSecret reads a file that nobody else may read, without the space around its text.
func readSecret(setting, path string) (string, error) {
	text, err := appendlog.ReadPrivate(path)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", program.ErrSettings, setting, err)
	}
	if text == "" {
		return "", fmt.Errorf("%w: %s: %s is empty", program.ErrSettings, setting, path)
	}
	return text, nil
}

// token is the agent's own. Where its file is missing and there is a join token, the daemon gives it one.
func (c *Config) token(ctx context.Context, tlsConf *tls.Config) (string, error) {
	d := &c.Daemon
	if d.TokenFile == "" {
		return "", nil
	}
	if _, err := os.Stat(d.TokenFile); d.JoinFile == "" || !errors.Is(err, fs.ErrNotExist) {
		return readSecret("daemon.token_file", d.TokenFile)
	}
	join, err := readSecret("daemon.join_file", d.JoinFile)
	if err != nil {
		return "", err
	}
	token, err := enroll(ctx, d.addresses(), tlsConf, join, topology.NodeID(c.Node))
	if err != nil {
		return "", err
	}
	return token, os.WriteFile(d.TokenFile, []byte(token+"\n"), 0o600)
}

// tlsConfig is what wss is spoken by; nil is the system's.
func (d *Daemon) tlsConfig() (*tls.Config, error) {
	if d.CAFile == "" && d.Certificate == "" {
		return nil, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if d.CAFile != "" {
		pem, err := os.ReadFile(d.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%w: daemon.ca_file: %w", program.ErrSettings, err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: daemon.ca_file: %s holds no certificate", program.ErrSettings, d.CAFile)
		}
	}
	if d.Certificate != "" {
		if _, err := d.pair(); err != nil {
			return nil, err
		}
		// Read for each connection: a new certificate needs no restart.
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return d.pair() }
	}
	return t, nil
}

func (d *Daemon) pair() (*tls.Certificate, error) {
	key, err := readSecret("daemon.key", d.Key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(d.Certificate)
	if err != nil {
		return nil, fmt.Errorf("%w: daemon.certificate: %w", program.ErrSettings, err)
	}
	p, err := tls.X509KeyPair(pem, []byte(key))
	if err != nil {
		return nil, fmt.Errorf("%w: daemon.certificate: %w", program.ErrSettings, err)
	}
	return &p, nil
}

// validate refuses a way to the daemon that shows the token, and takes orders from whoever answers.
func (d *Daemon) validate() error {
	if (d.Certificate == "") != (d.Key == "") {
		return errors.New("daemon.certificate and daemon.key belong together")
	}
	for _, at := range d.addresses() {
		if err := d.validateURL(at); err != nil {
			return err
		}
	}
	return nil
}

// addresses are those of all daemons.
func (d *Daemon) addresses() []string {
	urls := strings.Split(d.URL, ",")
	for i := range urls {
		urls[i] = strings.TrimSpace(urls[i])
	}
	return urls
}

func (d *Daemon) validateURL(at string) error {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "ws" || d.ClearText {
		return nil // what cannot be parsed is refused where it is dialled
	}
	if topology.Loopback(u.Hostname()) {
		return nil
	}
	return fmt.Errorf(
		"daemon.url = %q: the token and the orders would cross the network in clear text; use wss://, or set "+
			"daemon.clear_text = true on a network that is trusted", at)
}

// enroll gets the node's token from the first daemon that answers.
func enroll(ctx context.Context, daemons []string, conf *tls.Config, join string, n topology.NodeID) (token string,
	err error) {
	for _, at := range daemons {
		var one error
		if token, one = stream.Enroll(ctx, at, conf, join, n); one == nil {
			return token, nil
		}
		err = errors.Join(err, one)
	}
	return "", err
}
