package access

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"

	"fairway/remap"
	"fairway/webui/access/hostuser"
)

// RoleNow is the role that a person who came by a way (remap.Person.Via) has at present, "" without
// one. known is false for people whom the reverse proxy or the OpenID Connect provider vouches for: what
// they may is known when they come again.
func (a *Config) RoleNow(name, via string) (role remap.Role, known bool) {
	switch via {
	case "unix":
		return a.unixRole(name)
	case "token":
		if i := slices.IndexFunc(a.Tokens, func(t Token) bool { return t.Name == name }); i >= 0 {
			return a.Tokens[i].Role, true
		}
		return "", true
	case "session": // of an account, of the provider, or by a link that a user of the socket was given
		if i := slices.IndexFunc(a.Accounts, func(p Account) bool { return p.Name == name }); i >= 0 {
			return a.Accounts[i].Role, true
		}
		if a.OIDC != nil {
			return "", false
		}
		return a.unixRole(name)
	case "proxy":
		return "", a.Proxy == nil
	}
	return "", false
}

// unixRole is what a user of this host may on the unix socket; not known while the directory does not answer, nor of
// a user whom it has no name for.
func (a *Config) unixRole(name string) (role remap.Role, known bool) {
	u, err := hostuser.User(name)
	if err != nil {
		return "", errors.Is(err, hostuser.ErrUnknown) && !nameless.MatchString(name)
	}
	if u.Uid == "0" || u.Uid == strconv.Itoa(os.Geteuid()) {
		return remap.Admin, true
	}
	ids, err := hostuser.GroupsOf(u)
	if err != nil {
		return "", false
	}
	role = a.Anonymous
	for group, gives := range a.Groups {
		gid, err := groupID(group)
		if err != nil {
			return "", false
		}
		if slices.Contains(ids, gid) && moreRole(role, gives) {
			role = gives
		}
	}
	return role, true
}

// nameless is what userName calls a user without a name.
var nameless = regexp.MustCompile(`^uid[0-9]+$`)
