package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
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
	RoleKeys     = "keys"
	RoleReport   = "report"   // HTML, for people
	RoleVerifier = "verifier" // HTML, the verify page
)

// Limits of what is read.
const (
	MaxFiles         = 100_000
	MaxManifestBytes = 64 << 20 // of manifest.json
	maxSignatureFile = 4 << 10  // bytes of manifest.sig
	maxPath          = 400      // bytes of a path
)

// Manifest lists what belongs to an export.
type Manifest struct {
	Export    string    `json:"export"`
	CreatedMS int64     `json:"created_ms"`
	Selection Selection `json:"selection"`
	Chains    []Chain   `json:"chains"`
	Files     []File    `json:"files"`
}

// Selection says what was asked for.
type Selection struct {
	What string `json:"what"` // one sentence, for people
}

// Chain is one exported chain.
type Chain struct {
	Tenant     string  `json:"tenant"`
	PromptHash string  `json:"prompt_hash"`
	Session    string  `json:"session"`
	Chain      string  `json:"chain"`
	Outcome    string  `json:"outcome"`
	Conformity string  `json:"conformity"`
	Segments   uint64  `json:"segments"`
	Head       *string `json:"head"`     // nil: no segment
	Evidence   *string `json:"evidence"` // path; nil: none was sealed
	Bundle     *string `json:"bundle"`
}

// File is one listed file.
type File struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // 64 lower-case hex digits
	Role   string `json:"role"`
}

// Describe lists a file by its content.
func Describe(path, role string, content []byte) File {
	sum := sha256.Sum256(content)
	return File{Path: path, Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Role: role}
}

// Append writes the manifest, files sorted by path. It fails when the manifest
// would not be read again.
func (m *Manifest) Append(dst []byte) ([]byte, error) {
	sorted := *m
	sorted.Files = slices.Clone(m.Files)
	slices.SortFunc(sorted.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	text, err := json.Marshal(&sorted)
	if err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	if _, err := ParseManifest(text); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	return append(dst, text...), nil
}

var errManifest = errors.New("malformed manifest")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errManifest, fmt.Sprintf(format, args...))
}

// ParseManifest reads a manifest strictly.
func ParseManifest(text []byte) (*Manifest, error) {
	var m Manifest
	if err := strictly(text, &m); err != nil {
		return nil, err
	}
	if m.Export != FormatName {
		return nil, malformed("not of the format %s", FormatName)
	}
	if len(m.Files) > MaxFiles {
		return nil, malformed("more than %d files", MaxFiles)
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

func strictly(text []byte, v any) error {
	if err := json.Unmarshal(text, v, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return malformed("not strict JSON of the expected shape")
	}
	return nil
}

// roles checks the list of files and gives the role of each path.
func (m *Manifest) roles() (map[string]string, error) {
	roles := make(map[string]string, len(m.Files))
	folded := make(map[string]bool, len(m.Files))
	for i, f := range m.Files {
		switch {
		case !safePath(f.Path) || f.Path == ManifestFile || f.Path == SignatureFile:
			return nil, malformed("file %d: the path is not one that an export may have", i)
		case i > 0 && m.Files[i-1].Path >= f.Path, folded[strings.ToLower(f.Path)]:
			return nil, malformed("file %d: files are not listed by path, each once", i)
		case f.Bytes < 0 || !isHex(f.SHA256, 64):
			return nil, malformed("file %d: size or digest is none", i)
		case !slices.Contains([]string{RoleEvidence, RoleBundle, RoleChain, RoleAddenda, RoleRejected, RoleKeys, RoleReport, RoleVerifier}, f.Role):
			return nil, malformed("file %d: unknown role", i)
		}
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

// signature is the content of manifest.sig.
type signature struct {
	PublicKeyHex string `json:"public_key_hex"`
	SignatureHex string `json:"signature_hex"`
}

// Sign gives the content of manifest.sig for a written manifest.
func Sign(signer *keys.Signer, manifest []byte) ([]byte, error) {
	sig, err := signer.Sign(message(manifest))
	if err != nil {
		return nil, fmt.Errorf("sign manifest: %w", err)
	}
	return json.Marshal(&signature{signer.Public().String(), hex.EncodeToString(sig)})
}

// examine checks a signature; nil text is none.
func examine(manifest, text []byte) (*keys.Checked, error) {
	if text == nil {
		return nil, nil
	}
	var s signature
	if err := strictly(bytes.TrimSpace(text), &s); err != nil {
		return &keys.Checked{}, errors.New("the signature cannot be read")
	}
	key, err := keys.ParsePublicKey(s.PublicKeyHex)
	if err != nil {
		return &keys.Checked{}, errors.New("the signature names no usable public key")
	}
	raw, err := hex.DecodeString(s.SignatureHex)
	if err != nil || !key.Verify(message(manifest), raw) {
		return &keys.Checked{Key: key}, errors.New("the signature does not fit the manifest")
	}
	return &keys.Checked{Key: key, Valid: true}, nil
}
