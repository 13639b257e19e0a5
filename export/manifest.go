package export

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/chaind/chaind/keys"
)

// FormatName is the value of the member "export".
const FormatName = "chaind-export-1"

// The two files with fixed names.
const (
	ManifestFile  = "manifest.json"
	SignatureFile = "manifest.sig"
)

// Roles of files.
const (
	RoleEvidence = "evidence" // evidence bundle
	RoleBundle   = "bundle"   // trust bundle
	RoleChain    = "chain"    // what the daemon knew about a chain
	RoleAddenda  = "addenda"
	RoleRejected = "rejected"
	RoleRefused  = "refused" // why the daemon gave no evidence, trust bundle or record of a chain that it has: its answer
	RoleKeys     = "keys"
	RoleReport   = "report"   // HTML, for people
	RoleVerifier = "verifier" // HTML, the verify page
)

// Manifest lists what belongs to an export.
type Manifest struct {
	Export    string
	CreatedMS int64
	Selection Selection
	Chains    []Chain
	Files     []File
}

// Selection says what was asked for.
type Selection struct {
	What string // one sentence, for people
}

// Chain is one exported chain.
type Chain struct {
	Tenant     string
	PromptHash string
	Session    string
	Chain      string
	Outcome    string
	Conformity string
	Segments   int64
	Head       *string // nil: no segment
	Evidence   *string // path; nil: none was sealed
	Bundle     *string
}

// File is one listed file.
type File struct {
	Path   string
	Bytes  int64
	SHA256 string // 64 lower-case hex digits
	Role   string
}

// Describe lists a file by its content.
func Describe(path, role string, content []byte) File {
	sum := sha256.Sum256(content)
	return File{Path: path, Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Role: role}
}

