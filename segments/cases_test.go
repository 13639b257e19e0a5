package segments

import "testing"

// C14: where one field ends and the next begins is hashed, whatever the fields
// hold.
func TestC14NoDelimiterIsAmbiguous(t *testing.T) {
	t.Parallel()
	seen := map[Digest]string{}
	for _, sep := range []string{"|", "\n", "\x00", ",", `"`, `\`, `","source_line":"`, ""} {
		for _, fields := range [][2]string{{"a" + sep + "b", "c"}, {"a", "b" + sep + "c"}, {"a", sep + "bc"}, {"abc" + sep, ""}} {
			s := Segment{Kind: &StepExecuted{StepID: fields[0], SourceLine: fields[1], RequestFingerprints: []string{}}}
			note := fields[0] + "\x1f" + fields[1]
			if other, ok := seen[s.Digest()]; ok && other != note {
				t.Errorf("%q and %q have one digest", other, note)
			}
			seen[s.Digest()] = note
		}
	}
	for _, list := range [][]string{{"a", "b"}, {"a,b"}, {`a","b`}, {"ab"}, {"a", "b", ""}, {}} {
		s := Segment{Kind: &StepExecuted{StepID: "list", RequestFingerprints: list}}
		if other, ok := seen[s.Digest()]; ok {
			t.Errorf("%q and %s have one digest", list, other)
		}
		seen[s.Digest()] = "a list"
	}
}
