package storetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Cluster is two VictoriaMetrics behind a vmauth that has the addresses of a VictoriaMetrics cluster. A vmagent in the
// place of vminsert writes every sample to both, and vmauth spreads the reads over them, so that a reader that relies
// on one of them is found. A merge of halves, as vmselect makes it, is not tested.
type Cluster struct {
	// WriteURL, ReadURL and Token are what a prometheus.Config wants.
	WriteURL, ReadURL, Token string
	agent                    string
	servers                  [2]string
	marks                    atomic.Uint64
}

// VictoriaCluster starts a Cluster for one test.
func VictoriaCluster(t *testing.T) *Cluster {
	t.Helper()
	const token = "a-token-of-this-test"
	dir := t.TempDir()
	c := &Cluster{Token: token}
	var urls []string
	for i := range c.servers {
		name := fmt.Sprintf("vm%d", i)
		c.servers[i] = program(t, dir, name, "victoria-metrics", "-httpListenAddr", "/select/0/health",
			"-http.pathPrefix=/select/0", "-storageDataPath", filepath.Join(dir, name), "-retentionPeriod", "100y",
			"-memory.allowedBytes", "64MB", "-search.disableCache")
		urls = append(urls, "-remoteWrite.url", c.servers[i]+"/select/0/api/v1/write")
	}
	c.agent = program(t, dir, "vmagent", "vmagent", "-httpListenAddr", "/insert/0/prometheus/health", append([]string{
		"-http.pathPrefix=/insert/0/prometheus", "-remoteWrite.tmpDataPath", filepath.Join(dir, "queue"),
		"-remoteWrite.flushInterval=50ms", "-remoteWrite.queues=1", "-memory.allowedBytes", "64MB"}, urls...)...)
	conf := filepath.Join(dir, "vmauth.yml")
	text := fmt.Sprintf("users:\n- bearer_token: %q\n  url_map:\n  - src_paths: [\"/insert/0/prometheus/.*\"]\n"+
		"    url_prefix: %q\n  - src_paths: [\"/select/0/prometheus/.*\"]\n    url_prefix: [%q, %q]\n",
		token, c.agent, c.servers[0], c.servers[1])
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	auth := program(t, dir, "vmauth", "vmauth", "-httpListenAddr", "/health", "-auth.config", conf)
	c.WriteURL, c.ReadURL = auth+"/insert/0/prometheus/api/v1/write", auth+"/select/0/prometheus"
	return c
}

// Settle returns when both servers show every sample that was sent: a mark that was sent after them is there.
func (c *Cluster) Settle(ctx context.Context) error {
	mark := strconv.FormatUint(c.marks.Add(1), 10)
	line := fmt.Sprintf("mark,number=%s v=1 %d", mark, time.Now().UnixMilli())
	res, err := http.Post(c.agent+"/insert/0/prometheus/api/v2/write?precision=ms", "text/plain",
		strings.NewReader(line))
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		return fmt.Errorf("vmagent answers %s", res.Status)
	}
	find := url.Values{"nocache": {"1"}, "query": {fmt.Sprintf("mark_v{number=%q}", mark)}}.Encode()
	for _, s := range c.servers {
		for {
			if _, err := body(ctx, s+"/select/0/internal/force_flush"); err != nil {
				return err
			}
			text, err := body(ctx, s+"/select/0/prometheus/api/v1/query?"+find)
			if err != nil {
				return err
			}
			if strings.Contains(text, `"number"`) {
				break
			}
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("%s does not show mark %s: %w", s, mark, ctx.Err())
			}
		}
	}
	return nil
}

func body(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, res.Status)
	}
	return string(b), err
}
