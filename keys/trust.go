package keys

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// MaxTrustEntries bounds one trust list, counted before duplicates fold.
const MaxTrustEntries = 10_000

// These errors can be returned when a trust list is read; all but the first
// come inside an [*EntryError].
var (
	ErrEmptyTrustList   = errors.New("trust list is set but names no key")
	ErrTooManyEntries   = errors.New("trust list has too many entries")
	ErrQuotedEntry      = errors.New("entry has quotes; write the digits alone")
	ErrUnknownKeyStatus = errors.New("status is none of active, retired, revoked")
)

// Status says how a listed key is to be taken.
type Status string

const (
	Active  Status = "active"  // may sign today
	Retired Status = "retired" // signed once; its signatures are still accepted
	Revoked Status = "revoked" // its signatures are not accepted, whenever made
)

// rank orders statuses by strictness; a conflict goes to the higher one.
func (s Status) rank() int {
	return slices.Index([]Status{Active, Retired, Revoked}, s)
}

// Entry is one key of a trust list.
type Entry struct {
	PublicKey PublicKey
	Comment   string
	Status    Status
}

// String names the entry by key id, because the value may be a seed that was
// pasted into the wrong setting.
func (e Entry) String() string             { return e.PublicKey.ID() + " " + string(e.Status) }
func (e Entry) Format(f fmt.State, _ rune) { fmt.Fprint(f, e.String()) }
func (e Entry) LogValue() slog.Value       { return slog.StringValue(e.String()) }

// EntryError says which entry of a trust list is bad. It never carries the
// entry's text.
type EntryError struct {
	Source   string // "flag", "environment" or "file"; whoever knows may add which
	Position int    // 1 for the first entry; empty places between commas count
	Line     int    // of the file; 0: not known
	Err      error
}

func (e *EntryError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("read trust list: %s, line %d, entry %d: %v", e.Source, e.Line, e.Position, e.Err)
	}
	return fmt.Sprintf("read trust list: %s entry %d: %v", e.Source, e.Position, e.Err)
}

func (e *EntryError) Unwrap() error { return e.Err }

// ParseEnvironment reads the comma-separated text of an environment variable
// that is set. Blanks and line ends around entries and empty places are
// harmless; quotes are refused with [ErrQuotedEntry]. A text without any entry
// is [ErrEmptyTrustList]: a variable that is not set must not get here.
func ParseEnvironment(text string) ([]Entry, error) {
	return parseList("environment", []string{text})
}

// ParseFlags reads the values of a repeatable flag, each one like
// [ParseEnvironment]. No values at all give nil: the source is absent.
func ParseFlags(values []string) ([]Entry, error) {
	if len(values) == 0 {
		return nil, nil
	}
	return parseList("flag", values)
}

