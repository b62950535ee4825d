package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/cmd/fairwayd/config"
	"fairway/webui/access"
)

// testConf is a daemon's configuration below a new directory, on a port of the system's choice.
func testConf(t testing.TB) *config.Config {
	t.Helper()
	// A unix socket's path has little room, less than t.TempDir may use up.
	dir, err := os.MkdirTemp("", "fairwayd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := config.Default()
	c.StateDir = filepath.Join(dir, "state")
	c.Listen = config.Listen{Socket: filepath.Join(dir, "run", "s"), HTTP: "127.0.0.1:0"}
	return &c
}

func start(t *testing.T, c *config.Config) *daemon {
	t.Helper()
	d, err := openDaemon(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func health(t *testing.T, d *daemon) {
	t.Helper()
	sock := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.conf.Listen.Socket)
	}}}
	defer sock.CloseIdleConnections()
	for url, client := range map[string]*http.Client{"http://unix/healthz": &sock,
		"http://" + d.listeners.Addr(access.TCP) + "/healthz": {Transport: &http.Transport{DisableKeepAlives: true}}} {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", url, resp.StatusCode, b)
		}
	}
}

func TestDaemonStartsStopsAndStartsAgain(t *testing.T) {
	c := testConf(t)
	for range 3 {
		d := start(t, c)
		health(t, d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := net.Dial("unix", c.Listen.Socket); err == nil {
			t.Error("the socket still answers")
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, testConf(t), slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}

func TestStartErrorsAreClear(t *testing.T) {
	running := testConf(t)
	d := start(t, running)
	defer d.Close()
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, c *config.Config)
		words []string
	}{
		{"port in use", func(_ *testing.T, c *config.Config) { c.Listen.HTTP = d.listeners.Addr(access.TCP) },
			[]string{"listen.http", "in use", d.listeners.Addr(access.TCP)}},
		{"socket in use", func(_ *testing.T, c *config.Config) { c.Listen.Socket = running.Listen.Socket },
			[]string{"listen.socket", "another fairwayd"}},
		{"not a socket", func(t *testing.T, c *config.Config) {
			c.Listen.Socket = filepath.Join(t.TempDir(), "f")
			write(t, c.Listen.Socket, "precious")
		}, []string{"listen.socket", "not a socket"}},
		{"state in use", func(_ *testing.T, c *config.Config) { c.StateDir = running.StateDir },
			[]string{running.StateDir}},
		{"damaged journal", func(t *testing.T, c *config.Config) {
			write(t, filepath.Join(c.StateDir, "journal"), `{"crc":"00000000","hash":"","record":{}}`+"\n")
		}, []string{"journal", "record 1", "CRC"}},
		{"of a later version", func(t *testing.T, c *config.Config) {
			write(t, filepath.Join(c.StateDir, "format"), `{"format":99,"by":"7.1.0"}`)
		}, []string{"fairwayd 7.1.0"}},
		{"no such address", func(_ *testing.T, c *config.Config) { c.Listen.HTTP = "nowhere" },
			[]string{"listen.http", "nowhere"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := testConf(t)
			c.spoil(t, conf)
			got, err := openDaemon(conf, slog.New(slog.DiscardHandler))
			if err == nil {
				got.Close()
				t.Fatal("it starts")
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
	health(t, d)
}

func TestASocketLeftBehindIsTakenOver(t *testing.T) {
	c := testConf(t)
	if err := os.MkdirAll(filepath.Dir(c.Listen.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", c.Listen.Socket)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	d := start(t, c)
	health(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command runs fairwayd and returns what it prints.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// succeed runs a command of fairwayd that takes the settings from a file.
func succeed(t *testing.T, c *config.Config, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fairwayd.toml")
	write(t, file, fmt.Sprintf("state_dir = %q\n", c.StateDir))
	out, err := command(t, append([]string{"--config", file}, args...)...)
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
	return out
}
