package remount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kernel changes this node's mounts. None of its calls asks a server of what is unmounted.
type Kernel interface {
	// Hold makes a folder a mount of its own, from which mounts may be moved, in place of one that an agent left that
	// was killed.
	Hold(dir string) error
	// Beneath puts a mount of dir under what is mounted at a point: it shows as soon as that is gone. Once it is, or is
	// not to go any more, end is called, which takes the mount out again unless it stays.
	Beneath(dir, from, point string) (end func(stays bool) error, err error)
	// Unmount takes a mount away, with lazy even a busy one; Take moves one.
	Unmount(point string, lazy bool) error
	Take(from, to string) error
	// Read reads the root of a mount.
	Read(point string) error
}

// linux is this node's kernel.
type linux struct{}

func (linux) Hold(dir string) error {
	_ = propagate(filepath.Join(dir, "peer"), unix.MS_PRIVATE) // else what it has put beneath a mount goes with it
	_ = unix.Unmount(dir, unix.MNT_DETACH)
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return propagate(dir, unix.MS_PRIVATE)
}

// propagate says whether what is mounted on a mount is mounted on those it shares with, too.
func propagate(point string, how uintptr) error { return unix.Mount("", point, "", how, "") }

// Beneath uses that the kernel, since 4.11, puts what propagates from a mount's peer under what is already there; to
// put it there directly needs 6.5.
func (linux) Beneath(dir, from, point string) (end func(stays bool) error, err error) {
	parent, shared, err := holds(os.DirFS("/"), point)
	if err != nil {
		return nil, err
	}
	private := func(points ...string) (err error) {
		for _, p := range points {
			err = errors.Join(err, propagate(p, unix.MS_PRIVATE))
		}
		return err
	}
	own := []string{parent} // what only this move makes shared
	if shared {
		own = nil
	} else if err := propagate(parent, unix.MS_SHARED); err != nil {
		return nil, err
	}
	peer := filepath.Join(dir, "peer")
	below := filepath.Join(peer, strings.TrimPrefix(point, parent))
	err = os.MkdirAll(peer, 0o700)
	if err == nil {
		err = unix.Mount(parent, peer, "", unix.MS_BIND, "")
	}
	if err == nil {
		err = unix.Mount(from, below, "", unix.MS_BIND, "")
	}
	if err != nil {
		return nil, errors.Join(err, private(own...))
	}
	return func(stays bool) error {
		var err error
		if !stays {
			err = unix.Unmount(below, unix.MNT_DETACH)
		} else if !shared {
			own = append(own, point)
		}
		return errors.Join(err, private(append(own, peer)...))
	}, nil
}

func (linux) Unmount(point string, lazy bool) error {
	flags := unix.UMOUNT_NOFOLLOW
	if lazy {
		flags |= unix.MNT_DETACH
	}
	return unix.Unmount(point, flags)
}

func (linux) Take(from, to string) error { return unix.Mount(from, to, "", unix.MS_MOVE, "") }

func (linux) Read(point string) error {
	d, err := os.Open(point)
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.Stat()
	return err
}

func (m *Mover) kernel() Kernel {
	if m.Kernel == nil {
		return linux{}
	}
	return m.Kernel
}

// beside is a new mount that is not yet in its place.
type beside struct {
	kernel Kernel
	hold   string // a mount of its own, which holds the new one
	made   mounted
}

func (b *beside) at() string { return filepath.Join(b.hold, "new") }

// end takes the new mount away, and what held it.
func (b *beside) end() error {
	if err := b.kernel.Unmount(b.hold, true); err != nil {
		return fmt.Errorf("take away %s: %w", b.hold, err)
	}
	return nil
}

