package alert

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"fairway/collector/topology"
)

// mailer sends one mail for all alerts of a message. Its Message-ID is the message's, so that a mail which a crash
// made the daemon send twice is shown once.
type mailer struct {
	r        *Receiver
	password string
}

func (m *mailer) send(ctx context.Context, what *message) error {
	to := m.recipients(what.Alerts)
	if len(to) == 0 {
		return errNoAddress
	}
	host, portText, err := net.SplitHostPort(m.r.Server)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return fmt.Errorf("server = %q: %w", m.r.Server, err)
	}
	msg := mail.NewMsg()
	if err := msg.From(m.r.From); err != nil {
		return err
	}
	if err := msg.To(to...); err != nil {
		return err
	}
	msg.Subject(subject(what))
	msg.SetMessageIDWithValue(m.id(what))
	msg.SetDate()
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(mail.TypeTextPlain, body(what.Alerts))
	options := []mail.Option{mail.WithPort(port), mail.WithTimeout(sendTimeout)}
	switch m.r.TLS {
	case "tls":
		options = append(options, mail.WithSSL())
	case "none":
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if m.r.User != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(m.r.User),
			mail.WithPassword(m.password))
	}
	c, err := mail.NewClient(host, options...)
	if err != nil {
		return err
	}
	return c.DialAndSendWithContext(ctx, msg)
}

// recipients are the addresses, each once, with the hurt jobs' users put in.
func (m *mailer) recipients(batch []Alert) (out []string) {
	add := func(addr string) {
		if !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	for _, to := range m.r.To {
		if !strings.Contains(to, userWord) {
			add(to)
			continue
		}
		for i := range batch {
			for _, h := range batch[i].Hurt {
				if h.User != "" && receiverName.MatchString(h.User) {
					add(strings.ReplaceAll(to, userWord, h.User))
				}
			}
		}
	}
	return out
}

func subject(m *message) string {
	batch := m.Alerts
	if len(batch) == 1 {
		a := &batch[0]
		what := string(a.Severity)
		if !a.Ended.IsZero() {
			what = "ended"
		}
		return topology.Clean(fmt.Sprintf("[%s] %s: %s", m.Site, what, a.Summary))
	}
	ended := 0
	for i := range batch {
		if !batch[i].Ended.IsZero() {
			ended++
		}
	}
	return topology.Clean(fmt.Sprintf("[%s] %d alerts, %d of them ended", m.Site, len(batch), ended))
}

func (m *mailer) id(what *message) string {
	_, domain, _ := strings.Cut(strings.Trim(m.r.From, "<> "), "@")
	return what.ID + "@" + strings.TrimRight(domain, ">")
}

func body(batch []Alert) string {
	var b strings.Builder
	for i := range batch {
		a := &batch[i]
		fmt.Fprintf(&b, "%s\n", line(a))
		fmt.Fprintf(&b, "  since %s", a.Since.UTC().Format(time.RFC3339))
		if !a.Ended.IsZero() {
			fmt.Fprintf(&b, ", ended %s", a.Ended.UTC().Format(time.RFC3339))
		}
		b.WriteString("\n\n")
	}
	return b.String()
}
