package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/verifier"
)

// Kind is the kind of report that [Check] gives.
const Kind verifier.Kind = "export"

// Codes of findings, beside those of package verifier for signatures.
const (
	CodeManifest  verifier.Code = "export_manifest"  // missing or not readable
	CodeMissing   verifier.Code = "export_missing"   // listed, not there
	CodeAltered   verifier.Code = "export_altered"   // size or digest differ
	CodeSwapped   verifier.Code = "export_swapped"   // holds what is listed for another path
	CodeExtra     verifier.Code = "export_extra"     // there, not listed
	CodeOther     verifier.Code = "export_other"     // evidence of another chain than it is listed for
	CodeContent   verifier.Code = "export_content"   // a file's own verdict is no pass
	CodeUnreached verifier.Code = "export_unreached" // the folder or a file cannot be read
)

// maxListed bounds the findings of one code that a report lists.
const maxListed = 50

// Check checks a whole export. Trust, RequireSigned and AllowUnsigned of o hold
// for the manifest and for every file; options that ask for one run, head or
// plan make the report say bad_options. visit, unless nil, is called with the
// report on each evidence and trust bundle, in the order of their paths, before
// Check returns.
func Check(ctx context.Context, folder fs.FS, o verifier.Options, visit func(path string, r *verifier.Report)) *verifier.Report {
	c := &checking{ctx: ctx, folder: folder, o: o, visit: visit, report: &verifier.Report{Kind: Kind, Mode: verifier.Strict}, stopped: "the manifest could not be read"}
	if visit == nil {
		c.visit = func(string, *verifier.Report) {}
	}
	c.run()
	c.conclude()
	return c.report
}

// checking is one check under way.
type checking struct {
	ctx    context.Context
	folder fs.FS
	o      verifier.Options
	visit  func(string, *verifier.Report)
	report *verifier.Report

	manifest *Manifest
	stopped  string // why later checks were skipped; "": they ran
	counts   map[verifier.Code]uint64
	sums     map[string]string // digest of each file that was read, by path
	origins  map[string]origin // what each evidence file that was decoded says it is
	own      int               // exit code of what is wrong with the export itself
	worst    int               // of the files
	verdicts int               // files verified
	failing  int               // of them, no pass
	broken   bool              // something else is wrong than who signed
}

func (c *checking) run() {
	if !c.options() {
		return
	}
	text, err := c.read(ManifestFile, MaxManifestBytes)
	if err == nil {
		c.manifest, err = ParseManifest(text)
	}
	if err != nil {
		c.fail(CodeManifest, ManifestFile, verifier.ExitEnvelope, explain(err))
		return
	}
	c.stopped = ""
	c.signature(text)
	c.files()
	c.extras()
	c.chains()
}

// options refuses what only a single file can answer to.
func (c *checking) options() bool {
	if err := c.o.Validate(); err != nil {
		c.fail(verifier.CodeBadOptions, "", verifier.ExitUsage, err.Error())
		return false
	}
	if c.o.RunID != "" || c.o.Artifact != nil || c.o.ExpectHead != nil || c.o.ExpectPlan != "" || c.o.ExpectOutcome != "" || c.o.Mode == verifier.Reference {
		c.stopped = "the options are not for an export"
		c.fail(verifier.CodeBadOptions, "", verifier.ExitUsage, "an export is checked as a whole: a run, head, plan, outcome or reference mode is asked of one file")
		return false
	}
	return true
}

func (c *checking) signature(manifest []byte) {
	text, err := c.read(SignatureFile, maxSignatureFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		text = []byte{}
	}
	claim, fault := examine(manifest, text)
	s := &c.report.Signature
	s.State = keys.Judge(claim, c.o.Trust)
	if claim != nil && claim.Key != (keys.PublicKey{}) {
		s.PublicKey, s.KeyID = claim.Key.String(), claim.Key.ID()
		if e, listed := c.o.Trust.Lookup(claim.Key); listed {
			s.Comment = e.Comment
		}
	}
	switch {
	case fault != nil:
		c.fail(verifier.CodeSignatureInvalid, SignatureFile, verifier.ExitEnvelope, fault.Error())
	case claim == nil && c.o.RequireSigned:
		c.fail(verifier.CodeSignatureNeeded, SignatureFile, verifier.ExitEnvelope, "the manifest is not signed")
	case s.State.Refused(c.o.Trust != nil, c.o.AllowUnsigned):
		c.fail(refusal(s.State), SignatureFile, verifier.ExitEnvelope, "the manifest's signature is "+string(s.State))
	}
}

func refusal(s keys.State) verifier.Code {
	switch s {
	case keys.StateUnsigned:
		return verifier.CodeSignatureNeeded
	case keys.StateRevoked:
		return verifier.CodeRevokedKey
	}
	return verifier.CodeUntrustedKey
}

