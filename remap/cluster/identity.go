package cluster

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// identity is what a daemon proves itself by: a certificate in its name, signed by an authority whose key every daemon
// makes of the secret that they share. The certificate's own key is made at the start and never leaves the process.
type identity struct {
	certificate tls.Certificate
	authority   *x509.CertPool
}

// The certificates are good at any time: daemons whose clocks differ must find each other, and a new secret ends them.
const (
	firstYear = 2000
	lastYear  = 2200
)

// newIdentity makes the identity of a daemon.
func newIdentity(secret, name string) (*identity, error) {
	seed, err := hkdf.Key(sha256.New, []byte(secret), nil, "fairway cluster authority", ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("cluster secret: %w", err)
	}
	authorityKey := ed25519.NewKeyFromSeed(seed)
	from := time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC)
	until := time.Date(lastYear, 1, 1, 0, 0, 0, 0, time.UTC)
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fairway cluster"},
		NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, err
	}
	if authority, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		DNSNames: []string{hostOf(name)}, NotBefore: from, NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if der, err = x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey); err != nil {
		return nil, err
	}
	id := &identity{certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		authority: x509.NewCertPool()}
	id.authority.AddCert(authority)
	return id, nil
}

// hostOf is a daemon's name as a certificate and TLS take one.
func hostOf(name string) string { return hex.EncodeToString([]byte(name)) + ".fairway" }

// server is TLS for a connection that another daemon made.
func (id *identity) server(c net.Conn) *tls.Conn {
	return tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{id.certificate},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: id.authority, SessionTicketsDisabled: true})
}

// client is TLS for a connection to the daemon of a name; no other one is spoken with.
func (id *identity) client(c net.Conn, name string) *tls.Conn {
	return tls.Client(c, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{id.certificate},
		RootCAs: id.authority, ServerName: hostOf(name)})
}

// nameOf is the daemon whose certificate the other end has proved.
func nameOf(c *tls.Conn) (string, error) {
	chains := c.ConnectionState().VerifiedChains
	if len(chains) == 0 {
		return "", errors.New("no certificate was proved")
	}
	leaf := chains[0][0]
	return leaf.Subject.CommonName, leaf.VerifyHostname(hostOf(leaf.Subject.CommonName))
}
