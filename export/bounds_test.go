package export_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chaind/chaind/export"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/verifier"
)

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// unread is a file that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) { u.t.Error("a file is read"); return 0, io.EOF }
func (u unread) Close() error             { return nil }

// TestBombs: what is too large by what it states is not read at all, and
// nothing is read beyond that.
func TestBombs(t *testing.T) {
	t.Parallel()
	bomb := func() (io.ReadCloser, error) { return unread{t}, nil }
	var large export.Folder
	large.Add(export.ManifestFile, export.MaxManifestBytes+1, bomb)
	r := export.Check(t.Context(), &large, verifier.Options{}, nil)
	if want := "manifest.json: the manifest cannot be read: it has 67108865 bytes, more than the 67108864 that it may have, and was not read"; len(r.Errors) != 1 || r.Errors[0].Detail != want {
		t.Errorf("a large manifest: %v", r.Errors)
	}

	files := folder(t)
	var swollen export.Folder
	const evidence = "chains/0001-a/x.evidence.json"
	for name, f := range files {
		if name == evidence {
			swollen.Add(name, 1<<30, bomb)
			continue
		}
		swollen.Add(name, int64(len(f.Data)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.Data)), nil })
	}
	r = export.Check(t.Context(), &swollen, trusting(t, seed), nil)
	if len(r.Errors) != 1 || r.Errors[0].Code != export.CodeAltered || !strings.Contains(r.Errors[0].Detail, evidence+": has 1073741824 bytes, listed are") {
		t.Errorf("evidence of a gibibyte: %v", r.Errors)
	}

	var many export.Folder
	if err := many.Add("a", export.MaxUnpacked-1, bomb); err != nil {
		t.Fatal(err)
	}
	if err := many.Add("b\x1b", 2, bomb); !errors.Is(err, export.ErrArchive) || !strings.Contains(err.Error(), `more than 8589934592 bytes in all with b\x1b`) {
		t.Errorf("more than the limit: %v", err)
	}
	var liar export.Folder
	liar.Add("a", 100, func() (io.ReadCloser, error) { return io.NopCloser(zeros{}), nil })
	file, err := liar.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, file); !errors.Is(err, export.ErrArchive) || n > 100 {
		t.Errorf("read %d bytes of 100: %v", n, err)
	}
}

// TestPackedBytes: a file's packed bytes give what is stated, and then end.
func TestPackedBytes(t *testing.T) {
	t.Parallel()
	const path = "index.html"
	for name, c := range map[string]struct {
		bend func(h *zip.FileHeader, packed []byte) []byte
		says string
	}{
		"as it is":     {func(_ *zip.FileHeader, p []byte) []byte { return p }, ""},
		"more behind":  {func(_ *zip.FileHeader, p []byte) []byte { return append(p, "payload"...) }, "its packed bytes go on behind its end"},
		"cut off":      {func(_ *zip.FileHeader, p []byte) []byte { return p[:len(p)-3] }, "it cannot be read"},
		"checksum":     {func(h *zip.FileHeader, p []byte) []byte { h.CRC32++; return p }, "it has not the checksum or size that is stated for it"},
		"states less":  {func(h *zip.FileHeader, p []byte) []byte { h.UncompressedSize64--; return p }, "it unpacks to more than it states"},
		"states more":  {func(h *zip.FileHeader, p []byte) []byte { h.UncompressedSize64++; return p }, "it has not the checksum or size that is stated for it"},
		"another way":  {func(h *zip.FileHeader, p []byte) []byte { h.Method = 12; return p }, "it is packed in a way that is not known here"},
		"stored, more": {func(h *zip.FileHeader, p []byte) []byte { h.Method = zip.Store; return []byte("<p>report and more") }, "it unpacks to more than it states"},
	} {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		files := folder(t)
		for file, f := range files {
			var packed bytes.Buffer
			squeeze, _ := flate.NewWriter(&packed, flate.BestCompression)
			squeeze.Write(f.Data)
			squeeze.Close()
			h := &zip.FileHeader{Name: file, Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(f.Data), UncompressedSize64: uint64(len(f.Data))}
			text := packed.Bytes()
			if file == path {
				text = c.bend(h, text)
			}
			h.CompressedSize64 = uint64(len(text))
			raw, err := w.CreateRaw(h)
			if err != nil {
				t.Fatal(err)
			}
			raw.Write(text)
		}
		w.Close()
		r := checkZip(t, out.Bytes())
		if c.says == "" {
			mustPass(t, name, r)
		} else if len(r.Errors) != 1 || r.Errors[0].Code != export.CodeUnreached || r.Errors[0].Detail != path+": "+c.says {
			t.Errorf("%s: %v", name, r.Errors)
		}
	}
}

