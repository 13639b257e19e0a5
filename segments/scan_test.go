package segments_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chaind/chaind/segments"
)

// reading is all that one reading of a text shows.
type reading struct {
	Envelope   *segments.Envelope
	Deviations []segments.Deviation
	Err        string
	Segments   []string // each segment with its digest, and whether it is as written
}

var errStop = errors.New("stop")

// readPlain reads with the oracle, and ends after so many segments.
func readPlain(r io.Reader, stop int) (out reading) {
	env, found, err := segments.Read(r, func(s *segments.Segment) error {
		out.Segments = append(out.Segments, fmt.Sprintf("%s %s", segments.AppendSegment(nil, s), s.Digest()))
		if len(out.Segments) == stop {
			return errStop
		}
		return nil
	})
	out.Envelope, out.Deviations, out.Err = env, found, fmt.Sprint(err)
	return out
}

// readScanned does the same with a scan, of which it also checks what the
// oracle does not tell.
func readScanned(t failer, text []byte, wrap func(io.Reader) io.Reader, workers, size, stop int) (out reading) {
	t.Helper()
	env, found, err := segments.ScanInBatches(wrap(bytes.NewReader(text)), workers, size, func(s *segments.Scanned) error {
		written := segments.AppendSegment(nil, &s.Segment)
		out.Segments = append(out.Segments, fmt.Sprintf("%s %s", written, s.Digest))
		raw := text[s.Offset : s.Offset+s.Length]
		if raw[0] != '{' && raw[0] != '[' || s.Written != bytes.Equal(raw, written) {
			t.Errorf("written %t: %s at %d decodes to %s", s.Written, raw, s.Offset, written)
		}
		if len(out.Segments) == stop {
			return errStop
		}
		return nil
	})
	out.Envelope, out.Deviations, out.Err = env, found, fmt.Sprint(err)
	return out
}

// failer is what tests, fuzz targets and properties share.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

func plain(r io.Reader) io.Reader { return r }

// sameReading holds scans with few and many workers and batches of all sizes
// against the oracle.
func sameReading(t failer, text []byte, wrap func(io.Reader) io.Reader, stop int) {
	t.Helper()
	want := readPlain(wrap(bytes.NewReader(text)), stop)
	for _, run := range []struct{ workers, bytes int }{{1, 1 << 16}, {1, 700}, {3, 1}, {3, 700}} {
		got := readScanned(t, text, wrap, run.workers, run.bytes, stop)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%+v, %.2000q: (-read +scan)\n%s", run, text, diff)
		}
	}
}

func TestScanReadsLikeRead(t *testing.T) {
	t.Parallel()
	texts := [][]byte{segments.AppendBundle(nil, chainOf(honest(40)))}
	for _, name := range vectors(t) {
		texts = append(texts, readFile(t, filepath.Join(plasm, name, "bundle.json")))
	}
	for _, text := range texts {
		sameReading(t, text, plain, 0)
		sameReading(t, text, iotest.OneByteReader, 0)
		sameReading(t, append([]byte("\n "), text...), plain, 3)
	}
}

// Damage anywhere, and an end anywhere, gives what Read gives: the error, the
// deviations and the segments visited before it.
func TestScanOfDamagedFiles(t *testing.T) {
	t.Parallel()
	step := 23
	if testing.Short() {
		step = 97
	}
	text := segments.AppendBundle(nil, chainOf(honest(4)))
	for i := 0; i < len(text); i += step {
		for _, c := range []byte{text[i] ^ 0x20, text[i] ^ 1, '"', '}', ' ', ','} {
			damaged := slices.Clone(text)
			damaged[i] = c
			sameReading(t, damaged, plain, 0)
		}
		sameReading(t, text[:i], plain, 0)
		sameReading(t, text, func(r io.Reader) io.Reader {
			return io.MultiReader(io.LimitReader(r, int64(i)), iotest.ErrReader(io.ErrNoProgress))
		}, 0)
	}
}

