package cli

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/spf13/cobra"

	"fairway/cmd/program"
)

// MaxFileBytes bounds a file that is read as a whole.
const MaxFileBytes = 256 << 20

// OpenInput opens a file named on the command line; "-" is standard input. What is compressed by gzip is
// decompressed. A file that cannot be opened is a usage error.
func OpenInput(cmd *cobra.Command, name string) (io.ReadCloser, error) {
	if name == "-" {
		return unzipped(io.NopCloser(cmd.InOrStdin()))
	}
	in, err := OpenFile(name)
	if errors.As(err, new(*fs.PathError)) {
		err = program.BadUsage(err)
	}
	return in, err
}

// OpenFile opens a file, decompressed where it is compressed by gzip, else to be read at any place.
func OpenFile(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if !IsGzip(f) {
		return f, nil
	}
	return unzipped(f)
}

// input is a file and what is read of it.
type input struct {
	io.Reader
	io.Closer
}

func unzipped(f io.ReadCloser) (io.ReadCloser, error) {
	b := bufio.NewReader(f)
	if head, _ := b.Peek(2); string(head) != "\x1f\x8b" {
		return input{b, f}, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		f.Close()
		return nil, err
	}
	return input{z, f}, nil
}

// IsGzip says that a file is compressed by gzip.
func IsGzip(f io.ReaderAt) bool {
	var head [2]byte
	n, _ := f.ReadAt(head[:], 0)
	return n == 2 && string(head[:]) == "\x1f\x8b"
}
