package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// ManifestFile lists the files of a backup. It is written last: a directory
	// without it is no backup.
	ManifestFile   = "backup.json"
	manifestFormat = "chaind-backup-1"
	maxManifest    = 1 << 30 // bytes
)

// Manifest says what a backup is of.
type Manifest struct {
	Format    string       `json:"format"`     // chaind-backup-1
	StoreID   string       `json:"store_id"`   //
	Schema    uint32       `json:"schema"`     // of the database
	CreatedMS int64        `json:"created_ms"` // Unix milliseconds of this machine's clock
	Hot       bool         `json:"hot"`        // the daemon was running
	Broker    bool         `json:"broker"`     // the store of the broker inside is in it
	Artifacts bool         `json:"artifacts"`  // the evidence files are in it
	Findings  uint64       `json:"findings"`   // of a check of the copied database; not 0 only where that was asked for
	Finding   string       `json:"finding"`    // the first of them
	Files     []BackupFile `json:"files"`      // but for the manifest, sorted by path
}

// BackupFile is one file of a backup.
type BackupFile struct {
	Path   string `json:"path"` // below the backup's directory, with slashes
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// backupSet is a backup that is being written.
type backupSet struct {
	root  *os.Root
	files []BackupFile
	dirs  map[string]bool
}

// newBackupSet wants a directory that is missing or empty.
func newBackupSet(dir string) (*backupSet, error) {
	if err := vacant(dir); err != nil {
		return nil, fmt.Errorf("back up to %s: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("back up: %w", err)
	}
	return &backupSet{root: root, dirs: map[string]bool{".": true}}, nil
}

// write makes one file, durable but for its name.
func (b *backupSet) write(name string, body func(io.Writer) error) error {
	if err := b.mkdir(path.Dir(name)); err != nil {
		return err
	}
	f, err := b.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	h := sha256.New()
	err = body(io.MultiWriter(f, h))
	if err == nil {
		err = f.Sync()
	}
	info, statErr := f.Stat()
	if err := errors.Join(err, statErr, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	b.files = append(b.files, BackupFile{Path: name, Bytes: info.Size(), SHA256: hex.EncodeToString(h.Sum(nil))})
	return nil
}

func (b *backupSet) mkdir(dir string) error {
	if b.dirs[dir] {
		return nil
	}
	if err := b.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	b.dirs[dir] = true
	return b.root.Mkdir(dir, 0o700)
}

// tree copies the regular files below a directory, but for those that skip names.
// A file that vanishes meanwhile was temporary.
func (b *backupSet) tree(ctx context.Context, from, to string, skip func(name string) bool) error {
	root, err := os.OpenRoot(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case skip(name) && d.IsDir():
			return fs.SkipDir
		case skip(name) || !d.Type().IsRegular():
			return nil
		}
		f, err := root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		return b.write(path.Join(to, name), func(w io.Writer) error { _, err := io.Copy(w, f); return err })
	})
}

// finish makes all names durable and then writes the manifest.
func (b *backupSet) finish(m Manifest) (*Manifest, error) {
	slices.SortFunc(b.files, func(a, c BackupFile) int { return strings.Compare(a.Path, c.Path) })
	m.Format, m.Files = manifestFormat, b.files
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = b.sync()
	}
	if err == nil {
		err = b.write(ManifestFile, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
	}
	if err == nil {
		err = b.sync()
	}
	if err != nil {
		return nil, fmt.Errorf("finish backup: %w", err)
	}
	return &m, nil
}

func (b *backupSet) sync() error {
	for dir := range b.dirs {
		d, err := b.root.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
	}
	return nil
}

// discard removes everything, since the directory was empty.
func (b *backupSet) discard() error {
	entries, err := fs.ReadDir(b.root.FS(), ".")
	for _, e := range entries {
		err = errors.Join(err, b.root.RemoveAll(e.Name()))
	}
	return err
}

// VerifyBackup compares the files of a backup with its manifest: none missing,
// none changed, none besides. Then it checks the database as a daemon would check
// its own. The error names the first that is not right; it is a [*DamagedError]
// where the files are those that were backed up, and the database is damaged.
func VerifyBackup(ctx context.Context, dir string) (*Manifest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("verify backup: %w", err)
	}
	defer root.Close()
	m, err := readManifest(root)
	if err != nil {
		return nil, fmt.Errorf("verify backup: %w", err)
	}
	listed := map[string]bool{ManifestFile: true}
	for _, f := range m.Files {
		listed[f.Path] = true
		if err := verifyFile(ctx, root, f); err != nil {
			return nil, fmt.Errorf("verify backup: %s: %w", f.Path, err)
		}
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !listed[filepath.ToSlash(name)] {
			err = fmt.Errorf("%s is not in the manifest", name)
		}
		return err
	})
	if err == nil {
		err = checkCopy(ctx, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("verify backup: %w", err)
	}
	return m, nil
}

func readManifest(root *os.Root) (*Manifest, error) {
	f, err := root.Open(ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no manifest: the backup was not finished, or this is none")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil || m.Format != manifestFormat {
		return nil, errors.Join(fmt.Errorf("%s is not the manifest of a backup", ManifestFile), err)
	}
	return &m, nil
}

func verifyFile(ctx context.Context, root *os.Root, want BackupFile) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := root.Open(want.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return err
	}
	if n != want.Bytes || hex.EncodeToString(h.Sum(nil)) != want.SHA256 {
		return errors.New("is not what was backed up")
	}
	return nil
}
