package export_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chaind/chaind/export"
	"github.com/chaind/chaind/verifier"
)

// checkZip opens and checks an archive.
func checkZip(t testing.TB, text []byte) *verifier.Report {
	t.Helper()
	folder, err := export.OpenZip(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return export.Refused(err)
	}
	return export.Check(t.Context(), folder, trusting(t, seed), nil)
}

func mustPass(t testing.TB, what string, r *verifier.Report) {
	t.Helper()
	if r.Verdict != verifier.Pass || r.Signature.State != "TRUSTED" {
		t.Errorf("%s: %s %s", what, r.Verdict, r.Summary)
	}
	for _, c := range r.Checks {
		if c.Status != verifier.StatusPass {
			t.Errorf("%s: check %s: %s %s", what, c.Name, c.Status, c.Detail)
		}
	}
}

// TestPackedByAnyTool: however the folder was packed, it passes.
func TestPackedByAnyTool(t *testing.T) {
	t.Parallel()
	files := folder(t)
	files["index.html"].Data = nil // an empty file has the shortest descriptors
	files = resealed(t, files)
	below := fstest.MapFS{"handover/": {}, "handover/chains/": {}}
	for name, f := range files {
		below["handover/"+name] = f
	}
	for name, p := range map[string]packer{
		"plain": {}, "stream": {stream: true}, "stream without sign": {stream: true, bare: true}, "64 bits": {wide: true},
		"stream of 64 bits": {stream: true, wide: true}, "that without sign": {stream: true, wide: true, bare: true}, "times": {extra: 40},
	} {
		mustPass(t, name, checkZip(t, p.pack(files)))
		mustPass(t, name+", the folder itself", checkZip(t, p.pack(below)))
	}
	below["__MACOSX/handover/._index.html"] = &fstest.MapFile{Data: []byte("fork")}
	if r := checkZip(t, (&packer{stream: true}).pack(below)); len(r.Errors) != 1 || r.Errors[0].Code != export.CodeExtra || r.Errors[0].Where != "__MACOSX/handover/._index.html" {
		t.Errorf("a Mac's own file: %v", r.Errors)
	}
	below["beside"] = &fstest.MapFile{}
	if r := checkZip(t, (&packer{}).pack(below)); len(r.Errors) != 1 || r.Errors[0].Code != export.CodeManifest {
		t.Errorf("a file beside the folder: %v", r.Errors)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	if err := w.AddFS(files); err != nil {
		t.Fatal(err)
	}
	w.Close()
	mustPass(t, "archive/zip", checkZip(t, out.Bytes()))
}

// resealed is the export with its files as they are now.
func resealed(t testing.TB, files fstest.MapFS) fstest.MapFS {
	t.Helper()
	m, err := export.ParseManifest(files[export.ManifestFile].Data)
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string][]byte{}
	for i, f := range m.Files {
		contents[f.Path] = files[f.Path].Data
		m.Files[i] = export.Describe(f.Path, f.Role, files[f.Path].Data)
	}
	return sealed(t, m, contents)
}

// TestPackedByInstalledTools packs with what is installed here.
func TestPackedByInstalledTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "handover"), folder(t)); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for name, script := range map[string]string{
		"zip -r":          `cd handover && zip -qr ../out.zip .`,
		"zip -r, outside": `zip -qr out.zip handover`,
		"zip, stored":     `cd handover && zip -q0rX ../out.zip .`,
		"zip, 64 bits":    `cd handover && zip -q -fz -r ../out.zip .`,
		"zip, a stream":   `cd handover && zip -qr - . | cat > ../out.zip`,
		"python":          `cd handover && python3 -m zipfile -c ../out.zip chains index.html manifest.json manifest.sig`,
		"python, outside": `python3 -c "import shutil; shutil.make_archive('out', 'zip', '.', 'handover')"`,
		"python, 64 bits": `python3 -c "
import zipfile, os, sys
with zipfile.ZipFile('out.zip', 'w', zipfile.ZIP_DEFLATED) as z:
    for d, _, files in os.walk('handover'):
        for f in files:
            with z.open(os.path.relpath(os.path.join(d, f), 'handover'), 'w', force_zip64=True) as w: w.write(open(os.path.join(d, f), 'rb').read())"`,
		"python, a stream": `python3 -c "
import shutil, sys, zipfile, os
with zipfile.ZipFile(sys.stdout.buffer, 'w') as z:
    for d, _, files in os.walk('handover'):
        for f in files: z.write(os.path.join(d, f))" | cat > out.zip`,
		"bsdtar": `bsdtar -a -cf out.zip handover`, "7z": `7z a -bd out.zip ./handover/* > log`,
	} {
		if _, err := exec.LookPath(strings.Fields(strings.TrimPrefix(script, "cd handover && "))[0]); err != nil {
			continue
		}
		c := exec.CommandContext(t.Context(), "sh", "-c", script)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Logf("%s does not work here: %v %s", name, err, out)
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "out.zip"))
		if err != nil {
			t.Fatal(err)
		}
		mustPass(t, name, checkZip(t, text))
		os.Remove(filepath.Join(dir, "out.zip"))
		ran++
	}
	t.Logf("%d ways to pack", ran)
}

