package devstack

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"

	"github.com/go-faster/errors"

	"earshot/internal/devstack/process"
)

// account is the user that runs Postgres, which refuses to run as root. Nil is the caller, if the
// caller isn't root.
type account struct {
	name string
	syscall.Credential
}

// postgresAccount chooses the user for the cluster. This is the caller, unless the caller is root.
// For root it is the owner of the cluster's data, or the user postgres if the cluster is new.
func postgresAccount(data string) (*account, error) {
	owner, exists := ownerOf(data)
	if os.Geteuid() != 0 {
		if exists && owner != uint32(os.Geteuid()) {
			return nil, errors.Errorf("%s belongs to user %d: run as that user or as root, or remove it", data, owner)
		}
		return nil, nil
	}
	if exists && owner != 0 {
		found, err := user.LookupId(strconv.FormatUint(uint64(owner), 10))
		if err != nil {
			return nil, errors.Wrapf(err, "look up the owner of %s", data)
		}
		return newAccount(found)
	}
	found, err := user.Lookup("postgres")
	if err != nil {
		return nil, errors.Wrap(err, "Postgres refuses to run as root and needs the user postgres (useradd --system postgres), or run this as another user")
	}
	return newAccount(found)
}

func newAccount(found *user.User) (*account, error) {
	names, err := found.GroupIds()
	if err != nil {
		return nil, errors.Wrapf(err, "look up the groups of %s", found.Username)
	}
	ids := make([]uint32, 0, len(names)+2)
	for _, text := range append([]string{found.Uid, found.Gid}, names...) {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, errors.Wrapf(err, "read the ids of %s", found.Username)
		}
		ids = append(ids, uint32(id))
	}
	return &account{found.Username, syscall.Credential{Uid: ids[0], Gid: ids[1], Groups: ids[2:]}}, nil
}

// command prepares a process of the account with the given working directory.
func (a *account) command(ctx context.Context, dir, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	cmd.Env = postgresEnv()
	cmd.SysProcAttr = process.Attributes(syscall.SIGKILL)
	if a != nil {
		cmd.SysProcAttr.Credential = &a.Credential
	}
	return cmd
}

// own changes the owner of a file or directory to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	if err := os.Chown(path, int(a.Uid), int(a.Gid)); err != nil {
		return errors.Wrapf(err, "hand %s to user %s", path, a.name)
	}
	return nil
}

// ownerOf returns the owner of the path. It returns false if the path doesn't exist or the caller
// can't enter its directory.
func ownerOf(path string) (uint32, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	return info.Sys().(*syscall.Stat_t).Uid, true
}

// postgresEnv omits the caller's PG… variables, which would affect the server and initdb. Without
// LC_ALL the server refuses to start on macOS. The database's locale comes from initdb's arguments.
func postgresEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "LC_ALL=C"}
}