func parseList(source string, texts []string) ([]Entry, error) {
	entries, position := []Entry{}, 0
	for _, text := range texts {
		for field := range strings.SplitSeq(text, ",") {
			position++
			if position > MaxTrustEntries {
				return nil, &EntryError{Source: source, Position: position, Err: ErrTooManyEntries}
			}
			field = strings.TrimSpace(field)
			if field == "" {
				continue
			}
			entry, err := parseEntry(FileEntry{PublicKey: field})
			if err != nil {
				return nil, &EntryError{Source: source, Position: position, Err: err}
			}
			entries = append(entries, entry)
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("read trust list: %s: %w", source, ErrEmptyTrustList)
	}
	return entries, nil
}

// FileEntry is an entry of a trust file as text, whatever the file's syntax.
type FileEntry struct {
	PublicKey string // 64 hexadecimal digits
	Comment   string // free text for people
	Status    string // "active", "retired" or "revoked"; "" is "active"
	Line      int    // of the file, where it begins; 0: not known
}

// ParseFile reads the entries of a trust file. No entries give
// [ErrEmptyTrustList]: without a file do not call it.
func ParseFile(raw []FileEntry) ([]Entry, error) {
	const source = "file"
	if len(raw) == 0 {
		return nil, fmt.Errorf("read trust list: %s: %w", source, ErrEmptyTrustList)
	}
	if len(raw) > MaxTrustEntries {
		return nil, &EntryError{Source: source, Position: MaxTrustEntries + 1, Line: raw[MaxTrustEntries].Line, Err: ErrTooManyEntries}
	}
	entries := make([]Entry, len(raw))
	for i, text := range raw {
		entry, err := parseEntry(text)
		if err != nil {
			return nil, &EntryError{Source: source, Position: i + 1, Line: text.Line, Err: err}
		}
		entries[i] = entry
	}
	return entries, nil
}

func parseEntry(text FileEntry) (Entry, error) {
	if strings.ContainsAny(text.PublicKey, "\"'`“”‘’") {
		return Entry{}, ErrQuotedEntry
	}
	key, err := ParsePublicKey(text.PublicKey)
	if err != nil {
		return Entry{}, err
	}
	status := Status(strings.ToLower(strings.TrimSpace(text.Status)))
	if status == "" {
		status = Active
	}
	if status.rank() < 0 {
		return Entry{}, ErrUnknownKeyStatus
	}
	return Entry{PublicKey: key, Comment: text.Comment, Status: status}, nil
}

// TrustList is a set of keys, one entry per key, sorted by key. The nil
// *TrustList means unpinned; a list that is not nil is never empty.
type TrustList struct{ entries []Entry }

// Notice tells of one key that was given with several statuses, such as a
// retired key that came back through an environment variable.
type Notice struct {
	KeyID string
	Given Status // the laxer status, which was overruled
	Holds Status // the status that holds
}

func (n Notice) String() string {
	return fmt.Sprintf("key %s is listed as %s and as %s; %s holds", n.KeyID, n.Given, n.Holds, n.Holds)
}

// Merge makes one list of all sources. A nil source is absent; when all are
// absent the list is nil, unpinned. The same key given twice is one entry;
// revoked beats retired, retired beats active, and each overruled status is
// noticed. A source that is there but empty is [ErrEmptyTrustList].
func Merge(sources ...[]Entry) (*TrustList, []Notice, error) {
	var all []Entry
	for _, source := range sources {
		if source != nil && len(source) == 0 {
			return nil, nil, ErrEmptyTrustList
		}
		all = append(all, source...)
	}
	if all == nil {
		return nil, nil, nil
	}
	// Stable, so that of two equal entries the first one's comment stays.
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(bytes.Compare(a.PublicKey[:], b.PublicKey[:]), b.Status.rank()-a.Status.rank())
	})
	list := &TrustList{}
	var notices []Notice
	for _, entry := range all {
		last := len(list.entries) - 1
		if last < 0 || list.entries[last].PublicKey != entry.PublicKey {
			list.entries = append(list.entries, entry)
			continue
		}
		held := &list.entries[last]
		held.Comment = cmp.Or(held.Comment, entry.Comment)
		notice := Notice{entry.PublicKey.ID(), entry.Status, held.Status}
		if entry.Status != held.Status && !slices.Contains(notices, notice) {
			notices = append(notices, notice)
		}
	}
	return list, notices, nil
}

// Entries returns a copy of the list, sorted by key; nil when unpinned.
func (l *TrustList) Entries() []Entry {
	if l == nil {
		return nil
	}
	return slices.Clone(l.entries)
}

// Lookup finds a key; never in a nil list.
func (l *TrustList) Lookup(key PublicKey) (Entry, bool) {
	if l == nil {
		return Entry{}, false
	}
	i, found := slices.BinarySearchFunc(l.entries, key, func(e Entry, k PublicKey) int {
		return bytes.Compare(e.PublicKey[:], k[:])
	})
	if !found {
		return Entry{}, false
	}
	return l.entries[i], true
}

// String lists key ids and statuses, never keys.
func (l *TrustList) String() string {
	if l == nil {
		return "unpinned"
	}
	names := make([]string, len(l.entries))
	for i, entry := range l.entries {
		names[i] = entry.String()
	}
	return strings.Join(names, ", ")
}

func (l *TrustList) Format(f fmt.State, _ rune) { fmt.Fprint(f, l.String()) }
func (l *TrustList) LogValue() slog.Value       { return slog.StringValue(l.String()) }

// ReturnedKeyError refuses to sign with a key that was given up.
type ReturnedKeyError struct {
	Key    PublicKey
	Status Status // Retired or Revoked
}

func (e *ReturnedKeyError) Error() string {
	return fmt.Sprintf("signing key %s is %s in the trust list; rotate to a new key instead", e.Key.ID(), e.Status)
}

// MaySign refuses a signing key that the list holds as retired or revoked with
// [*ReturnedKeyError]: rotating back would make old and new signatures of that
// key look alike. A key that is not listed may sign.
func (l *TrustList) MaySign(key PublicKey) error {
	if entry, found := l.Lookup(key); found && entry.Status != Active {
		return &ReturnedKeyError{key, entry.Status}
	}
	return nil
}
