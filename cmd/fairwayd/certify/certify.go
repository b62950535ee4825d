// Package certify is a site's own certificate authority.
package certify

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
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/collector/appendlog"
)

const (
	caYears   = 10
	certYears = 1
	// backdated is how far the clock of who checks the daemon's certificate may be behind.
	backdated = time.Hour
)

// Authority is a site's own certificate authority, in a directory: ca.pem and ca.key.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Open reads the authority of a directory, or makes one; made says so.
func Open(dir string, now time.Time) (a *Authority, made bool, err error) {
	a = &Authority{dir: dir}
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
func (a *Authority) issue(name string, t *x509.Certificate, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if t.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return err
	}
	if t.NotBefore = now.Add(-backdated); slices.Contains(t.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		t.NotBefore = now // the daemon checks it, and would take one made after a revocation for one of before
	}
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
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return errors.Join(appendlog.ReplaceFile(path+".key", encode("PRIVATE KEY", private), 0o600),
		appendlog.ReplaceFile(path+".pem", encode("CERTIFICATE", der), 0o644))
}

// Command is fairwayd certificate.
func Command() *cobra.Command {
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
	a, made, err := Open(dir, now)
	if err != nil {
		return err
	}
	out := c.OutOrStdout()
	if made {
		fmt.Fprintf(out, "made the authority %s, until %s\n", filepath.Join(dir, "ca.pem"),
			a.cert.NotAfter.UTC().Format("2006-01-02"))
	}
	if !node {
		until, err := a.IssueServer(names, now)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "made %s for %s, until %s\n", filepath.Join(dir, "server.pem"), strings.Join(names, " "),
			until.UTC().Format("2006-01-02"))
		return nil
	}
	for _, n := range names {
		until, err := a.IssueNode(n, now)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "made %s, until %s\n", filepath.Join(dir, n+".pem"), until.UTC().Format("2006-01-02"))
	}
	return nil
}

// IssueServer writes server.pem and server.key for the daemon under its names and addresses.
func (a *Authority) IssueServer(names []string, now time.Time) (until time.Time, err error) {
	return a.issueFor("server", names, x509.ExtKeyUsageServerAuth, now)
}

// IssueNode writes NODE.pem and NODE.key for a node's agent.
func (a *Authority) IssueNode(node string, now time.Time) (until time.Time, err error) {
	return a.issueFor(node, []string{node}, x509.ExtKeyUsageClientAuth, now)
}

func (a *Authority) issueFor(file string, names []string, use x509.ExtKeyUsage, now time.Time) (time.Time, error) {
	t := &x509.Certificate{Subject: pkix.Name{CommonName: names[0]}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{use}, NotAfter: now.AddDate(certYears, 0, 0)}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	return t.NotAfter, a.issue(file, t, now)
}
