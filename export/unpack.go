package export

import (
	"archive/zip"
	"bufio"
	"compress/flate"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
)

// Why a file of a ZIP file fails while it is read.
var (
	errMethod   = fmt.Errorf("%w: it is packed in a way that is not known here", ErrArchive)
	errChecksum = fmt.Errorf("%w: it has not the checksum or size that is stated for it", ErrArchive)
	errBehind   = fmt.Errorf("%w: its packed bytes go on behind its end", ErrArchive)
	errOverlong = fmt.Errorf("%w: it unpacks to more than it states", ErrArchive)
)

// unpack opens a file of a ZIP file. Unlike the one of package zip the reader
// fails also where the packed bytes go on behind the end of what they unpack to.
func unpack(f *zip.File) (io.ReadCloser, error) {
	raw, err := f.OpenRaw()
	if err != nil {
		return nil, err
	}
	packed := bufio.NewReader(raw) // a ByteReader, of which nothing is read too many
	u := &unpacking{file: f, packed: packed, sum: crc32.NewIEEE()}
	switch f.Method {
	case zip.Store:
		u.ReadCloser = io.NopCloser(packed)
	case zip.Deflate:
		u.ReadCloser = flate.NewReader(packed)
	default:
		return nil, errMethod
	}
	return u, nil
}

type unpacking struct {
	io.ReadCloser
	file   *zip.File
	packed *bufio.Reader
	sum    hash.Hash32
	size   uint64
}

func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	u.sum.Write(p[:n])
	u.size += uint64(n)
	if err != io.EOF {
		return n, err
	}
	if u.size != u.file.UncompressedSize64 || u.sum.Sum32() != u.file.CRC32 {
		return n, errChecksum
	}
	if _, err := u.packed.ReadByte(); err != io.EOF {
		return n, errBehind
	}
	return n, io.EOF
}
