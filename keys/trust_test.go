package keys

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustMerge(t testing.TB, sources ...[]Entry) *TrustList {
	t.Helper()
	list, _, err := Merge(sources...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func fileOf(t testing.TB, raw ...FileEntry) []Entry {
	t.Helper()
	entries, err := ParseFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// TestK01 drops an old key from the list: the verdict is about the key, not
// about the content; listing it as retired brings it back.
func TestK01DroppedKey(t *testing.T) {
	t.Parallel()
	signed := &Checked{mustKey(t, hex7), true}
	if got := Judge(signed, mustMerge(t, fileOf(t, FileEntry{PublicKey: hex9}))); got != StateUntrusted {
		t.Errorf("dropped: %s", got)
	}
	both := mustMerge(t, fileOf(t, FileEntry{PublicKey: hex9}, FileEntry{PublicKey: hex7, Status: "retired"}))
	if got := Judge(signed, both); got != StateRetired {
		t.Errorf("retired: %s", got)
	}
}

// TestK03 rotates back to a key that was given up.
func TestK03ReturnedKey(t *testing.T) {
	t.Parallel()
	flags, err := ParseFlags([]string{hex7})
	if err != nil {
		t.Fatal(err)
	}
	for status, held := range map[string]Status{"retired": Retired, "revoked": Revoked} {
		file := fileOf(t, FileEntry{PublicKey: hex7, Status: status}, FileEntry{PublicKey: hex9})
		list, notices, err := Merge(flags, nil, file)
		if err != nil {
			t.Fatal(err)
		}
		want := Notice{mustKey(t, hex7).ID(), Active, held}
		if !slices.Equal(notices, []Notice{want}) {
			t.Errorf("notices %v, want %v", notices, want)
		}
		var returned *ReturnedKeyError
		if err := list.MaySign(mustKey(t, hex7)); !errors.As(err, &returned) || returned.Status != held {
			t.Errorf("%s key may sign: %v", status, err)
		}
		if err := list.MaySign(mustKey(t, hex9)); err != nil {
			t.Error(err)
		}
	}
	if err := (*TrustList)(nil).MaySign(mustKey(t, hex7)); err != nil {
		t.Error(err)
	}
}

// TestK05 tells set but empty from absent.
func TestK05EmptyList(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", ",", " , ,", "\r\n", "\t,\n"} {
		if entries, err := ParseEnvironment(text); entries != nil || !errors.Is(err, ErrEmptyTrustList) {
			t.Errorf("%q: %v, %v", text, entries, err)
		}
		if entries, err := ParseFlags([]string{text}); entries != nil || !errors.Is(err, ErrEmptyTrustList) {
			t.Errorf("flag %q: %v, %v", text, entries, err)
		}
	}
	if _, err := ParseFile(nil); !errors.Is(err, ErrEmptyTrustList) {
		t.Errorf("file: %v", err)
	}
	if _, _, err := Merge(nil, []Entry{}, nil); !errors.Is(err, ErrEmptyTrustList) {
		t.Errorf("merge of an empty source: %v", err)
	}
	if entries, err := ParseFlags(nil); entries != nil || err != nil {
		t.Errorf("no flags: %v, %v", entries, err)
	}
	list, notices, err := Merge(nil, nil, nil)
	if list != nil || notices != nil || err != nil {
		t.Errorf("nothing given: %v, %v, %v", list, notices, err)
	}
	if got := Judge(&Checked{mustKey(t, hex7), true}, list); got != StateUnpinned {
		t.Errorf("unpinned: %s", got)
	}
}

// TestK07 gives one set in many spellings.
func TestK07Decorations(t *testing.T) {
	t.Parallel()
	clean := mustMerge(t, fileOf(t, FileEntry{PublicKey: hex7}, FileEntry{PublicKey: hex9})).Entries()
	for _, text := range []string{
		hex7 + "," + hex9, " " + hex7 + " , " + hex9 + ",", hex9 + ",\r\n" + hex7 + "\r\n",
		strings.ToUpper(hex7) + ",\n" + hex9 + "," + hex7, "," + hex7 + ",," + hex9,
	} {
		entries, err := ParseEnvironment(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := mustMerge(t, entries).Entries(); !slices.Equal(got, clean) {
			t.Errorf("%q: %v", text, got)
		}
	}
	for _, text := range []string{`"` + hex7 + "," + hex9 + `"`, "'" + hex7 + "'", "“" + hex7 + "”"} {
		var bad *EntryError
		if _, err := ParseEnvironment(text); !errors.Is(err, ErrQuotedEntry) || !errors.As(err, &bad) || bad.Position != 1 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestK09 has one bad entry among good ones: it is found by position, and its
// text is nowhere.
func TestK09BadEntry(t *testing.T) {
	t.Parallel()
	secret := "c0ffee" + seed7[:56]
	for _, test := range []struct {
		text     string
		position int
	}{
		{hex7 + "," + secret + "," + hex9, 2},
		{secret, 1},
		{hex7 + ",," + hex9 + "," + secret + "00", 4},
		{hex7 + "," + smallOrderY[1] + ",", 2},
	} {
		_, err := ParseEnvironment(test.text)
		var bad *EntryError
		if !errors.As(err, &bad) || bad.Position != test.position || bad.Source != "environment" {
			t.Fatalf("%v, want position %d", err, test.position)
		}
		if strings.Contains(err.Error(), "c0ffee") || strings.Contains(err.Error(), "ecff") {
			t.Errorf("error shows the entry: %v", err)
		}
	}
	if _, err := ParseFile([]FileEntry{{PublicKey: hex7}, {PublicKey: hex9, Status: "trusted"}}); !errors.Is(err, ErrUnknownKeyStatus) {
		t.Errorf("status: %v", err)
	}
}

// TestK11 tells revoked from unknown, from bad, and from retired.
func TestK11RevokedKey(t *testing.T) {
	t.Parallel()
	list := mustMerge(t, fileOf(t, FileEntry{PublicKey: hex7, Status: " Revoked "}, FileEntry{PublicKey: hex9}))
	states := []State{
		Judge(&Checked{mustKey(t, hex7), true}, list),
		Judge(&Checked{mustKey(t, hex1), true}, list),
		Judge(&Checked{mustKey(t, hex7), false}, list),
		Judge(&Checked{mustKey(t, hex9), true}, list),
		Judge(nil, list),
	}
	want := []State{StateRevoked, StateUntrusted, StateInvalid, StateTrusted, StateUnsigned}
	if !slices.Equal(states, want) {
		t.Errorf("%v, want %v", states, want)
	}
}

// TestE12 counts two spellings of one key once, with the first comment.
func TestE12OneIdentity(t *testing.T) {
	t.Parallel()
	list := mustMerge(t,
		fileOf(t, FileEntry{PublicKey: strings.ToUpper(hex7)}),
		fileOf(t, FileEntry{PublicKey: hex7, Comment: "ours"}, FileEntry{PublicKey: hex7, Comment: "later"}))
	if got := list.Entries(); len(got) != 1 || got[0].Comment != "ours" {
		t.Errorf("%d entries", len(got))
	}
}

// TestK15 pastes a seed into the list: what prints is ids.
func TestK15SeedInTrustList(t *testing.T) {
	t.Parallel()
	list := mustMerge(t, fileOf(t, FileEntry{PublicKey: hex7, Comment: "c"}))
	entries := list.Entries()
	out := fmt.Sprintf("%v %+v %#v %s %v %+v %#v %s", list, list, list, list, entries, entries, entries[0], list.LogValue())
	if strings.Contains(out, hex7[:6]) || strings.Contains(out, "234, 74") || strings.Contains(out, "0xea") {
		t.Errorf("shows the key: %s", out)
	}
	if !strings.Contains(out, mustKey(t, hex7).ID()) {
		t.Errorf("does not show the id: %s", out)
	}
}

func TestStateRefused(t *testing.T) {
	t.Parallel()
	always := map[State]bool{StateInvalid: true, StateRevoked: true, StateUntrusted: true}
	for _, s := range []State{StateUnsigned, StateUnpinned, StateTrusted, StateRetired, StateRevoked, StateUntrusted, StateInvalid} {
		for _, pinned := range []bool{false, true} {
			for _, allow := range []bool{false, true} {
				want := always[s] || s == StateUnsigned && pinned && !allow
				if got := s.Refused(pinned, allow); got != want {
					t.Errorf("%s pinned %v allow %v: %v", s, pinned, allow, got)
				}
			}
		}
	}
}

// The strictest status wins whatever the order and the number of sources.
func TestMergeOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	all := []PublicKey{mustKey(t, hex1), mustKey(t, hex7), mustKey(t, hex9)}
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.Custom(func(t *rapid.T) Entry {
			return Entry{
				PublicKey: rapid.SampledFrom(all).Draw(t, "key"),
				Status:    rapid.SampledFrom([]Status{Active, Retired, Revoked}).Draw(t, "status"),
			}
		})
		entries := rapid.SliceOfN(entry, 1, 12).Draw(t, "entries")
		cut := rapid.IntRange(1, len(entries)).Draw(t, "cut")
		want := make(map[PublicKey]Status)
		for _, e := range entries {
			if held, found := want[e.PublicKey]; !found || e.Status.rank() > held.rank() {
				want[e.PublicKey] = e.Status
			}
		}
		rest := entries[cut:]
		if len(rest) == 0 {
			rest = nil
		}
		list, _, err := Merge(rest, entries[:cut])
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Entries()) != len(want) {
			t.Fatalf("%d entries, want %d", len(list.Entries()), len(want))
		}
		for key, status := range want {
			if got, found := list.Lookup(key); !found || got.Status != status {
				t.Fatalf("%s: %v, want %s", key.ID(), got, status)
			}
		}
	})
}

func FuzzParseEnvironment(f *testing.F) {
	for _, text := range []string{"", ",", hex7, hex7 + ", " + hex9 + ",\r\n", `"` + hex7 + `"`, "x y", "a;b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := ParseEnvironment(text)
		if (err == nil) == (len(entries) == 0) {
			t.Fatalf("%d entries and %v", len(entries), err)
		}
		if err != nil {
			return
		}
		for _, e := range mustMerge(t, entries).Entries() {
			if !strings.Contains(strings.ToLower(text), e.PublicKey.String()) {
				t.Fatalf("%s is not in the text", e.PublicKey)
			}
		}
	})
}

