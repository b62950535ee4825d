package daemontest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/webui/access"
)

// ownCertificate is a certificate of this host that is its own authority, and its key, as files, and a client that
// trusts it.
func ownCertificate(t *testing.T) (certificate, key string, trusting *http.Client) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	write(t, certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	all := x509.NewCertPool()
	own, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	all.AddCert(own)
	trusting = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: all},
		DisableKeepAlives: true}}
	return certificate, key, trusting
}

// TestAGathererBeforeSeveralDaemonsOverTLS: three daemons, a gatherer of three nodes with tokens of their own, all by
// TLS. The daemon that leads is killed, the gatherer is frozen, the daemon comes back: each daemon has every second of
// every node once.
func TestAGathererBeforeSeveralDaemonsOverTLS(t *testing.T) {
	t.Parallel() // it mostly waits
	certificate, key, trusting := ownCertificate(t)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, nodeSecret)
	three := newSite(t, fmt.Sprintf("[access]\nanonymous = \"viewer\"\n[access.enrolment]\nsecret_file = %q\n"+
		"[listen.tls]\ncertificate = %q\nkey = %q\n", secret, certificate, key), nil)
	three.start()
	first := three.leader()
	urls := ""
	for i, d := range three.daemons {
		urls += fmt.Sprintf("%s\"wss://%s\"", map[bool]string{true: ", "}[i > 0], d.addr)
	}
	daemons := fmt.Sprintf("urls = [%s]\nca_file = %q", urls, certificate)
	dir := t.TempDir()
	var sites []*gatheredSite
	for _, d := range three.daemons {
		sites = append(sites, &gatheredSite{t: t, d: d, dir: dir,
			e: access.Enrolment{Secrets: func() ([]string, error) { return []string{nodeSecret}, nil }}})
	}
	at := freePort(t)
	gatherer := sites[0].agentOf("rack1", daemons, fmt.Sprintf("[gather]\nlisten = %q\ncertificate = %q\nkey = %q", at,
		certificate, key))
	for _, d := range three.daemons {
		takesNodes(t, trusting, "https://"+at+stream.GatherPath+"?daemon="+url.QueryEscape("wss://"+d.addr))
	}
	nodes := []topology.NodeID{"cn1", "cn2", "cn3"}
	begun := time.Now()
	for _, n := range nodes {
		sites[0].agentOf(n, daemons, "", fmt.Sprintf("\"wss://%s\"", at))
	}
	for _, n := range nodes {
		for _, s := range sites {
			s.through(n, "rack1")
		}
	}
	first.kill()
	if err := gatherer.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		for _, s := range sites {
			if s.d != first {
				s.through(n, "")
			}
		}
	}
	if err := gatherer.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	first.start()
	back := time.Now().Add(2 * time.Second)
	for _, n := range nodes {
		for _, s := range sites {
			s.whole(n, begun, back)
		}
	}
}