// TestNothingBesideTheEntries: what a ZIP file holds besides its entries, and
// what its two sets of headers tell differently, is named.
func TestNothingBesideTheEntries(t *testing.T) {
	t.Parallel()
	files := folder(t)
	whole := (&packer{}).pack(files)
	hidden := string((&packer{}).pack(fstest.MapFS{"index.html": {Data: []byte("<h1>other")}}))
	hidden = hidden[:strings.Index(hidden, "PK\x01\x02")]
	with := func(change func(fstest.MapFS)) []byte {
		f := folder(t)
		change(f)
		return (&packer{}).pack(f)
	}
	first := func(text string) func(int) string {
		return func(i int) string { return map[bool]string{true: text}[i == 0] }
	}
	for name, c := range map[string]struct {
		text []byte
		says string
	}{
		"hidden entry in front":   {append([]byte(hidden), whole...), "has bytes in front of its entries"},
		"offsets allow for it":    {(&packer{before: first(hidden)}).pack(files), "bytes in front of it that belong to no file"},
		"between entries":         {(&packer{before: func(i int) string { return map[bool]string{true: "x"}[i == 2] }}).pack(files), "has 1 bytes in front of it that belong to no file"},
		"behind the last entry":   {(&packer{behind: hidden}).pack(files), "bytes in front of it that belong to no file"},
		"garbage behind the end":  {(&packer{end: "x"}).pack(files), "behind its directory"},
		"a whole archive behind":  {append(bytes.Clone(whole), 'P', 'K'), "behind its directory"},
		"comment":                 {commented(t, files, "note", ""), "comment behind its directory"},
		"comment of an entry":     {commented(t, files, "", "note"), "has a comment"},
		"another name in front":   {(&packer{local: func(n string) string { return strings.Replace(n, "index.html", "\x1b[2Kx.html", 1) }}).pack(files), `index.html: is named \x1b[2Kx.html by the header`},
		"large extra field":       {(&packer{extra: 300}).pack(files), "extra fields of more than 256 bytes"},
		"directory with content":  {with(func(f fstest.MapFS) { f["secret/"] = &fstest.MapFile{Data: []byte("payload")} }), "secret/: is a directory with content"},
		"directory like a file":   {with(func(f fstest.MapFS) { f["index.html/"] = &fstest.MapFile{} }), "index.html: is a directory, too"},
		"one content for entries": {overlapping(t, files), "shares bytes with the entry before it"},
		"other flags in front":    {patched(whole, 6, 1), "or flags in the header in front of it"},
		"other checksum in front": {patched(whole, 14, 1), "or flags in the header in front of it"},
		"other size in front":     {patched(whole, 22, 1), "or flags in the header in front of it"},
		"other descriptor":        {patched((&packer{stream: true}).pack(files), 30+len("chains/0001-a/x.evidence.json")+len(files["chains/0001-a/x.evidence.json"].Data)+4, 1), "is not followed by its sizes"},
	} {
		r := checkZip(t, c.text)
		i := slices.IndexFunc(r.Errors, func(f verifier.Finding) bool { return f.Code == export.CodeArchive })
		if i < 0 || r.ExitCode != verifier.ExitEnvelope || r.Verdict != verifier.Broken {
			t.Errorf("%s: exit %d, %s %s", name, r.ExitCode, r.Verdict, r.Summary)
		} else if !strings.Contains(r.Errors[i].Detail, c.says) {
			t.Errorf("%s: %q does not say %q", name, r.Errors[i].Detail, c.says)
		}
	}
}

func patched(text []byte, at int, add byte) []byte {
	out := bytes.Clone(text)
	out[at] += add
	return out
}

// commented has a comment on the archive, on an entry, or both.
func commented(t *testing.T, files fstest.MapFS, archive, entry string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, file := range files {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Comment: entry})
		if err != nil {
			t.Fatal(err)
		}
		f.Write(file.Data)
	}
	if err := w.SetComment(archive); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return out.Bytes()
}

// overlapping has an entry inside of the content of another one: its header
// and content are what the listed file holds.
func overlapping(t *testing.T, files fstest.MapFS) []byte {
	t.Helper()
	inner := (&packer{}).pack(fstest.MapFS{"z": {Data: []byte("twice")}})
	central := bytes.Index(inner, []byte("PK\x01\x02"))
	f := fstest.MapFS{}
	for name, file := range files {
		f[name] = file
	}
	f["a"] = &fstest.MapFile{Data: inner[:central]}
	text := (&packer{}).pack(f)
	end := len(text) - 22
	begin := int(le.Uint32(text[end+16:]))
	record := bytes.Clone(inner[central : central+46+1])
	le.PutUint32(record[42:], 30+1) // behind the header of "a", the first entry
	out := append(bytes.Clone(text[:end]), record...)
	out = append(out, text[end:]...)
	tail := out[len(out)-22:]
	le.PutUint16(tail[8:], le.Uint16(tail[8:])+1)
	le.PutUint16(tail[10:], le.Uint16(tail[10:])+1)
	le.PutUint32(tail[12:], uint32(len(out)-22-begin))
	return out
}