// TestSumOfListedSizes: a manifest that lists more than may be read is none.
func TestSumOfListedSizes(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("0", 64)
	m := export.Manifest{Export: export.FormatName, Files: []export.File{{"a", export.MaxUnpacked - 1, sum, export.RoleReport}, {"b", 1, sum, export.RoleReport}}}
	if _, err := m.Append(nil); err != nil {
		t.Fatal(err)
	}
	m.Files[1].Bytes++
	if _, err := m.Append(nil); err == nil || !strings.Contains(err.Error(), "more than 8589934592 bytes in all with b") {
		t.Errorf("one byte too many: %v", err)
	}
}

// waiting is a folder in which opening a pipe never returns.
type waiting struct{ fstest.MapFS }

func (w waiting) Open(name string) (fs.File, error) {
	if f := w.MapFS[name]; f != nil && f.Mode.Type() != 0 {
		panic("a special file is opened: " + name)
	}
	return w.MapFS.Open(name)
}

func TestSpecialFilesAreNotOpened(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]fs.FileMode{"pipe": fs.ModeNamedPipe, "socket": fs.ModeSocket, "device": fs.ModeDevice, "terminal": fs.ModeDevice | fs.ModeCharDevice, "link": fs.ModeSymlink} {
		for path, code := range map[string]verifier.Code{
			"index.html": export.CodeUnreached, "chains/0001-a/x.evidence.json": export.CodeUnreached, "more": export.CodeExtra,
			export.ManifestFile: export.CodeManifest, export.SignatureFile: verifier.CodeSignatureInvalid,
		} {
			files := folder(t)
			files[path] = &fstest.MapFile{Data: []byte("index.html"), Mode: mode}
			r := export.Check(t.Context(), waiting{files}, trusting(t, seed), nil)
			if len(r.Errors) != 1 || r.Errors[0].Code != code || r.Errors[0].Where != path || r.ExitCode != verifier.ExitEnvelope {
				t.Errorf("%s for %s: %v", name, path, r.Errors)
			}
		}
	}
}

// TestCalledOff: a check that was called off judges nothing.
func TestCalledOff(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var seen int
	r := export.Check(ctx, folder(t), trusting(t, seed), func(string, *verifier.Report) { seen++; cancel() })
	if r.ExitCode != verifier.ExitNotRun || r.Verdict != verifier.NotRun || seen != 1 {
		t.Errorf("exit %d %s after %d bundles: %s", r.ExitCode, r.Verdict, seen, r.Summary)
	}
}

func TestSegmentsThatAreNotThere(t *testing.T) {
	t.Parallel()
	r := export.Check(t.Context(), single(t, func(c *export.Chain) { c.Segments = 99 }), trusting(t, seed), nil)
	if len(r.Errors) != 1 || r.Errors[0].Code != export.CodeDiffers || r.ExitCode != verifier.ExitEnvelope || !strings.HasSuffix(r.Errors[0].Detail, "and the manifest says 99") {
		t.Errorf("exit %d: %v", r.ExitCode, r.Errors)
	}
}

