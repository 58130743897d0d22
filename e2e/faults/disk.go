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

// diskFull is the part whose Postgres has a disk of its own.
const diskFull = "disk"

const (
	// diskSize has room for a new cluster and its log, and some thousand events.
	diskSize = "320m"
	// fullFor is long enough for Postgres to notice at a commit, and to try again.
	fullFor = 10 * time.Second
	// diskEvents are written around it.
	diskEvents = 3000
)

// onFullDisk runs a stack whose Postgres lies on a disk of its own, in memory, fills
// that disk under load and makes room again. Only root may mount; where it can't be
// done the figures say so.
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
	defer func() { r.close(false) }() // its disk goes, too
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

// fillDisk leaves no room for a while. Postgres ends by itself when it can't write its
// log; it is started again, as a service manager would.
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
		if err := pause(ctx, lookEvery); err != nil {
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

// toldOfFullDisk reports whether Postgres said that it has no room. Its own log lies on
// that disk, so what it answered to the service counts, too.
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

// fill appends until nothing more fits.
func fill(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return errors.Wrap(err, "fill the disk")
	}
	_, _ = io.Copy(file, zeros{}) // it ends with the disk
	_ = file.Close()
	return nil
}

// zeros reads as zeros without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