// TestEveryByteOfAnArchive: no flipped byte and no prefix passes with another
// content; times and versions may differ.
func TestEveryByteOfAnArchive(t *testing.T) {
	t.Parallel()
	whole := (&packer{stream: true}).pack(tiny(t))
	if r := checkZip(t, whole); len(r.Errors) > 0 {
		t.Fatal(r.Summary)
	}
	for i := range whole {
		for _, text := range [][]byte{whole[:i], append(bytes.Clone(whole[:i]), whole[i+1:]...), append(append(bytes.Clone(whole[:i]), 'x'), whole[i:]...)} {
			if r := checkZip(t, text); len(r.Errors) == 0 {
				t.Fatalf("byte %d of %d: %s", i, len(whole), r.Summary)
			}
		}
	}
}

// TestOddNamesAreExtra: the same finding in a directory, an archive and the
// page's folder.
func TestOddNamesAreExtra(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".DS_Store", "a b.txt", "\x1b[2KPASS\u202e.txt", "INDEX.HTML", "chains/.hidden", "é", "__proto__", "con", strings.Repeat("n", 600)} {
		files := folder(t)
		files[name] = &fstest.MapFile{Data: []byte("x")}
		want := export.Check(t.Context(), files, trusting(t, seed), nil)
		if len(want.Errors) != 1 || want.Errors[0].Code != export.CodeExtra || strings.ContainsAny(want.Errors[0].Detail, "\x1b\u202e") || len(want.Errors[0].Detail) > 500 {
			t.Errorf("%q: %v", name, want.Errors)
		}
		zipped := checkZip(t, (&packer{}).pack(files))
		var added export.Folder
		for path, f := range files {
			if err := added.Add(path, int64(len(f.Data)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.Data)), nil }); err != nil {
				t.Fatal(err)
			}
		}
		browser := export.Check(t.Context(), &added, trusting(t, seed), nil)
		if !slices.EqualFunc(want.Errors, zipped.Errors, sameFinding) || !slices.EqualFunc(want.Errors, browser.Errors, sameFinding) {
			t.Errorf("%q: directory %v\narchive %v\nfolder %v", name, want.Errors, zipped.Errors, browser.Errors)
		}
	}
}

func sameFinding(a, b verifier.Finding) bool {
	return a.Code == b.Code && a.Detail == b.Detail && a.Where == b.Where
}

func TestNoManifestIsNoExport(t *testing.T) {
	t.Parallel()
	files := folder(t)
	delete(files, export.ManifestFile)
	files["odd name"] = &fstest.MapFile{}
	for name, r := range map[string]*verifier.Report{
		"directory": export.Check(t.Context(), files, trusting(t, seed), nil), "archive": checkZip(t, (&packer{}).pack(files)),
		"folder": export.Check(t.Context(), &export.Folder{}, trusting(t, seed), nil), "empty archive": checkZip(t, (&packer{}).pack(nil)),
	} {
		if len(r.Errors) != 1 || r.Errors[0].Code != export.CodeManifest || r.Errors[0].Detail != "manifest.json: there is no manifest.json: this is no export" {
			t.Errorf("%s: %v", name, r.Errors)
		}
	}
	if !export.IsZip((&packer{}).pack(nil)) {
		t.Error("an empty archive is not known as one")
	}
}

// tiny is a signed export without evidence, of some hundred bytes.
func tiny(t testing.TB) fstest.MapFS {
	m := &export.Manifest{Export: export.FormatName, Files: []export.File{export.Describe("index.html", export.RoleReport, []byte("<p>"))}}
	return sealed(t, m, map[string][]byte{"index.html": []byte("<p>")})
}

// FuzzOpenZip: an archive in which nothing is found has the files of the export,
// for a reader that goes through it from its beginning, too.
func FuzzOpenZip(f *testing.F) {
	for _, p := range []packer{{}, {stream: true}, {stream: true, wide: true, bare: true}, {extra: 9}} {
		f.Add(p.pack(tiny(f)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		folder, err := export.OpenZip(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			return
		}
		if r := export.Check(t.Context(), folder, verifier.Options{}, nil); len(r.Errors) > 0 {
			return
		}
		if !export.IsZip(text) || string(text[len(text)-22:len(text)-18]) != "PK\x05\x06" {
			t.Error("it does not begin with an entry and end with the end of the directory")
		}
	})
}
