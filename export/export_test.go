package export_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chaind/chaind/export"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/verifier"
)

const seed = "0707070707070707070707070707070707070707070707070707070707070707"

func signer(t testing.TB, text string) *keys.Signer {
	t.Helper()
	s, err := keys.ParseSigner(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func vector(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../testdata/plasm", name, "bundle.json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// chainOf lists a vector as a chain.
func chainOf(t testing.TB, text []byte, path string) export.Chain {
	t.Helper()
	b, _, err := segments.ReadBundle(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	head := b.Head.String()
	return export.Chain{Tenant: b.Scope.TenantID, PromptHash: b.Scope.PromptHash, Session: b.Scope.ExecuteSessionID, Chain: "c1",
		Outcome: "succeeded", Conformity: "conforming", Segments: int64(len(b.Segments)), Head: &head, Evidence: &path}
}

// folder is a signed export of two chains.
func folder(t testing.TB) fstest.MapFS {
	t.Helper()
	files := map[string][]byte{"index.html": []byte("<p>report"), "chains/0001-a/x.evidence.json": vector(t, "p02-full-run-signed"),
		"chains/0002-b/y.evidence.json": vector(t, "p03-two-run-shared-transcript")}
	m := export.Manifest{Export: export.FormatName, CreatedMS: 1, Selection: export.Selection{What: "all"}}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		role := export.RoleReport
		if strings.HasSuffix(path, ".json") {
			role = export.RoleEvidence
			m.Chains = append(m.Chains, chainOf(t, files[path], path))
		}
		m.Files = append(m.Files, export.Describe(path, role, files[path]))
	}
	return sealed(t, &m, files)
}

// sealed writes manifest and signature beside the files.
func sealed(t testing.TB, m *export.Manifest, files map[string][]byte) fstest.MapFS {
	t.Helper()
	text, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := export.Sign(signer(t, seed), text)
	if err != nil {
		t.Fatal(err)
	}
	out := fstest.MapFS{export.ManifestFile: {Data: text}, export.SignatureFile: {Data: sig}}
	for path, content := range files {
		out[path] = &fstest.MapFile{Data: content}
	}
	return out
}

func trusting(t testing.TB, seeds ...string) verifier.Options {
	t.Helper()
	var entries []keys.Entry
	for _, s := range seeds {
		entries = append(entries, keys.Entry{PublicKey: signer(t, s).Public(), Status: keys.Active})
	}
	list, _, err := keys.Merge(entries)
	if err != nil {
		t.Fatal(err)
	}
	return verifier.Options{Trust: list, AllowUnsigned: true}
}

func TestWholeExportPasses(t *testing.T) {
	t.Parallel()
	var seen []string
	r := export.Check(t.Context(), folder(t), trusting(t, seed), func(path string, r *verifier.Report) {
		seen = append(seen, path+" "+string(r.Verdict))
	})
	if r.ExitCode != verifier.ExitPass || r.Signature.State != keys.StateTrusted || r.Kind != export.Kind {
		t.Errorf("%d %s %s", r.ExitCode, r.Verdict, r.Summary)
	}
	if want := []string{"chains/0001-a/x.evidence.json PASS", "chains/0002-b/y.evidence.json PASS"}; !slices.Equal(seen, want) {
		t.Errorf("reports on %q", seen)
	}
	for _, c := range r.Checks {
		if want := map[string]verifier.Status{"archive": verifier.StatusNotApplicable}[c.Name]; c.Status != cmp.Or(want, verifier.StatusPass) {
			t.Errorf("check %s: %s %s", c.Name, c.Status, c.Detail)
		}
	}
}

// TestChangesAreFindings changes one thing at a time.
func TestChangesAreFindings(t *testing.T) {
	t.Parallel()
	const a, b = "chains/0001-a/x.evidence.json", "chains/0002-b/y.evidence.json"
	other := strings.Repeat("0b", 32)
	for name, c := range map[string]struct {
		change  func(f fstest.MapFS)
		options verifier.Options
		code    verifier.Code
		exit    int
		verdict verifier.Verdict
	}{
		"missing":           {func(f fstest.MapFS) { delete(f, a) }, trusting(t, seed), export.CodeMissing, 4, verifier.Broken},
		"extra":             {func(f fstest.MapFS) { f["chains/0003-c/z.json"] = &fstest.MapFile{} }, trusting(t, seed), export.CodeExtra, 4, verifier.Broken},
		"hidden extra":      {func(f fstest.MapFS) { f[".hidden"] = &fstest.MapFile{} }, trusting(t, seed), export.CodeExtra, 4, verifier.Broken},
		"swapped":           {func(f fstest.MapFS) { f[a], f[b] = f[b], f[a] }, trusting(t, seed), export.CodeSwapped, 4, verifier.Broken},
		"altered report":    {func(f fstest.MapFS) { f["index.html"] = &fstest.MapFile{Data: []byte("<p>rep0rt")} }, trusting(t, seed), export.CodeAltered, 4, verifier.Broken},
		"pipe":              {func(f fstest.MapFS) { f[a] = &fstest.MapFile{Mode: os.ModeNamedPipe | 0o777} }, trusting(t, seed), export.CodeUnreached, 4, verifier.Broken},
		"no manifest":       {func(f fstest.MapFS) { delete(f, export.ManifestFile) }, trusting(t, seed), export.CodeManifest, 4, verifier.Broken},
		"no signature":      {func(f fstest.MapFS) { delete(f, export.SignatureFile) }, verifier.Options{Trust: trusting(t, seed).Trust}, verifier.CodeSignatureNeeded, 4, verifier.Untrusted},
		"signature needed":  {func(f fstest.MapFS) { delete(f, export.SignatureFile) }, verifier.Options{RequireSigned: true}, verifier.CodeSignatureNeeded, 4, verifier.Untrusted},
		"other signer":      {func(fstest.MapFS) {}, trusting(t, other), verifier.CodeUntrustedKey, 4, verifier.Untrusted},
		"garbage signature": {func(f fstest.MapFS) { f[export.SignatureFile] = &fstest.MapFile{Data: []byte("{}")} }, trusting(t, seed), verifier.CodeSignatureInvalid, 4, verifier.Broken},
		"huge signature":    {func(f fstest.MapFS) { f[export.SignatureFile] = &fstest.MapFile{Data: make([]byte, 1<<20)} }, trusting(t, seed), verifier.CodeSignatureInvalid, 4, verifier.Broken},
		"a run is asked":    {func(fstest.MapFS) {}, verifier.Options{RunID: "x"}, verifier.CodeBadOptions, 64, verifier.NotRun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := folder(t)
			c.change(f)
			r := export.Check(t.Context(), f, c.options, nil)
			if r.ExitCode != c.exit || r.Verdict != c.verdict || !slices.Contains(verifier.Codes(r.Errors), c.code) {
				t.Errorf("exit %d, %s, %v: %s", r.ExitCode, r.Verdict, verifier.Codes(r.Errors), r.Summary)
			}
			if bytes.Contains(r.AppendJSON(nil), []byte("\x1b")) {
				t.Error("the report has a control character")
			}
		})
	}
}

// TestEveryFlippedByteOfTheManifest: no change of the signed list goes unseen.
func TestEveryFlippedByteOfTheManifest(t *testing.T) {
	t.Parallel()
	f := folder(t)
	manifest := f[export.ManifestFile].Data
	for i := range manifest {
		changed := bytes.Clone(manifest)
		changed[i] ^= 1
		f[export.ManifestFile] = &fstest.MapFile{Data: changed}
		if r := export.Check(t.Context(), f, trusting(t, seed), nil); r.ExitCode != verifier.ExitEnvelope {
			t.Fatalf("byte %d: exit %d %s", i, r.ExitCode, r.Summary)
		}
	}
	for i := range manifest {
		if _, err := export.ParseManifest(manifest[:i]); err == nil {
			t.Fatalf("the first %d bytes are read as a manifest", i)
		}
	}
}

// TestResignedForgeries: who may sign may not list evidence for another chain,
// nor hide that a bundle fails.
func TestResignedForgeries(t *testing.T) {
	t.Parallel()
	const path = "e.evidence.json"
	for name, c := range map[string]struct {
		text []byte
		bend func(*export.Chain)
		code verifier.Code
		exit int
	}{
		"other session": {vector(t, "p02-full-run-signed"), func(c *export.Chain) { c.Session = strings.Repeat("a", 32) }, export.CodeOther, 4},
		"other head":    {vector(t, "p02-full-run-signed"), func(c *export.Chain) { h := strings.Repeat("a", 64); c.Head = &h }, export.CodeOther, 4},
		"tampered":      {vector(t, "n03-payload-tampered"), func(*export.Chain) {}, export.CodeContent, 4},
		"no plan":       {vector(t, "n09-no-comp"), func(*export.Chain) {}, export.CodeContent, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chain := chainOf(t, c.text, path)
			c.bend(&chain)
			m := &export.Manifest{Export: export.FormatName, Chains: []export.Chain{chain}, Files: []export.File{export.Describe(path, export.RoleEvidence, c.text)}}
			r := export.Check(t.Context(), sealed(t, m, map[string][]byte{path: c.text}), verifier.Options{}, nil)
			if r.ExitCode != c.exit || !slices.Contains(verifier.Codes(r.Errors), c.code) {
				t.Errorf("exit %d, %v: %s", r.ExitCode, verifier.Codes(r.Errors), r.Summary)
			}
		})
	}
}

func TestNothingIsNoPass(t *testing.T) {
	t.Parallel()
	m := &export.Manifest{Export: export.FormatName}
	r := export.Check(t.Context(), sealed(t, m, nil), verifier.Options{}, nil)
	if r.ExitCode != verifier.ExitDegraded || r.Verdict != verifier.Empty {
		t.Errorf("an export without evidence: exit %d %s %s", r.ExitCode, r.Verdict, r.Summary)
	}
}

// TestRefusedBundles: what the daemon did not give is never a pass, and what else
// is wrong still counts.
func TestRefusedBundles(t *testing.T) {
	t.Parallel()
	const path, place = "e.evidence.json", "f.evidence.refused.json"
	answer := []byte(`{"title":"Evidence verification failed"}`)
	for name, c := range map[string]struct {
		text    []byte
		code    verifier.Code
		verdict verifier.Verdict
		exit    int
	}{
		"beside a pass":    {vector(t, "p02-full-run-signed"), export.CodeRefused, verifier.Degraded, verifier.ExitDegraded},
		"beside a failure": {vector(t, "n09-no-comp"), export.CodeRefused, verifier.Fail, verifier.ExitSemantic},
		"alone":            {nil, export.CodeRefused, verifier.Empty, verifier.ExitDegraded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string][]byte{place: answer}
			m := &export.Manifest{Export: export.FormatName, Files: []export.File{export.Describe(place, export.RoleRefused, answer)}}
			if c.text != nil {
				files[path] = c.text
				m.Chains = append(m.Chains, chainOf(t, c.text, path))
				m.Files = append(m.Files, export.Describe(path, export.RoleEvidence, c.text))
			}
			r := export.Check(t.Context(), sealed(t, m, files), verifier.Options{}, nil)
			if r.ExitCode != c.exit || r.Verdict != c.verdict || !slices.Contains(verifier.Codes(r.Warnings), c.code) {
				t.Errorf("exit %d %s, %v: %s", r.ExitCode, r.Verdict, verifier.Codes(r.Warnings), r.Summary)
			}
		})
	}
}

