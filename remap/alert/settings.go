package alert

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Settings say who is called.
type Settings struct {
	Receivers []Receiver `toml:"receiver" help:"Who is called, and about what; none: nobody."`
}

// Receiver is one place that alerts go to. Of the fields below Users each kind has its own.
type Receiver struct {
	Name     string   `toml:"name" help:"Its name, on screens and in the log."`
	Kind     string   `toml:"kind" help:"alertmanager, webhook, mail, syslog or command."`
	Kinds    []string `toml:"kinds" help:"Kinds of findings, plan_waiting or plan_failed; empty: all."`
	Severity Severity `toml:"severity" help:"Least severity: warning or critical; empty: warning."`
	Users    []string `toml:"users" help:"Only what hurts a job of one of these users; empty: all."`

	URL        string   `toml:"url" help:"alertmanager: its base URL; webhook: where alerts are posted."`
	SecretFile string   `toml:"secret_file" help:"alertmanager: bearer token; webhook: signing key; mail: password."`
	Server     string   `toml:"server" help:"mail: HOST:PORT of the mail server."`
	User       string   `toml:"user" help:"mail: name for the server; empty: without a sign-in."`
	TLS        string   `toml:"tls" help:"mail: starttls (default), tls or none."`
	From       string   `toml:"from" help:"mail: address of the sender."`
	To         []string `toml:"to" help:"mail: addresses; {user} stands for the users of hurt jobs."`
	Address    string   `toml:"address" help:"syslog: udp:HOST:PORT or tcp:HOST:PORT; empty: this host's."`
	Command    []string `toml:"command" help:"command: its words; it reads the alerts as JSON."`
}

// The kinds of receivers.
const (
	kindAlertmanager = "alertmanager"
	kindWebhook      = "webhook"
	kindMail         = "mail"
	kindSyslog       = "syslog"
	kindCommand      = "command"
)

const maxReceivers = 32

var receiverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Validate refuses what cannot work. Its errors name the receiver and the field.
func (s *Settings) Validate() error {
	if len(s.Receivers) > maxReceivers {
		return fmt.Errorf("receiver: %d are listed: want at most %d", len(s.Receivers), maxReceivers)
	}
	seen := map[string]bool{}
	for i := range s.Receivers {
		r := &s.Receivers[i]
		if !receiverName.MatchString(r.Name) {
			return fmt.Errorf("receiver %d: name = %q: want letters, digits, dot, dash or underscore, at most 64", i+1,
				r.Name)
		}
		if seen[r.Name] {
			return fmt.Errorf("receiver %s is listed twice", r.Name)
		}
		seen[r.Name] = true
		if err := r.validate(); err != nil {
			return fmt.Errorf("receiver %s: %w", r.Name, err)
		}
	}
	return nil
}

func (r *Receiver) validate() error {
	if !slices.Contains([]Severity{"", Warning, Critical}, r.Severity) {
		return fmt.Errorf("severity = %q: want %s or %s", r.Severity, Warning, Critical)
	}
	if r.SecretFile != "" && !filepath.IsAbs(r.SecretFile) {
		return fmt.Errorf("secret_file = %q: want an absolute path", r.SecretFile)
	}
	switch r.Kind {
	case kindAlertmanager, kindWebhook:
		u, err := url.Parse(r.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("url = %q: want http://HOST or https://HOST", r.URL)
		}
		if r.Kind == kindWebhook && r.SecretFile == "" {
			return errors.New("secret_file is required: the signature shows the receiver who sent an alert")
		}
	case kindMail:
		return r.validateMail()
	case kindSyslog:
		if r.Address == "" {
			return nil
		}
		network, addr, _ := strings.Cut(r.Address, ":")
		if _, _, err := net.SplitHostPort(addr); err != nil || network != "udp" && network != "tcp" {
			return fmt.Errorf("address = %q: want udp:HOST:PORT or tcp:HOST:PORT", r.Address)
		}
	case kindCommand:
		if len(r.Command) == 0 || !filepath.IsAbs(r.Command[0]) {
			return fmt.Errorf("command = %q: want the absolute path of a program and its arguments", r.Command)
		}
	default:
		return fmt.Errorf("kind = %q: want %s, %s, %s, %s or %s", r.Kind, kindAlertmanager, kindWebhook, kindMail,
			kindSyslog, kindCommand)
	}
	return nil
}

// userWord stands for the users of the jobs that an alert hurts, in an address of mail.
const userWord = "{user}"

func (r *Receiver) validateMail() error {
	if _, _, err := net.SplitHostPort(r.Server); err != nil {
		return fmt.Errorf("server = %q: want HOST:PORT", r.Server)
	}
	if !slices.Contains([]string{"", "starttls", "tls", "none"}, r.TLS) {
		return fmt.Errorf("tls = %q: want starttls, tls or none", r.TLS)
	}
	if (r.User == "") != (r.SecretFile == "") {
		return errors.New("user and secret_file go together: the name and the password for the mail server")
	}
	if r.User != "" && r.TLS == "none" {
		return errors.New("tls = \"none\": a password is not sent in clear text")
	}
	if _, err := mail.ParseAddress(r.From); err != nil {
		return fmt.Errorf("from = %q: %w", r.From, err)
	}
	if len(r.To) == 0 {
		return errors.New("to is empty: want an address")
	}
	for _, to := range r.To {
		if _, err := mail.ParseAddress(strings.ReplaceAll(to, userWord, "user")); err != nil {
			return fmt.Errorf("to = %q: %w", to, err)
		}
	}
	return nil
}

// wants says whether an alert is for this receiver.
func (r *Receiver) wants(a *Alert) bool {
	if a.Kind == Test {
		return true
	}
	if len(r.Kinds) > 0 && !slices.Contains(r.Kinds, a.Kind) {
		return false
	}
	if a.Severity.rank() < r.Severity.rank() {
		return false
	}
	return len(r.Users) == 0 || slices.ContainsFunc(a.Hurt,
		func(h Hurt) bool { return slices.Contains(r.Users, h.User) })
}

// every is the least time between two messages: people read mail, programs do not mind.
func (r *Receiver) every() time.Duration {
	if r.Kind == kindMail {
		return 30 * time.Second
	}
	return 0
}

// refresh is how often an alert that is still firing is repeated; 0: never. Alertmanager ends what
// nobody repeats.
func (r *Receiver) refresh() time.Duration {
	if r.Kind == kindAlertmanager {
		return time.Minute
	}
	return 0
}
