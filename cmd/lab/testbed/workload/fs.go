package workload

import (
	"context"
	"os"
	"path/filepath"

	"fairway/collector/p9"
)

// Dir is a directory of the machine, for instance of a mount.
type Dir string

// Open opens or makes a file of the directory.
func (d Dir) Open(_ context.Context, name string) (File, error) {
	return os.OpenFile(filepath.Join(string(d), name), os.O_RDWR|os.O_CREATE, 0o644)
}

// Stat asks for a file's attributes.
func (d Dir) Stat(_ context.Context, name string) error {
	_, err := os.Stat(filepath.Join(string(d), name))
	return err
}

// Remove removes a file.
func (d Dir) Remove(_ context.Context, name string) error {
	return os.Remove(filepath.Join(string(d), name))
}

// Forwarder is the root of a forwarder's file system, reached without a mount.
type Forwarder struct{ Root *p9.Fid }

// Open opens or makes a file.
func (d Forwarder) Open(ctx context.Context, name string) (File, error) {
	f, err := d.Root.Walk(ctx, name)
	if err == nil {
		err = f.Open(ctx, uint32(os.O_RDWR))
	} else if f, err = d.Root.Walk(ctx); err == nil {
		err = f.Create(ctx, name, uint32(os.O_RDWR), 0o644, uint32(os.Getegid()))
	}
	if err != nil {
		return nil, err
	}
	return fidFile{ctx, f}, nil
}

// Stat asks for a file's attributes.
func (d Forwarder) Stat(ctx context.Context, name string) error {
	f, err := d.Root.Walk(ctx, name)
	if err != nil {
		return err
	}
	if _, err := f.GetAttr(ctx); err != nil {
		return err
	}
	return f.Clunk(ctx)
}

// Remove removes a file.
func (d Forwarder) Remove(ctx context.Context, name string) error {
	f, err := d.Root.Walk(ctx, name)
	if err != nil {
		return err
	}
	return f.Remove(ctx)
}

// fidFile is an open file of a forwarder, for the length of one burst.
type fidFile struct {
	ctx context.Context
	fid *p9.Fid
}

func (f fidFile) ReadAt(p []byte, off int64) (int, error)  { return f.fid.ReadAt(f.ctx, p, off) }
func (f fidFile) WriteAt(p []byte, off int64) (int, error) { return f.fid.WriteAt(f.ctx, p, off) }
func (f fidFile) Close() error                             { return f.fid.Clunk(context.WithoutCancel(f.ctx)) }
