package durable

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkWriteOnce is compared with BenchmarkLimit: create, write, fsync,
// rename, fsync of the directory, of the same bytes, and nothing else.
func BenchmarkWriteOnce(b *testing.B) {
	d, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	body := bytes.Repeat([]byte("x"), 16<<10)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if err := d.WriteOnce(fmt.Sprintf("a/b/%d", n), Bytes(body)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLimit(b *testing.B) {
	dir := b.TempDir()
	body := bytes.Repeat([]byte("x"), 16<<10)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if err := bareWrite(dir, fmt.Sprint(n), body); err != nil {
			b.Fatal(err)
		}
	}
}

func bareWrite(dir, name string, body []byte) error {
	temp := filepath.Join(dir, "temp")
	f, err := os.Create(temp)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(body); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
