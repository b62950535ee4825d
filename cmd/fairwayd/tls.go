package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/webui/api"
)

// TLS says how listen.http and listen.agents are encrypted. The files are read anew when they change.
type TLS struct {
	Certificate string `toml:"certificate" help:"Certificates (PEM), the server's first; empty: clear text."`
	Key         string `toml:"key" help:"File (0600) of the certificate's key (PEM)."`
	ClientCA    string `toml:"client_ca" help:"Certificates (PEM) that sign the nodes' own; empty: agents have tokens."`
}

// keys is what the files of TLS hold.
type keys struct {
	certificate tls.Certificate
	clients     *x509.CertPool // nil: client certificates are not asked for
}

func (t *TLS) validate() error {
	if (t.Certificate == "") != (t.Key == "") {
		return errors.New("listen.tls: certificate and key belong together")
	}
	if t.ClientCA != "" && t.Certificate == "" {
		return errors.New("listen.tls.client_ca needs a certificate")
	}
	return nil
}

func (t *TLS) read() (k keys, err error) {
	key, err := readPrivate(t.Key)
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

// watch reads the files now, and anew when they change; nil without a certificate.
func (t *TLS) watch(log *slog.Logger) (*watched[keys], error) {
	if t.Certificate == "" {
		return nil, nil
	}
	w := &watched[keys]{paths: []string{t.Certificate, t.Key, t.ClientCA}, read: t.read, log: log}
	_, err := w.get()
	return w, err
}

// serverTLS is what a listener speaks by the newest reading of the files.
func serverTLS(w *watched[keys], protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			k, err := w.get()
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

// local says whether an address is of this host alone.
func local(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// clear lists the addresses beyond this host that are not encrypted.
func (l *Listen) clear() (addrs []string) {
	for _, a := range []string{l.HTTP, l.Agents} {
		if a != "" && l.TLS.Certificate == "" && !local(a) {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

func (l *Listen) validate() error {
	if err := l.TLS.validate(); err != nil {
		return err
	}
	if c := l.clear(); len(c) > 0 && !l.ClearText {
		return fmt.Errorf(
			"listen: %s can be reached beyond this host, where tokens and passwords would cross the network in "+
				"clear text; set [listen.tls], or listen.clear_text = true (behind a TLS proxy, or on a network that "+
				"is trusted)",
			strings.Join(c, " and "))
	}
	return nil
}

// endsSoon is how long before its end a certificate is warned of.
const endsSoon = 30 * 24 * time.Hour

// encryptionCheck says what is in clear text and when the certificate ends.
func encryptionCheck(l *Listen, w *watched[keys], now time.Time) api.Check {
	c := api.Check{Name: "encryption", Level: api.CheckOK}
	if w == nil {
		c.Text = "this host alone is listened on"
		if addrs := l.clear(); len(addrs) > 0 {
			c.Level, c.Text = api.CheckWarned, strings.Join(addrs, " and ")+" is in clear text beyond this host"
			c.Fix = "set [listen.tls] ('fairwayd certificate' makes certificates), or keep TLS in the proxy in front " +
				"of it"
		}
		return c
	}
	k, err := w.get()
	if err == nil {
		k.certificate.Leaf, err = x509.ParseCertificate(k.certificate.Certificate[0])
	}
	if err != nil {
		c.Level, c.Text = api.CheckFailed, err.Error()
		return c
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

const (
	caYears   = 10
	certYears = 1
	// backdated is how far a client's clock may be behind.
	backdated = time.Hour
)

// authority is a site's own certificate authority, in a directory: ca.pem and ca.key.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// openAuthority reads the authority of a directory, or makes one; made says so.
func openAuthority(dir string, now time.Time) (a *authority, made bool, err error) {
	a = &authority{dir: dir}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key"))
	switch {
	case err == nil:
		key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
		if !ok {
			return nil, false, fmt.Errorf("%s: want an ECDSA key", filepath.Join(dir, "ca.key"))
		}
		a.key = key
		a.cert, err = x509.ParseCertificate(pair.Certificate[0])
		return a, false, err
	case !errors.Is(err, fs.ErrNotExist):
		return nil, false, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, false, err
	}
	t := &x509.Certificate{Subject: pkix.Name{CommonName: "fairway authority"}, IsCA: true, BasicConstraintsValid: true,
		MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		NotAfter: now.AddDate(caYears, 0, 0)}
	err = a.issue("ca", t, now)
	return a, true, err
}

// issue writes NAME.pem and NAME.key; files that are there are replaced. The first one is the authority itself.
func (a *authority) issue(name string, t *x509.Certificate, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if t.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return err
	}
	t.NotBefore = now.Add(-backdated)
	if a.cert == nil {
		a.cert, a.key = t, key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	if t.IsCA {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			return err
		}
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	path := filepath.Join(a.dir, name)
	return errors.Join(
		replacePEM(path+".key", "PRIVATE KEY", private, 0o600), replacePEM(path+".pem", "CERTIFICATE", der, 0o644))
}

// replacePEM writes a file that nobody sees half.
func replacePEM(path, kind string, der []byte, mode fs.FileMode) error {
	part := path + ".part"
	defer os.Remove(part)
	if err := os.WriteFile(part, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return err
	}
	return os.Rename(part, path)
}

func newCertificate() *cobra.Command {
	var dir string
	var node bool
	c := &cobra.Command{
		Use: "certificate NAME...",
		Short: "Make a certificate for the daemon's names, or one for each node, signed by an authority of the " +
			"site's own",
		Long: "Without --node, makes DIR/server.pem and DIR/server.key for the daemon under the names and addresses " +
			"given " +
			"([listen.tls] certificate, key). With --node, makes DIR/NODE.pem and DIR/NODE.key for each node's agent " +
			"([daemon] certificate, key). The authority, DIR/ca.pem and DIR/ca.key, is made the first time; " +
			"agents and browsers trust ca.pem ([daemon] ca_file), and the daemon too ([listen.tls] client_ca). " +
			"Keep ca.key off the daemon's host.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			return certify(c, dir, names, node, time.Now())
		},
	}
	c.Flags().StringVar(&dir, "dir", "/etc/fairway/tls", "directory of the authority and the certificates")
	c.Flags().BoolVar(&node, "node", false, "make a client certificate for each of these nodes")
	return c
}

func certify(c *cobra.Command, dir string, names []string, node bool, now time.Time) error {
	for _, n := range names {
		if n != filepath.Base(n) || n == "ca" || n == "server" || n == "." || n == ".." {
			return program.BadUsage(fmt.Errorf("name %q cannot be a file's", n))
		}
	}
	a, made, err := openAuthority(dir, now)
	if err != nil {
		return err
	}
	if made {
		fmt.Fprintf(c.OutOrStdout(), "made the authority %s, until %s\n", filepath.Join(dir, "ca.pem"),
			a.cert.NotAfter.UTC().Format("2006-01-02"))
	}
	if !node {
		t := certificateFor(names, x509.ExtKeyUsageServerAuth, now)
		if err := a.issue("server", t, now); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "made %s for %s, until %s\n", filepath.Join(dir, "server.pem"),
			strings.Join(names, " "), t.NotAfter.UTC().Format("2006-01-02"))
		return nil
	}
	for _, n := range names {
		t := certificateFor([]string{n}, x509.ExtKeyUsageClientAuth, now)
		if err := a.issue(n, t, now); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "made %s, until %s\n", filepath.Join(dir, n+".pem"),
			t.NotAfter.UTC().Format("2006-01-02"))
	}
	return nil
}

func certificateFor(names []string, use x509.ExtKeyUsage, now time.Time) *x509.Certificate {
	t := &x509.Certificate{Subject: pkix.Name{CommonName: names[0]}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{use}, NotAfter: now.AddDate(certYears, 0, 0)}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	return t
}