func TestManifestsAreReadStrictly(t *testing.T) {
	t.Parallel()
	const head = `{"export":"chaind-export-1","created_ms":1,"selection":{"what":""},"chains":[],"files":[`
	file := func(path string) string {
		return `{"path":"` + path + `","bytes":0,"sha256":"` + strings.Repeat("0", 64) + `","role":"report"}`
	}
	for _, text := range []string{
		``, `{}`, `[]`, `null`, head + `]}x`, head + `]} {}`, "\ufeff" + head + `]}`,
		strings.Replace(head, "chaind-export-1", "chaind-export-2", 1) + `]}`,
		strings.Replace(head, `"created_ms":1`, `"created_ms":1.5`, 1) + `]}`,
		strings.Replace(head, `"created_ms":1`, `"created_ms":-1`, 1) + `]}`,
		strings.Replace(head, `"created_ms":1`, `"created_ms":9007199254740992`, 1) + `]}`,
		strings.Replace(head, `"created_ms":1`, `"created_ms":1,"created_ms":1`, 1) + `]}`,
		strings.Replace(head, `"created_ms":1`, `"created_ms":1,"more":1`, 1) + `]}`,
		head + file("../up") + `]}`, head + file("/etc/passwd") + `]}`, head + file("a/../b") + `]}`, head + file("a//b") + `]}`, head + file(`a\\b`) + `]}`,
		head + file("manifest.json") + `]}`, head + file("a.") + `]}`, head + file("c:x") + `]}`, head + file("") + `]}`, head + file(strings.Repeat("a", 500)) + `]}`,
		head + file("b") + "," + file("a") + `]}`, head + file("a") + "," + file("a") + `]}`, head + file("A") + "," + file("a") + `]}`,
		head + strings.Replace(file("a"), "report", "other", 1) + `]}`, head + strings.Replace(file("a"), `"bytes":0`, `"bytes":"0"`, 1) + `]}`,
		strings.Replace(head, `"chains":[]`, `"chains":[{"tenant":"","prompt_hash":"","session":"","chain":"","outcome":"","conformity":"","segments":0,"head":null,"evidence":"gone","bundle":null}]`, 1) + `]}`,
	} {
		if m, err := export.ParseManifest([]byte(text)); err == nil || m != nil {
			t.Errorf("read: %s", text)
		}
	}
	if _, err := export.ParseManifest([]byte(head + file("A-b_1.x") + "," + file("a/b") + `]}`)); err != nil {
		t.Error(err)
	}
}