// Segments with deviations of every kind, more than are kept, among others and
// in chains of many batches.
func TestScanMergesDeviations(t *testing.T) {
	t.Parallel()
	odd := []string{
		`{"seq":0,"prev":null,"kind":` + okSeal + `}`,
		`{"seq":0,"kind":` + okSeal + `,"x":{"a":1,"a":2}}`,
		`{"seq":9007199254740993,"kind":` + okSeal + `}`,
		`[1,null,` + okSeal + `,5]`,
		`{"seq":0,"kind":` + strings.Replace(okSeal, `"run_id":"`, `"run_id":"\"\"\u0041`, 1) + `}`,
	}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom(append(odd, `{"seq":0,"kind":`+okSeal+`}`)), 0, 60).Draw(t, "segments")
		if rapid.Bool().Draw(t, "broken") {
			list = append(list, rapid.SampledFrom([]string{`{"seq":-1,"kind":` + okSeal + `}`, `{"seq":0}`, `7`, `{"seq"}`}).Draw(t, "end"))
		}
		text := chainText(strings.Join(list, rapid.SampledFrom([]string{",", " ,\n"}).Draw(t, "between")))
		sameReading(t, []byte(text), plain, rapid.IntRange(0, 20).Draw(t, "stop"))
	})
}

func TestScanOfArbitraryBundles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := &segments.Bundle{Envelope: segments.Envelope{Scope: genScope.Draw(t, "scope")}, Segments: rapid.SliceOfN(genSegment, 0, 12).Draw(t, "segments")}
		sameReading(t, segments.AppendBundle(nil, b), plain, 0)
	})
}

// What a visit may keep stays as it was when its memory has been used again.
func TestScanKeepsStrings(t *testing.T) {
	t.Parallel()
	var list []segments.Kind
	for i := range 300 {
		list = append(list, &segments.StepExecuted{StepID: fmt.Sprint("step", i), RequestFingerprints: []string{}},
			&segments.CompCommitted{PlanCommitIDHex: fmt.Sprint("plan", i), StepTopo: []string{fmt.Sprint("a", i), "b"}})
	}
	text := segments.AppendBundle(nil, chainOf(list))
	var ids []string
	var topos [][]string
	_, _, err := segments.ScanInBatches(bytes.NewReader(text), 2, 2000, func(s *segments.Scanned) error {
		switch k := s.Kind.(type) {
		case *segments.StepExecuted:
			ids = append(ids, k.StepID)
		case *segments.CompCommitted:
			topos = append(topos, k.StepTopo)
		}
		return nil
	})
	if err != nil || len(ids) != 300 || len(topos) != 300 {
		t.Fatalf("%d ids, %d topologies, %v", len(ids), len(topos), err)
	}
	for i := range ids {
		if ids[i] != fmt.Sprint("step", i) || !slices.Equal(topos[i], []string{fmt.Sprint("a", i), "b"}) {
			t.Fatalf("%d: %q, %q", i, ids[i], topos[i])
		}
	}
}

// A scan needs little memory whatever the length of the chain, and little for
// each segment.
func TestScanMemory(t *testing.T) {
	n, limit := uint64(100_000), uint64(8<<20)
	if testing.Short() {
		n = 20_000
	}
	var count uint64
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, _, err := segments.Scan(&endless{n: n}, 2, func(*segments.Scanned) error {
		if count++; count%(n/4) == n/8 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			if now.HeapAlloc > before.HeapAlloc+limit {
				return fmt.Errorf("%d bytes on the heap at segment %d", now.HeapAlloc-before.HeapAlloc, count)
			}
		}
		return nil
	})
	if err != nil || count != n {
		t.Errorf("%d segments, %v", count, err)
	}
}

func TestScanAllocations(t *testing.T) {
	text := segments.AppendBundle(nil, chainOf(honest(5000)))
	allocations := testing.AllocsPerRun(3, func() {
		if _, _, err := segments.Scan(bytes.NewReader(text), 1, func(*segments.Scanned) error { return nil }); err != nil {
			t.Fatal(err)
		}
	})
	// One is for the source line, which has escapes. What a batch takes, and the
	// memory of its rooms, counts for many segments.
	if each := allocations / 5000; each > 1.5 {
		t.Errorf("%.2f allocations for a segment, want at most 1.5", each)
	}
}

func FuzzScan(f *testing.F) {
	requireCorpus(f, "FuzzScan")
	for _, name := range vectors(f) {
		f.Add(readFile(f, filepath.Join(plasm, name, "bundle.json")))
	}
	f.Fuzz(func(t *testing.T, text []byte) { sameReading(t, text, plain, 0) })
}
