package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-faster/errors"
)

// diskFull is the part whose Postgres has its own disk.
const diskFull = "disk"

const (
	// diskSize has room for a new cluster and its log, and some thousand events.
	diskSize = "320m"
	// fullFor is long enough for Postgres to notice at a commit, and to try again.
	fullFor = 10 * time.Second
	// diskEvents is how many events the load writes during the part.
	diskEvents = 3000
)

// onFullDisk runs a stack whose Postgres uses its own disk, in memory. It fills that disk under
// load and then makes room again. Only root may mount; without that permission the part is skipped
// and the figures record the reason.
func onFullDisk(ctx context.Context, o options, dir, program string, f *figures, progress func(string, ...any)) error {
	disk := filepath.Join(dir, "postgres")
	if err := os.MkdirAll(disk, 0o755); err != nil {
		return errors.Wrap(err, "make a directory")
	}
	if err := mountMemory(disk, diskSize); err != nil {
		f.DiskFull = "left out: " + err.Error()
		progress("part %s is left out: no disk of its own: %v", diskFull, err)
		return nil
	}
	defer func() { _ = unmount(disk) }()
	progress("part %s: a stack whose Postgres has %s", diskFull, diskSize)
	r, err := open(ctx, o, dir, program, progress)
	if err != nil {
		return err
	}
	defer func() { r.close(false) }() // The disk is removed as well.
	ended := make(chan error, 1)
	go func() { ended <- r.load.until(ctx, diskEvents) }()
	if err := r.fillDisk(ctx, disk); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return err
	}
	f.DiskFull = "done"
	if !r.toldOfFullDisk() {
		f.violation("the disk was full, and no log says so")
	}
	f.count(r)
	return f.take(ctx, diskFull, r)
}

// fillDisk keeps the disk full for fullFor. Postgres exits when it can't write its log, and
// fillDisk then restarts it as a service manager would.
func (r *run) fillDisk(ctx context.Context, disk string) error {
	if err := await(ctx, "some events", func() bool { return len(r.load.acknowledged()) > diskEvents/10 }); err != nil {
		return err
	}
	filler := filepath.Join(disk, "filler")
	at := time.Now()
	for time.Since(at) < fullFor {
		if err := fill(filler); err != nil {
			return err
		}
		if err := pause(ctx, pollInterval); err != nil {
			return err
		}
	}
	if err := os.Remove(filler); err != nil {
		return errors.Wrap(err, "make room")
	}
	select {
	case <-r.stack.postgres.Done():
		r.report("Postgres ended on the full disk")
		if err := r.stack.restartPostgres(ctx); err != nil {
			return err
		}
	default:
	}
	if err := await(ctx, "Postgres to answer", func() bool { _, err := r.pending(ctx); return err == nil }); err != nil {
		return err
	}
	r.kills.add("disk full", at, time.Now())
	return nil
}

// toldOfFullDisk reports whether Postgres reported that the disk is full. Postgres's own log is on
// that disk, so its errors in the logs of the service count, too.
func (r *run) toldOfFullDisk() bool {
	logs := []string{r.stack.postgres.Log(), r.stack.postgres.Log() + ".old"}
	for _, p := range r.stack.services {
		logs = append(logs, p.log)
	}
	return slices.ContainsFunc(logs, func(path string) bool {
		said, err := os.ReadFile(path)
		return err == nil && bytes.Contains(said, []byte("No space left on device"))
	})
}

// fill appends to the file until the disk is full.
func fill(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return errors.Wrap(err, "fill the disk")
	}
	_, _ = io.Copy(file, zeros{}) // The copy ends when the disk is full.
	_ = file.Close()
	return nil
}

// zeros is an endless reader of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