// files reads every listed file once: digest, and for evidence the verdict.
func (c *checking) files() {
	c.sums, c.origins = map[string]string{}, map[string]origin{}
	paths := make(map[string][]string, len(c.manifest.Files)) // by listed digest
	for _, f := range c.manifest.Files {
		paths[f.SHA256] = append(paths[f.SHA256], f.Path)
	}
	for _, f := range c.manifest.Files {
		got, size, err := c.one(f)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.fail(CodeMissing, f.Path, verifier.ExitEnvelope, "listed, and not there")
		case err != nil:
			c.fail(CodeUnreached, f.Path, verifier.ExitEnvelope, "cannot be read")
		case got == f.SHA256 && size == f.Bytes:
		case len(paths[got]) > 0:
			c.fail(CodeSwapped, f.Path, verifier.ExitEnvelope, "holds what is listed for "+paths[got][0])
		default:
			c.fail(CodeAltered, f.Path, verifier.ExitEnvelope, fmt.Sprintf("has %d bytes with digest %s, listed are %d and %s", size, got, f.Bytes, f.SHA256))
		}
	}
}

// one reads a file to its end, verifying it on the way if it is evidence.
func (c *checking) one(f File) (sum string, size int64, err error) {
	if err := c.ctx.Err(); err != nil {
		return "", 0, err
	}
	file, err := c.folder.Open(f.Path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", 0, fmt.Errorf("%w: no plain file", ErrArchive)
	}
	t := &tally{r: file, hash: sha256.New()}
	if f.Role == RoleEvidence || f.Role == RoleBundle {
		c.verdict(f.Path, verifier.File(c.ctx, t, c.o))
	}
	if _, err := io.Copy(io.Discard, t); err != nil {
		return "", 0, err
	}
	sum = hex.EncodeToString(t.hash.Sum(nil))
	c.sums[f.Path] = sum
	return sum, t.size, nil
}

// tally hashes what is read.
type tally struct {
	r    io.Reader
	hash hash.Hash
	size int64
}

func (t *tally) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.hash.Write(p[:n])
	t.size += int64(n)
	return n, err
}

func (c *checking) verdict(path string, r *verifier.Report) {
	c.verdicts++
	c.worst = verifier.WorstExit(c.worst, r.ExitCode)
	c.broken = c.broken || r.ExitCode == verifier.ExitEnvelope && r.Verdict != verifier.Untrusted
	switch {
	case r.ComputedHead != nil && r.Scope != nil:
		c.origins[path] = origin{r.Scope.TenantID, r.Scope.PromptHash, r.Scope.ExecuteSessionID, r.ComputedHead.String()}
	case r.Content != nil && r.Content.Run != nil:
		run := r.Content.Run
		c.origins[path] = origin{run.Tenant, run.PromptHash, run.Session, run.Head}
	}
	if r.ExitCode != verifier.ExitPass {
		c.failing++
		c.list(CodeContent, path, string(r.Verdict)+": "+r.Summary, r.ExitCode == verifier.ExitDegraded)
	}
	c.visit(path, r)
}

// extras finds files that are not listed.
func (c *checking) extras() {
	names, err := list(c.folder)
	if err != nil {
		c.fail(CodeUnreached, "", verifier.ExitEnvelope, "the folder cannot be listed")
		return
	}
	slices.Sort(names)
	for _, name := range names {
		if name == ManifestFile || name == SignatureFile {
			continue
		}
		_, listed := slices.BinarySearchFunc(c.manifest.Files, name, func(f File, name string) int { return strings.Compare(f.Path, name) })
		if !listed {
			c.fail(CodeExtra, name, verifier.ExitEnvelope, "there, and not listed")
		}
	}
}

// list names all files of a folder. Links and other special files count: they
// belong to no export.
func list(folder fs.FS) ([]string, error) {
	if f, ok := folder.(*Folder); ok {
		return f.names(), nil
	}
	var names []string
	err := fs.WalkDir(folder, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			names = append(names, path)
		}
		if len(names) > MaxFiles+2 {
			return ErrArchive
		}
		return nil
	})
	return names, err
}

// origin is where evidence says it comes from.
type origin struct{ tenant, promptHash, session, head string }

// chains compares the evidence with the chain that it is listed for. Evidence
// that does not say where it comes from has failed already.
func (c *checking) chains() {
	for _, chain := range c.manifest.Chains {
		want := origin{chain.Tenant, chain.PromptHash, chain.Session, ""}
		if chain.Head != nil {
			want.head = *chain.Head
		}
		for _, path := range []*string{chain.Evidence, chain.Bundle} {
			if path == nil {
				continue
			}
			if got, known := c.origins[*path]; known && got != want {
				c.fail(CodeOther, *path, verifier.ExitEnvelope, "is evidence of another chain than it is listed for")
			}
		}
	}
}
