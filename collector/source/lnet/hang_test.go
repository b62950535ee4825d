package lnet

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/collector"
)

// hangs is a tree of which one file's reads do not end once closed is.
type hangs struct {
	fstest.MapFS
	name   string
	closed chan struct{} // from then on
	end    chan struct{}
}

func (h hangs) ReadFile(name string) ([]byte, error) {
	select {
	case <-h.closed:
		if strings.HasSuffix(name, h.name) {
			<-h.end
		}
	default:
	}
	return fs.ReadFile(h.MapFS, name)
}

// A file that alone the sampler reads and that hangs costs the gauges, and the status says so.
func TestAFileThatHangsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hangs{router("3 28 0 1 1 100 0 100 200 1000 0", peers), "buffers", make(chan struct{}),
			make(chan struct{})}
		s := New(h)
		defer s.Close()
		defer close(h.end)
		for second := range 4 {
			r := collector.Reading{Now: time.Now()}
			err := s.Read(t.Context(), &r)
			_, known := collector.SampleOf(r.Samples, collector.InFlight)
			_, counted := collector.SampleOf(r.Samples, collector.RoutedBytes)
			switch {
			case second < 2 && err != nil, second == 1 && !known:
				t.Errorf("second %d: %v, gauges known %v", second, err, known)
			case second == 3 && (err == nil || !strings.Contains(err.Error(), "buffers") || known || !counted):
				t.Errorf("while a file hangs: %v, gauges known %v, counters %v", err, known, counted)
			}
			if second == 1 {
				close(h.closed)
			}
			time.Sleep(time.Second)
		}
	})
}