// Append writes the manifest, files sorted by path. It fails when the manifest
// would not be read again.
func (m *Manifest) Append(dst []byte) ([]byte, error) {
	files := slices.Clone(m.Files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	text := append([]byte(`{"export":`), quote(m.Export)...)
	text = fmt.Appendf(text, `,"created_ms":%d,"selection":{"what":%s},"chains":[`, m.CreatedMS, quote(m.Selection.What))
	for i := range m.Chains {
		c := &m.Chains[i]
		text = fmt.Appendf(comma(text, i), `{"tenant":%s,"prompt_hash":%s,"session":%s,"chain":%s,"outcome":%s,"conformity":%s,"segments":%d,"head":%s,"evidence":%s,"bundle":%s}`,
			quote(c.Tenant), quote(c.PromptHash), quote(c.Session), quote(c.Chain), quote(c.Outcome), quote(c.Conformity), c.Segments,
			quoteOptional(c.Head), quoteOptional(c.Evidence), quoteOptional(c.Bundle))
	}
	text = append(text, `],"files":[`...)
	for i, f := range files {
		text = fmt.Appendf(comma(text, i), `{"path":%s,"bytes":%d,"sha256":%s,"role":%s}`, quote(f.Path), f.Bytes, quote(f.SHA256), quote(f.Role))
	}
	text = append(text, `]}`...)
	if _, err := ParseManifest(text); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	return append(dst, text...), nil
}

func comma(text []byte, i int) []byte {
	if i > 0 {
		return append(text, ',')
	}
	return text
}

// quote writes a JSON string; text that is no UTF-8 becomes one that is.
func quote(text string) []byte {
	quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil {
		panic("export: quote valid text: " + err.Error())
	}
	return quoted
}

func quoteOptional(text *string) []byte {
	if text == nil {
		return []byte("null")
	}
	return quote(*text)
}

var errManifest = errors.New("the manifest is malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errManifest, fmt.Sprintf(format, args...))
}

// ParseManifest reads a manifest strictly.
func ParseManifest(text []byte) (*Manifest, error) {
	var m Manifest
	if err := m.decode(newReader(text)); err != nil {
		return nil, err
	}
	if m.Export != FormatName {
		return nil, malformed("not of the format %s", FormatName)
	}
	roles, err := m.roles()
	if err != nil {
		return nil, err
	}
	for i := range m.Chains {
		if err := m.Chains[i].check(roles); err != nil {
			return nil, malformed("chain %d: %v", i, err)
		}
	}
	return &m, nil
}

func (m *Manifest) decode(r *reader) error {
	err := r.object(
		member{"export", r.text(&m.Export)},
		member{"created_ms", r.number(&m.CreatedMS)},
		member{"selection", func() error { return r.object(member{"what", r.text(&m.Selection.What)}) }},
		member{"chains", func() error { return r.array(MaxFiles, func() error { return m.decodeChain(r) }) }},
		member{"files", func() error { return r.array(MaxFiles, func() error { return m.decodeFile(r) }) }})
	if err != nil {
		return err
	}
	return r.end()
}

func (m *Manifest) decodeChain(r *reader) error {
	var c Chain
	err := r.object(
		member{"tenant", r.text(&c.Tenant)}, member{"prompt_hash", r.text(&c.PromptHash)}, member{"session", r.text(&c.Session)},
		member{"chain", r.text(&c.Chain)}, member{"outcome", r.text(&c.Outcome)}, member{"conformity", r.text(&c.Conformity)},
		member{"segments", r.number(&c.Segments)}, member{"head", r.optional(&c.Head)},
		member{"evidence", r.optional(&c.Evidence)}, member{"bundle", r.optional(&c.Bundle)})
	m.Chains = append(m.Chains, c)
	return err
}

func (m *Manifest) decodeFile(r *reader) error {
	var f File
	err := r.object(member{"path", r.text(&f.Path)}, member{"bytes", r.number(&f.Bytes)}, member{"sha256", r.text(&f.SHA256)}, member{"role", r.text(&f.Role)})
	m.Files = append(m.Files, f)
	return err
}

// roles checks the list of files and gives the role of each path.
func (m *Manifest) roles() (map[string]string, error) {
	var total int64
	roles := make(map[string]string, len(m.Files))
	folded := make(map[string]bool, len(m.Files))
	for i, f := range m.Files {
		switch {
		case !safePath(f.Path) || f.Path == ManifestFile || f.Path == SignatureFile:
			return nil, malformed("file %d: the path is not one that an export may have", i)
		case i > 0 && m.Files[i-1].Path >= f.Path, folded[strings.ToLower(f.Path)]:
			return nil, malformed("file %d: files are not listed by path, each once", i)
		case f.Bytes > MaxUnpacked-total:
			return nil, malformed("more than %d bytes in all with %s", int64(MaxUnpacked), f.Path)
		case f.Bytes < 0 || !isHex(f.SHA256, 64):
			return nil, malformed("file %d: size or digest is none", i)
		case !slices.Contains([]string{RoleEvidence, RoleBundle, RoleChain, RoleAddenda, RoleRejected, RoleRefused, RoleKeys, RoleReport, RoleVerifier}, f.Role):
			return nil, malformed("file %d: unknown role", i)
		}
		total += f.Bytes
		roles[f.Path] = f.Role
		folded[strings.ToLower(f.Path)] = true
	}
	return roles, nil
}

func (c *Chain) check(roles map[string]string) error {
	switch {
	case c.Head != nil && !isHex(*c.Head, 64):
		return errors.New("the head is none")
	case c.Evidence != nil && roles[*c.Evidence] != RoleEvidence:
		return errors.New("its evidence is not listed")
	case c.Bundle != nil && roles[*c.Bundle] != RoleBundle:
		return errors.New("its trust bundle is not listed")
	case c.Evidence != nil && c.Head == nil:
		return errors.New("there is evidence and no head")
	}
	return nil
}

// safePath tells whether a path stays within the folder on every system.
func safePath(path string) bool {
	if path == "" || len(path) > maxPath {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if strings.Trim(part, ".") == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".") {
			return false
		}
		if strings.ContainsFunc(part, func(c rune) bool {
			return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.')
		}) {
			return false
		}
	}
	return true
}

func isHex(s string, n int) bool {
	return len(s) == n && !strings.ContainsFunc(s, func(c rune) bool { return !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') })
}

// message is what a signature of the manifest is over.
func message(manifest []byte) []byte {
	sum := sha256.Sum256(manifest)
	return fmt.Appendf(nil, "%s manifest sha256:%x\n", FormatName, sum)
}

// Sign gives the content of manifest.sig for a written manifest.
func Sign(signer *keys.Signer, manifest []byte) ([]byte, error) {
	sig, err := signer.Sign(message(manifest))
	if err != nil {
		return nil, fmt.Errorf("sign manifest: %w", err)
	}
	return fmt.Appendf(nil, `{"public_key_hex":"%s","signature_hex":"%x"}`, signer.Public(), sig), nil
}

// examine checks a signature; nil text is none.
func examine(manifest, text []byte) (*keys.Checked, error) {
	if text == nil {
		return nil, nil
	}
	var public, hexed string
	r := newReader(text)
	if err := r.object(member{"public_key_hex", r.text(&public)}, member{"signature_hex", r.text(&hexed)}); err != nil || r.end() != nil {
		return &keys.Checked{}, errors.New("the signature cannot be read")
	}
	key, err := keys.ParsePublicKey(public)
	if err != nil {
		return &keys.Checked{}, errors.New("the signature names no usable public key")
	}
	raw, err := hex.DecodeString(hexed)
	if err != nil || !key.Verify(message(manifest), raw) {
		return &keys.Checked{Key: key}, errors.New("the signature does not fit the manifest")
	}
	return &keys.Checked{Key: key, Valid: true}, nil
}
