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
	CodeRefused   verifier.Code = "export_refused"   // what the exporting daemon has and did not give
	CodeDiffers   verifier.Code = "export_differs"   // the manifest says else of a chain than its evidence
	CodeArchive   verifier.Code = "export_archive"   // a ZIP file is more than its entries
	CodeUnreached verifier.Code = "export_unreached" // the folder or a file cannot be read
)

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
	packed   bool   // it is a ZIP file
	stopped  string // why later checks were skipped; "": they ran
	counts   map[verifier.Code]uint64
	notes    map[string]verifier.Check // of checks that found nothing, by name
	origins  map[string]origin         // what each evidence file that was decoded says it is
	amounts  map[string]amount         // what each evidence file that holds amounts to
	own      int                       // exit code of what is wrong with the export itself
	worst    int                       // of the files
	verdicts int                       // files verified
	failing  int                       // of them, no pass
	broken   bool                      // something else is wrong than who signed
}

func (c *checking) run() {
	if !c.options() {
		return
	}
	c.archive()
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
	if err := c.ctx.Err(); err != nil {
		c.stopped = "the check was called off"
		c.fail(verifier.CodeInterrupted, "", verifier.ExitNotRun, c.stopped)
		return
	}
	c.extras()
	c.chains()
}

// archive reports what [OpenZip] found.
func (c *checking) archive() {
	f, ok := c.folder.(*Folder)
	if !ok {
		return
	}
	c.packed = f.packed
	for _, fault := range f.faults {
		c.fail(CodeArchive, fault.path, verifier.ExitEnvelope, fault.detail)
	}
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

// files reads every listed file once: digest, and for evidence the verdict.
func (c *checking) files() {
	c.origins, c.amounts = map[string]origin{}, map[string]amount{}
	paths := make(map[string][]string, len(c.manifest.Files)) // by listed digest
	for _, f := range c.manifest.Files {
		paths[f.SHA256] = append(paths[f.SHA256], f.Path)
	}
	for _, f := range c.manifest.Files {
		if c.ctx.Err() != nil {
			return
		}
		got, size, err := c.one(f)
		switch {
		case c.ctx.Err() != nil:
			return
		case errors.Is(err, fs.ErrNotExist):
			c.fail(CodeMissing, f.Path, verifier.ExitEnvelope, "listed, and not there")
		case err != nil:
			c.fail(CodeUnreached, f.Path, verifier.ExitEnvelope, whyNot(err))
		case got == f.SHA256 && size == f.Bytes:
		case len(paths[got]) > 0:
			c.fail(CodeSwapped, f.Path, verifier.ExitEnvelope, "holds what is listed for "+paths[got][0])
		case got == "":
			c.fail(CodeAltered, f.Path, verifier.ExitEnvelope, fmt.Sprintf("has %d bytes, listed are %d; it was not read", size, f.Bytes))
		default:
			c.fail(CodeAltered, f.Path, verifier.ExitEnvelope, fmt.Sprintf("has %d bytes with digest %s, listed are %d and %s", size, got, f.Bytes, f.SHA256))
		}
	}
}

var errSpecial = errors.New("no plain file")

// one reads a file to its end, verifying it on the way if it is evidence. One
// that is far larger than listed is not read, and has no digest.
func (c *checking) one(f File) (sum string, size int64, err error) {
	file, stated, err := c.open(f.Path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	if stated != f.Bytes && stated > maxMislisted {
		return "", stated, nil
	}
	t := &tally{ctx: c.ctx, r: io.LimitReader(file, max(f.Bytes, maxMislisted)+1), hash: sha256.New()}
	if f.Role == RoleEvidence || f.Role == RoleBundle {
		c.verdict(f.Path, verifier.File(c.ctx, t, c.o))
	}
	if f.Role == RoleRefused {
		c.own = verifier.WorstExit(c.own, verifier.ExitDegraded)
		c.list(CodeRefused, f.Path, "the exporting daemon did not give what belongs here, and this is its answer", true)
	}
	if _, err := io.Copy(io.Discard, t); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(t.hash.Sum(nil)), t.size, nil
}

// open opens a plain file and gives its size. What is known to be something
// else is not opened: that of a pipe waits for its other end.
func (c *checking) open(path string) (fs.File, int64, error) {
	if f, ok := c.folder.(fs.ReadLinkFS); ok {
		info, err := f.Lstat(path)
		if err != nil {
			return nil, 0, err
		}
		if !info.Mode().IsRegular() {
			return nil, 0, errSpecial
		}
	}
	file, err := c.folder.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errSpecial
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// tally hashes what is read, until ctx ends.
type tally struct {
	ctx  context.Context
	r    io.Reader
	hash hash.Hash
	size int64
}

func (t *tally) Read(p []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := t.r.Read(p)
	t.hash.Write(p[:n])
	t.size += int64(n)
	return n, err
}

func (c *checking) verdict(path string, r *verifier.Report) {
	c.verdicts++
	c.worst = verifier.WorstExit(c.worst, r.ExitCode)
	c.broken = c.broken || r.ExitCode == verifier.ExitEnvelope && r.Verdict != verifier.Untrusted
	c.amounts[path] = amountOf(r)
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
	if errors.Is(err, ErrArchive) {
		c.fail(CodeUnreached, "", verifier.ExitEnvelope, fmt.Sprintf("the folder has more than %d files", MaxFiles))
		return
	}
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