// TestTooManyEntries counts repeated entries, and empty places, before they fold.
func TestTooManyEntries(t *testing.T) {
	t.Parallel()
	list := func(n int) []string { return slices.Repeat([]string{hex7}, n) }
	file := func(n int) []FileEntry { return slices.Repeat([]FileEntry{{PublicKey: hex7}}, n) }
	for source, read := range map[string]func(n int) ([]Entry, error){
		"environment": func(n int) ([]Entry, error) { return ParseEnvironment(strings.Join(list(n), ",")) },
		"flag":        func(n int) ([]Entry, error) { return ParseFlags(list(n)) },
		"file":        func(n int) ([]Entry, error) { return ParseFile(file(n)) },
	} {
		if entries, err := read(MaxTrustEntries); err != nil || len(entries) != MaxTrustEntries {
			t.Errorf("%s: %d entries at the limit, %v", source, len(entries), err)
		}
		_, err := read(MaxTrustEntries + 1)
		entry, ok := errors.AsType[*EntryError](err)
		if !ok || !errors.Is(err, ErrTooManyEntries) || entry.Source != source || entry.Position != MaxTrustEntries+1 {
			t.Errorf("%s: %v", source, err)
		}
	}
	if _, err := ParseEnvironment(strings.Repeat(",", MaxTrustEntries)); !errors.Is(err, ErrTooManyEntries) {
		t.Errorf("empty places: %v", err)
	}
	half := strings.Join(list(MaxTrustEntries/2+1), ",")
	if _, err := ParseFlags([]string{half, half}); !errors.Is(err, ErrTooManyEntries) {
		t.Errorf("two flags: %v", err)
	}
}
