package console_test

import (
	"encoding/json"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/cmd/lab/simsite"
	"fairway/console"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
	"fairway/webui/client"
)

// BenchmarkSecond is what one second costs the console: the message is decoded, taken and drawn.
func BenchmarkSecond(b *testing.B) {
	site := simsite.New(b, simsite.Options{Forwarders: 240, Compute: 960})
	for range 2 {
		site.Second()
	}
	c := client.Over(site.Dial, simsite.ViewerSecret)
	defer c.Close()
	o, err := c.Overview(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	message, err := json.Marshal(api.LiveMessage{Topic: "overview", Now: noon, Overview: &o})
	if err != nil {
		b.Fatal(err)
	}
	newModel := func() tea.Model {
		var m tea.Model = console.NewModel(b.Context(), c, screen.Address{Page: "overview"},
			chart.NewPalette(chart.Colors256, false), time.Now, func(string) {})
		m, _ = m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
		return m
	}
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(message)))
		for b.Loop() {
			var m api.LiveMessage
			if err := json.Unmarshal(message, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("take and draw", func(b *testing.B) {
		b.ReportAllocs()
		m := newModel()
		for b.Loop() {
			m, _ = m.Update(console.OverviewMsg(o, nil, noon))
			if len(m.View()) < 1000 {
				b.Fatal("nothing was drawn")
			}
		}
	})
}