// TestWhoSigned: the manifest is judged as an evidence bundle in the same state
// is: what nobody vouches for is not called checked.
func TestWhoSigned(t *testing.T) {
	t.Parallel()
	with := func(status keys.Status, allow, required bool) verifier.Options {
		list, _, err := keys.Merge([]keys.Entry{{PublicKey: signer(t, seed).Public(), Status: status}})
		if err != nil {
			t.Fatal(err)
		}
		return verifier.Options{Trust: list, AllowUnsigned: allow, RequireSigned: required}
	}
	for name, c := range map[string]struct {
		signed           bool
		o                verifier.Options
		signature, trust verifier.Status
		codes            string // of errors, then of warnings
		exit             int
	}{
		"unsigned":                {false, verifier.Options{}, verifier.StatusNotApplicable, verifier.StatusSkipped, " unsigned", 0},
		"unsigned, required":      {false, verifier.Options{RequireSigned: true}, verifier.StatusNotApplicable, verifier.StatusFail, "signature_required ", 4},
		"unsigned, keys":          {false, with(keys.Active, false, false), verifier.StatusNotApplicable, verifier.StatusFail, "signature_required ", 4},
		"unsigned, keys, allowed": {false, with(keys.Active, true, false), verifier.StatusNotApplicable, verifier.StatusSkipped, " unsigned", 0},
		"unpinned":                {true, verifier.Options{}, verifier.StatusPass, verifier.StatusNotApplicable, " ", 0},
		"unpinned, required":      {true, verifier.Options{RequireSigned: true}, verifier.StatusPass, verifier.StatusNotApplicable, " ", 0},
		"trusted":                 {true, with(keys.Active, false, false), verifier.StatusPass, verifier.StatusPass, " ", 0},
		"retired":                 {true, with(keys.Retired, false, false), verifier.StatusPass, verifier.StatusWarn, " retired_key", 0},
		"revoked":                 {true, with(keys.Revoked, false, false), verifier.StatusPass, verifier.StatusFail, "revoked_key ", 4},
	} {
		files := single(t, func(*export.Chain) {})
		if !c.signed {
			delete(files, export.SignatureFile)
		}
		r := export.Check(t.Context(), files, c.o, nil)
		rows := map[string]verifier.Status{}
		for _, check := range r.Checks {
			rows[check.Name] = check.Status
		}
		if rows["signature"] != c.signature || rows["trust"] != c.trust || codes(r) != c.codes || r.ExitCode != c.exit {
			t.Errorf("%s: signature %s, trust %s, codes %q, exit %d", name, rows["signature"], rows["trust"], codes(r), r.ExitCode)
		}
	}
}

// codes lists what was found of the manifest itself.
func codes(r *verifier.Report) string {
	word := func(list []verifier.Finding) string {
		for _, f := range list {
			if f.Code != export.CodeContent {
				return string(f.Code)
			}
		}
		return ""
	}
	return word(r.Errors) + " " + word(r.Warnings)
}

// single is a signed export of one signed bundle, whose chain is listed as bend
// leaves it.
func single(t *testing.T, bend func(*export.Chain)) fstest.MapFS {
	t.Helper()
	const path = "e.evidence.json"
	text := vector(t, "p02-full-run-signed")
	chain := chainOf(t, text, path)
	bend(&chain)
	m := &export.Manifest{Export: export.FormatName, Chains: []export.Chain{chain}, Files: []export.File{export.Describe(path, export.RoleEvidence, text)}}
	return sealed(t, m, map[string][]byte{path: text})
}

// TestEveryCodeIsExplained: the guide has each code of a finding.
func TestEveryCodeIsExplained(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/export.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []verifier.Code{export.CodeManifest, export.CodeMissing, export.CodeAltered, export.CodeSwapped, export.CodeExtra, export.CodeOther,
		export.CodeContent, export.CodeRefused, export.CodeDiffers, export.CodeArchive, export.CodeUnreached, verifier.CodeSignatureInvalid, verifier.CodeSignatureNeeded,
		verifier.CodeUntrustedKey, verifier.CodeRevokedKey, verifier.CodeRetiredKey, verifier.CodeUnsigned} {
		if !bytes.Contains(guide, []byte("`"+string(code)+"`")) {
			t.Errorf("%s is not explained", code)
		}
	}
}
