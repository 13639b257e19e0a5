package events

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzProven holds each quick yes against the general reader, which it stands
// in for.
func FuzzProven(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) { checkProof(t, text, Limits{MaxDepth: 8, MaxMembers: 16}) })
}

func checkProof(t interface{ Fatalf(string, ...any) }, text []byte, lim Limits) bool {
	lim = lim.withDefaults()
	p := prover{text: text}
	if !p.prove(lim) {
		return false
	}
	if err := NewDecoder(lim).oneObject(text); err != nil {
		t.Fatalf("proven, but the general reader says %v: %q", err, text)
	}
	if most := measure(text); most.depth > lim.MaxDepth || most.members > lim.MaxMembers {
		t.Fatalf("proven, but %+v is beyond %+v: %q", most, lim, text)
	}
	return true
}

// TestProvenSeeds fails when the corpus is gone; -update writes it: honest
// payloads, and each text below.
func TestProvenSeeds(t *testing.T) {
	if *update {
		for i, m := range honest(t) {
			writeSeed(t, "FuzzProven", i, fmt.Sprintf("[]byte(%q)\n", m.Payload))
		}
		for i, text := range append(provenTexts(), unprovenTexts()...) {
			writeSeed(t, "FuzzProven", 500+i, fmt.Sprintf("[]byte(%q)\n", text))
		}
	}
	if seeds, err := filepath.Glob("testdata/fuzz/FuzzProven/*"); err != nil || len(seeds) < 10 {
		t.Errorf("FuzzProven has %d seeds (%v)", len(seeds), err)
	}
}

func provenTexts() []string {
	return []string{
		`{}`, " {\t}\r\n", `{"a":1}`, `{"a":{},"b":[],"":""}`, `{"a":[1,2,[3,{"b":null}],true,false]}`,
		`{"a":0,"b":-0,"c":-1.5,"d":1e5,"e":1E+5,"f":0.1e-10,"g":12345678901234567890}`,
		`{"a":"\"\\\/\b\f\n\r\t\u00e9\uFFFF\ud7ff\ue000"}`, "{\"a\":\"é€😀\x7f\"}", `{"a" : "12345678" , "b":"123456789"}`,
	}
}

// unprovenTexts are no strict JSON objects, but for those of the last line,
// which are left to the general reader.
func unprovenTexts() []string {
	return []string{
		``, ` `, `[]`, `1`, `null`, `"a"`, `{`, `}`, `{]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1 2]}`,
		`{"a":1}}`, `{"a":1}{}`, `{"a":1} x`, `{a:1}`, `{'a':1}`, `{"a" 1}`, `{"a"::1}`, `{"a":1;"b":2}`, `{"a":[}`, `{"a":{]}`, `{"a":[1}`,
		`{"a":01}`, `{"a":-}`, `{"a":+1}`, `{"a":.5}`, `{"a":1.}`, `{"a":1e}`, `{"a":1e+}`, `{"a":0x1}`, `{"a":--1}`, `{"a":1_0}`,
		`{"a":NaN}`, `{"a":Infinity}`, `{"a":tru}`, `{"a":True}`, `{"a":nullx}`, `{"a":"}`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, `{"a":"\`,
		"{\"a\":\"\x00\"}", "{\"a\":\"12345678\x1f\"}", "{\"a\":\"\n\"}", "{\"a\":\"\xff\"}", "{\"a\":\"\xc0\x80\"}", "{\"a\":\"\xed\xa0\x80\"}",
		"{\"a\":\"\xe2\x82\"}", "{\"a\":\"1234567\xe2\x82\"}", "\ufeff{}", "{}\x00", "{\x0b}", "{\u00a0}", `{/**/}`, `{"a":1//` + "\n}",
		`{"a":"\ud800"}`, `{"a":"\udc00\ud800"}`, `{"a":"\uD83D\uDE00"}`,
	}
}

func TestProven(t *testing.T) {
	t.Parallel()
	for _, text := range provenTexts() {
		if !checkProof(t, []byte(text), Limits{}) {
			t.Errorf("not proven: %q", text)
		}
	}
	for _, text := range unprovenTexts() {
		if checkProof(t, []byte(text), Limits{}) {
			t.Errorf("proven: %q", text)
		}
	}
	deep := strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64)
	if !checkProof(t, []byte(deep), Limits{}) || checkProof(t, []byte(`{"a":`+deep+`}`), Limits{MaxDepth: 100}) {
		t.Error("the depth that can be proven is not 64")
	}
	if !checkProof(t, []byte(`{"a":1,"b":2}`), Limits{MaxMembers: 2}) || checkProof(t, []byte(`{"a":1,"b":{"c":1}}`), Limits{MaxMembers: 2}) {
		t.Error("the members that can be proven are not the limit's")
	}
}

// TestProvenIsInUse: what honest publishers send takes the quick way.
func TestProvenIsInUse(t *testing.T) {
	t.Parallel()
	quick, slow := 0, 0
	for n, l := range readLines(t, "large") {
		m := l.message(n)
		switch e := Decode(m, DefaultLimits); {
		case e.Fault != nil:
		case checkProof(t, m.Payload, DefaultLimits):
			quick++
		case !bytes.Contains(bytes.ToLower(m.Payload), []byte(`\ud`)):
			slow++
		}
	}
	if quick == 0 || slow > 0 {
		t.Errorf("%d proven, %d of the others without a surrogate escape", quick, slow)
	}
}

// TestProvenEdits flips, drops and doubles bytes of honest payloads.
func TestProvenEdits(t *testing.T) {
	t.Parallel()
	texts := honest(t)
	rapid.Check(t, func(t *rapid.T) {
		text := bytes.Clone(rapid.SampledFrom(texts).Draw(t, "message").Payload)
		for range rapid.IntRange(1, 3).Draw(t, "edits") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			switch rapid.IntRange(0, 3).Draw(t, "edit") {
			case 0:
				text[at] = rapid.Byte().Draw(t, "byte")
			case 1:
				text = append(text[:at], text[min(at+1, len(text)):]...)
			case 2:
				text = append(text[:at:at], text[max(0, at-1):]...)
			case 3:
				text = text[:at]
			}
			if len(text) == 0 {
				return
			}
		}
		checkProof(t, text, Limits{})
	})
}