// beside mounts what is wanted beside the old mount, reads it, and compares its options with those of the old.
func (m *Mover) beside(ctx context.Context, s *swap) (*beside, error) {
	b := &beside{kernel: m.kernel(), hold: m.Beside}
	if err := os.MkdirAll(b.hold, 0o700); err != nil {
		return nil, err
	}
	if err := b.kernel.Hold(b.hold); err != nil {
		return nil, fmt.Errorf("hold %s: %w", b.hold, err)
	}
	if err := b.mount(ctx, m, s); err != nil {
		return nil, errors.Join(err, b.end())
	}
	return b, nil
}

func (b *beside) mount(ctx context.Context, m *Mover, s *swap) error {
	if err := os.MkdirAll(b.at(), 0o700); err != nil {
		return err
	}
	argv := []string{"mount", "-n", "-t", s.want.Type}
	if words := s.want.words(); words != "" {
		argv = append(argv, "-o", words)
	}
	if _, err := m.Run.Do(ctx, append(argv, s.want.Source, b.at())...); err != nil {
		return err
	}
	if err := within(ctx, func() error { return b.kernel.Read(b.at()) }); err != nil {
		return fmt.Errorf("read what %s has: %w", s.want.Source, err)
	}
	var err error
	if b.made, err = topmost(m.Root, b.at()); err != nil || s.was.Source == "" {
		return err
	}
	if d := difference(&s.want, &b.made); d != "" {
		return fmt.Errorf("%s cannot be mounted as %s is: %s", s.want.Source, s.was.Source, d)
	}
	return nil
}

// replace puts a new mount in the place of the old one.
func (m *Mover) replace(ctx context.Context, s *swap, force bool) (err error) {
	b, err := m.beside(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end()) }()
	if err := m.remember(remembered{Was: s.was, Made: b.made}); err != nil {
		return err
	}
	if s.was.Source != "" {
		end, cannot := b.kernel.Beneath(b.hold, b.at(), m.Point)
		err := m.away(s, force)
		if cannot == nil {
			return errors.Join(err, end(err == nil))
		}
		if err != nil {
			return err
		}
	}
	// For a moment nothing is mounted there, where the kernel puts nothing beneath another mount.
	if err := b.kernel.Take(b.at(), m.Point); err != nil {
		return errors.Join(fmt.Errorf("move the new mount to %s: %w", m.Point, err), m.back(ctx, &s.was))
	}
	return nil
}

// back mounts what was there again, which must not be lost because ctx is over.
func (m *Mover) back(ctx context.Context, was *mounted) error {
	if was.Source == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backWithin)
	defer cancel()
	_, err := m.Run.Do(ctx, "mount", "-t", was.Type, "-o", was.words(), was.Source, m.Point)
	return err
}

// A mount is called busy when programs had files of it open each time within so long: many open theirs for moments.
const busyFor, busyEvery = 2 * time.Second, 2 * time.Millisecond

// lookEvery is how often it is looked whether the place is free.
const lookEvery = 50 * time.Microsecond

// away unmounts the old one. The kernel takes it out of its place first and may then write to its server for long: it
// is not waited for longer than the place is taken.
func (m *Mover) away(s *swap, force bool) error {
	done := make(chan error, 1)
	go func() { // ends with the old server's answers
		err := m.kernel().Unmount(m.Point, force)
		for n := busyFor / busyEvery; n > 0 && errors.Is(err, unix.EBUSY); n-- {
			time.Sleep(busyEvery)
			err = m.kernel().Unmount(m.Point, force)
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if errors.Is(err, unix.EBUSY) {
				open, e := holders(m.Root, &s.was)
				if e != nil {
					open = e.Error()
				} else if open == "" {
					open = "no longer; try again"
				}
				return fmt.Errorf("%s is busy (%s)", m.Point, open)
			}
			return err
		default:
		}
		if at, err := topmost(m.Root, m.Point); err == nil && at.ID != s.was.ID {
			return nil
		}
		time.Sleep(lookEvery)
	}
}

// within runs what may wait for a server for no longer than ctx lasts.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }() // ends with the server's answer
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
