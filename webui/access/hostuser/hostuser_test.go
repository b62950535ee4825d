package hostuser

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// directory puts programs into the place of getent and id that know what no file of this host has.
func directory(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"getent": `case "$2 $3" in
"passwd erika-of-the-directory" | "passwd 3999999999")
	echo "erika-of-the-directory:*:3999999999:3999999998::/home/e:/bin/sh" ;;
"group ops-of-the-directory") echo "ops-of-the-directory:*:3999999997:erika-of-the-directory" ;;
"passwd away") exit 3 ;;
"passwd 3999999990") echo "other:*:7:7::/:/bin/sh" ;;
*) exit 2 ;;
esac`,
		"id": `[ "$3" = erika-of-the-directory ] && echo 3999999998 3999999997`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestPeopleOfTheDirectory(t *testing.T) {
	directory(t)
	const erika = "erika-of-the-directory"
	u, err := User(erika)
	if err != nil || u.Username != erika || u.Uid != "3999999999" || u.Gid != "3999999998" {
		t.Fatalf("%+v, %v", u, err)
	}
	if by, err := UserOf(3999999999); err != nil || by.Username != erika {
		t.Errorf("by number: %+v, %v", by, err)
	}
	if gid, err := Group("ops-of-the-directory"); err != nil || gid != 3999999997 {
		t.Errorf("group: %d, %v", gid, err)
	}
	if gids, err := GroupsOf(u); err != nil || !slices.Equal(gids, []uint32{3999999998, 3999999997}) {
		t.Errorf("groups: %v, %v", gids, err)
	}
	if _, err := User("nobody-of-that-name"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a user that there is not: %v", err)
	}
	if _, err := UserOf(3999999990); !errors.Is(err, ErrUnknown) {
		t.Errorf("another one's line: %v", err)
	}
	if _, err := Group("no-group-of-that-name"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a group that there is not: %v", err)
	}
	if _, err := User("away"); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("a directory that does not answer: %v", err)
	}
}

// TestWithoutGetent: a root that has no such program has its files.
func TestWithoutGetent(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	root, err := UserOf(0)
	if err != nil || root.Uid != "0" {
		t.Skipf("skipped: this host has no user 0: %v", err)
	}
	if gids, err := GroupsOf(root); err != nil || !slices.Contains(gids, 0) {
		t.Errorf("groups: %v, %v", gids, err)
	}
	if _, err := User("nobody-of-that-name"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a user that there is not: %v", err)
	}
}