// zipped packs entries as they are given.
func zipped(t testing.TB, entries ...*zip.FileHeader) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, h := range entries {
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(h.Name, "/") {
			fmt.Fprint(f, h.Comment)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestArchivesThatAreRefused(t *testing.T) {
	t.Parallel()
	link := &zip.FileHeader{Name: "link"}
	link.SetMode(os.ModeSymlink | 0o777)
	for name, text := range map[string][]byte{
		"no archive": []byte("PK\x03\x04 and nothing else"),
		"up":         zipped(t, &zip.FileHeader{Name: "../x"}), "absolute": zipped(t, &zip.FileHeader{Name: "/x"}), "drive": zipped(t, &zip.FileHeader{Name: "c:/x"}),
		"backslash": zipped(t, &zip.FileHeader{Name: `a\b`}), "dot": zipped(t, &zip.FileHeader{Name: "./x"}), "directory up": zipped(t, &zip.FileHeader{Name: "../"}),
		"twice": zipped(t, &zip.FileHeader{Name: "x"}, &zip.FileHeader{Name: "x"}), "directory twice": zipped(t, &zip.FileHeader{Name: "x/"}, &zip.FileHeader{Name: "x/"}),
		"link": zipped(t, link), "nothing in a name": zipped(t, &zip.FileHeader{Name: "a\x00b"}), "up, coloured": zipped(t, &zip.FileHeader{Name: "\x1b[2K/../\u202e"}),
		"long": zipped(t, &zip.FileHeader{Name: strings.Repeat("\x1b", 5000)}),
	} {
		_, err := export.OpenZip(bytes.NewReader(text), int64(len(text)))
		if !errors.Is(err, export.ErrArchive) {
			t.Errorf("%s: %v", name, err)
		} else if text := err.Error(); strings.ContainsAny(text, "\x00\x1b\u202e") || len(text) > 2000 {
			t.Errorf("%s: the name is shown as it is: %q", name, text)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add(folder(f)[export.ManifestFile].Data)
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := export.ParseManifest(text)
		if err != nil {
			return
		}
		again, err := m.Append(nil)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := export.ParseManifest(again); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFuzzCorpusIsThere(t *testing.T) {
	t.Parallel()
	for target, least := range map[string]int{"FuzzParseManifest": 3, "FuzzOpenZip": 4} {
		seeds, err := filepath.Glob("testdata/fuzz/" + target + "/*")
		if err != nil || len(seeds) < least {
			t.Errorf("%s: %d seeds, %v", target, len(seeds), err)
		}
	}
}
