package victoria_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fairway/tsdb"
	"fairway/tsdb/storetest"
	"fairway/tsdb/victoria"
)

// server starts a real VictoriaMetrics on a free port and returns its address.
func server(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("victoria-metrics")
	if err != nil {
		t.Skipf("no VictoriaMetrics here (apt-get install victoria-metrics): %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	logs, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	cmd := exec.Command(program, "-storageDataPath", filepath.Join(dir, "data"), "-httpListenAddr", addr,
		"-retentionPeriod", "100y", "-memory.allowedBytes", "64MB", "-search.disableCache")
	cmd.Stdout, cmd.Stderr = logs, logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	url := "http://" + addr
	for range 200 {
		res, err := http.Get(url + "/health")
		if err == nil {
			res.Body.Close()
			return url
		}
		time.Sleep(20 * time.Millisecond)
	}
	text, _ := os.ReadFile(logs.Name())
	t.Fatalf("VictoriaMetrics does not answer: %s", text)
	return ""
}

// settled waits, before each read, until the server shows what was appended.
type settled struct {
	*victoria.Store
	url string
}

func (s settled) settle(ctx context.Context) error {
	if err := s.Flush(ctx); err != nil {
		return err
	}
	res, err := http.Get(s.url + "/internal/force_flush")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("force_flush: %s", res.Status)
	}
	return nil
}

func (s settled) Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	return s.Store.Select(ctx, q)
}

func (s settled) Occupancy(ctx context.Context, q tsdb.OccupancyQuery) ([]tsdb.NodeOccupancy, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	return s.Store.Occupancy(ctx, q)
}

func (s settled) Nodes(ctx context.Context) ([]tsdb.NodeInfo, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	return s.Store.Nodes(ctx)
}

// significantDigits is what VictoriaMetrics keeps of a fraction.
const significantDigits = 12

func TestContract(t *testing.T) {
	storetest.RunDigits(t, func(t *testing.T) func() tsdb.Store {
		url, spool := server(t), t.TempDir()
		return func() tsdb.Store {
			s, err := victoria.Open(victoria.Config{WriteURL: url, ReadURL: url, SpoolDir: spool})
			if err != nil {
				t.Fatal(err)
			}
			return settled{s, url}
		}
	}, significantDigits)
}
