package store

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// The checksum is the one that the package's doc describes, of one place only, and
// changes with every bit of table, key and payload.
func TestChecksum(t *testing.T) {
	t.Parallel()
	v := newView(nil)
	key, payload := []byte("key"), []byte("what is kept under it, and longer than one block of the hash")
	sum := slices.Clone(v.checksum(tableMeta, key, payload))
	whole := slices.Concat([]byte{'m', 0, 0, 0, 3}, key, payload)
	if want := xxhash.Sum64(whole); uint64(number(sum)) != want {
		t.Errorf("checksum %x, want %x", sum, want)
	}
	// Computed by hand from the description of XXH64.
	if hex.EncodeToString(v.checksum(tableMeta, nil, nil)) != "5a30c70a7a5c782f" {
		t.Errorf("of nothing: %x", v.checksum(tableMeta, nil, nil))
	}
	for i := range 8 * len(key) {
		k := slices.Clone(key)
		k[i/8] ^= 1 << (i % 8)
		if v.matches(tableMeta, k, payload, sum) {
			t.Errorf("a value fits under the key %x", k)
		}
	}
	for i := range 8 * len(payload) {
		p := slices.Clone(payload)
		p[i/8] ^= 1 << (i % 8)
		if v.matches(tableMeta, key, p, sum) {
			t.Errorf("bit %d of a value may change", i)
		}
	}
	for _, other := range tables() {
		if fits := v.matches(other, key, payload, sum); fits != (other == tableMeta) {
			t.Errorf("table %s: %v", other.name, fits)
		}
	}
	if v.matches(tableMeta, key[:2], bytes.Join([][]byte{key[2:], payload}, nil), sum) {
		t.Error("key and payload run into one another")
	}
	if !v.matches(tableMeta, key, payload, oldChecksum(tableMeta, key, payload)) {
		t.Error("a value of version 1 is refused")
	}
}
