// Package hostuser asks who the users and groups of this host are, those of its directory service too. The programs are
// static, and os/user reads files alone in such a one: what sssd and the like know is asked of getent(1) and id(1).
package hostuser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// ErrUnknown is the answer where the host has no such user or group. Any other error says that it is not known.
var ErrUnknown = errors.New("this host does not know the name")

const (
	askWithin = 5 * time.Second
	// notFound is how getent ends when every service has answered, and none knows the key.
	notFound = 2
)

// User returns a user by name.
func User(name string) (*user.User, error) {
	u, err := user.Lookup(name)
	if err == nil {
		return u, nil
	}
	return entry("passwd", name, 0, err)
}

// UserOf returns a user by number.
func UserOf(uid uint32) (*user.User, error) {
	id := strconv.FormatUint(uint64(uid), 10)
	u, err := user.LookupId(id)
	if err == nil {
		return u, nil
	}
	return entry("passwd", id, 2, err)
}

// Group returns the number of a group.
func Group(name string) (uint32, error) {
	if g, err := user.LookupGroup(name); err == nil {
		return number(g.Gid)
	} else if e, err := entry("group", name, 0, err); err != nil {
		return 0, err
	} else {
		return number(e.Uid)
	}
}

// GroupsOf returns the numbers of all groups of a user.
func GroupsOf(u *user.User) (gids []uint32, err error) {
	out, err := ask("id", "-G", "--", u.Username)
	if errors.Is(err, exec.ErrNotFound) {
		var words []string
		words, err = u.GroupIds()
		out = strings.Join(words, " ")
	}
	if err != nil {
		return nil, fmt.Errorf("groups of %s: %w", u.Username, err)
	}
	for _, word := range strings.Fields(out) {
		gid, err := number(word)
		if err != nil {
			return nil, fmt.Errorf("groups of %s: %w", u.Username, err)
		}
		gids = append(gids, gid)
	}
	return gids, nil
}

// entry asks for the line of a user, or of a group, whose number is in the same place: the key is the field with this
// index. files is what reading the files gave.
func entry(database, key string, index int, files error) (*user.User, error) {
	out, err := ask("getent", "--", database, key)
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.Join(ErrUnknown, files)
	case errors.As(err, &exit) && exit.ExitCode() == notFound:
		return nil, fmt.Errorf("%s %q: %w", database, key, ErrUnknown)
	case err != nil:
		return nil, fmt.Errorf("getent %s %q: %w", database, key, err)
	}
	f := strings.Split(strings.TrimSpace(out), ":")
	if len(f) < 3 || f[index] != key { // a name of digits is looked for as a number, too
		return nil, fmt.Errorf("%s %q: %w", database, key, ErrUnknown)
	}
	u := &user.User{Username: f[0], Uid: f[2]}
	if len(f) > 3 {
		u.Gid = f[3]
	}
	return u, nil
}

func ask(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	return string(out), err
}

func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}
