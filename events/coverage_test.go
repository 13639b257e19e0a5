package events

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// said sends events of one chain, each with what its producer declares with it
// ("N" stands for the next number), and returns the state at the end. The verb
// "more" is a seal after which others follow, "end" one with a run seal, "bare"
// one without. A head is written HEAD, and is the one that the chain has then.
func said(t *testing.T, list ...[2]string) *State {
	t.Helper()
	return saidOf(t, list, func(int) bool { return true })
}

// saidOf is said, and of the events that were sent only those came that came
// says. Numbers, ids and heads are those of all.
func saidOf(t *testing.T, list [][2]string, came func(i int) bool) *State {
	t.Helper()
	zero := strings.Repeat("0", 64)
	run := `,"kind":{"kind":"run_sealed","run_id":"pr` + zero + `","run_bundle_digest":"` + zero + `"}`
	tails := map[string][2]string{
		"intent": {string(VerbIntent), `,"kind":{"kind":"intent_bound","intent_len":2},"preimage":{"text":"hi"}`},
		"commit": {string(VerbCommit), `,"kind":{"kind":"comp_committed","plan_commit_id_hex":"` + zero + `","comp_semantic_sha256":"` + zero + `","step_topo":["a","b"]}`},
		"step":   {string(VerbStep), `,"kind":{"kind":"step_executed","step_id":"a","step_index":0,"request_fingerprints":[],"source_line":"x","parsed_expr_digest":"` + zero + `"}`},
		"begin":  {string(VerbStep), `,"phase":"begin","kind":{"kind":"step_executed","step_id":"a","step_index":0}`},
		"bad":    {string(VerbStep), `,"surprise":1`},
		"more":   {string(VerbSeal), `,"more":true` + run},
		"end":    {string(VerbSeal), run},
		"bare":   {string(VerbSeal), ``},
	}
	// The twin says no heads, and so knows them before they are said.
	store, twin := newMemory(DefaultLimits), newMemory(DefaultLimits)
	number := 0
	for i, item := range list {
		what, declared := item[0], item[1]
		if strings.Contains(declared, "N") {
			declared = strings.Replace(declared, "N", fmt.Sprintf(`,"producer_seq":%d`, number), 1)
			number++
		}
		event := func(declared string) Message {
			m := message(Verb(tails[what][0]), fmt.Sprintf(`{"v":1,"event_id":"e%d","scope":%s%s%s}`, i, testScope, tails[what][1], declared))
			m.StreamSeq = uint64(i + 1)
			return m
		}
		_, effect := twin.deliver(event(strings.Replace(declared, "HEAD", "", 1)))
		if effect.Head != nil {
			declared = strings.Replace(declared, "HEAD", `,"producer_head":"`+effect.Head.String()+`"`, 1)
		}
		if !came(i) {
			continue
		}
		e, effect := store.deliver(event(declared))
		if rejected := effect.Verdict == Rejected; rejected != (what == "bad") {
			t.Fatalf("%s %s: %s %+v", what, e.Payload, effect.Verdict, effect.Fault)
		}
	}
	return roundTrip(t, store.states[testKey])
}

// TestWhatCoversTheEnd: a chain is complete only where what was declared speaks
// of everything up to its end. What was declared before the end says nothing
// about what may have been lost behind it.
func TestWhatCoversTheEnd(t *testing.T) {
	t.Parallel()
	type list = [][2]string
	for name, c := range map[string]struct {
		events list
		want   Coverage
		why    string
	}{
		"nothing": {list{{"commit", ""}, {"end", ""}}, Unspecified, WhyNotDeclared},

		"a count at the end":         {list{{"commit", ""}, {"end", `,"event_count":2`}}, Complete, ""},
		"a count at a bare end":      {list{{"commit", ""}, {"bare", `,"event_count":2`}}, Complete, ""},
		"a count midway":             {list{{"more", `,"event_count":1`}, {"end", ""}}, Unspecified, WhyEnd},
		"a count midway, bare end":   {list{{"more", `,"event_count":1`}, {"bare", ""}}, Unspecified, WhyEnd},
		"a wrong count midway":       {list{{"more", `,"event_count":2`}, {"end", ""}}, Incomplete, WhyEventCount},
		"a count midway and one":     {list{{"more", `,"event_count":1`}, {"end", `,"event_count":2`}}, Complete, ""},
		"a wrong count, then a good": {list{{"more", `,"event_count":9`}, {"end", `,"event_count":2`}}, Complete, ""},

		"numbers":                   {list{{"commit", "N"}, {"step", "N"}, {"end", "N"}}, Complete, ""},
		"numbers that stop":         {list{{"commit", "N"}, {"end", ""}}, Unspecified, WhyUnnumbered},
		"numbers that begin late":   {list{{"commit", ""}, {"step", "N"}, {"end", "N"}}, Unspecified, WhyUnnumbered},
		"an attempt with none":      {list{{"commit", "N"}, {"begin", ""}, {"end", "N"}}, Unspecified, WhyUnnumbered},
		"a rejected one with none":  {list{{"commit", "N"}, {"bad", ""}, {"end", "N"}}, Complete, ""},
		"numbers, and a bare end":   {list{{"commit", "N"}, {"bare", "N"}}, Complete, ""},
		"numbers that stop, count":  {list{{"commit", "N"}, {"bare", `,"event_count":2`}}, Complete, ""},
		"a count midway, numbers":   {list{{"commit", "N"}, {"more", `N,"event_count":2`}, {"end", "N"}}, Complete, ""},
		"a head at the end":         {list{{"commit", ""}, {"end", "HEAD"}}, Complete, ""},
		"a head at a bare end":      {list{{"commit", ""}, {"bare", "HEAD"}}, Complete, ""},
		"a head midway":             {list{{"more", "HEAD"}, {"end", ""}}, Unspecified, WhyEnd},
		"a head midway, bare end":   {list{{"more", "HEAD"}, {"bare", ""}}, Unspecified, WhyEnd},
		"a head midway, an attempt": {list{{"more", "HEAD"}, {"begin", ""}, {"bare", ""}}, Unspecified, WhyEnd},
		// A head does not cover attempts: it is enough only where nothing speaks of any.
		"a head, and an attempt":             {list{{"begin", ""}, {"commit", ""}, {"end", "HEAD"}}, Unspecified, WhyHeadAlone},
		"a head, and a rejected one":         {list{{"bad", ""}, {"commit", ""}, {"end", "HEAD"}}, Complete, ""},
		"a head, and a rejected number":      {list{{"bad", "N"}, {"commit", ""}, {"end", "HEAD"}}, Unspecified, WhyUnnumbered},
		"a head, and numbers that stop":      {list{{"commit", "N"}, {"end", "HEAD"}}, Unspecified, WhyUnnumbered},
		"a head, numbers that stop, bare":    {list{{"commit", "N"}, {"bare", "HEAD"}}, Unspecified, WhyUnnumbered},
		"a head, and a count":                {list{{"begin", ""}, {"commit", "N"}, {"bare", `HEAD,"event_count":3`}}, Complete, ""},
		"a head, numbers, and an attempt":    {list{{"begin", "N"}, {"commit", "N"}, {"bare", "HEADN"}}, Complete, ""},
		"a head midway, an attempt, and one": {list{{"more", "HEAD"}, {"begin", ""}, {"end", "HEAD"}}, Unspecified, WhyHeadAlone},
		// In a bundle this looks like a head that was given midway.
		"heads midway and at a bare end": {list{{"more", "HEAD"}, {"bare", "HEAD"}}, Unspecified, WhyEnd},
		"another head at the end":        {list{{"more", "HEAD"}, {"end", `,"producer_head":"` + strings.Repeat("0d", 32) + `"`}}, Incomplete, WhyHead},
	} {
		got, why := said(t, c.events...).Coverage()
		if got != c.want || strings.Join(why, " ") != c.why {
			t.Errorf("%s: %s %v, want %s %s", name, got, why, c.want, c.why)
		}
	}
}

// TestHeadHidesNoLostAttempt: a producer numbers its events, the end excepted,
// and states its head there. An attempt that it numbered never comes.
func TestHeadHidesNoLostAttempt(t *testing.T) {
	t.Parallel()
	for _, list := range [][][2]string{
		{{"intent", "N"}, {"step", "N"}, {"begin", "N"}, {"end", "HEAD"}},
		{{"intent", "N"}, {"begin", "N"}, {"bare", "HEAD"}},
	} {
		got, why := saidOf(t, list, func(i int) bool { return list[i][0] != "begin" }).Coverage()
		if got == Complete {
			t.Errorf("%v: %s %v, and the attempt is missing", list, got, why)
		}
	}
}

// TestLossIsNeverComplete: of a chain whose producer numbers all events, some
// but not the last, or none, and counts them and states heads at any seals, one
// event is lost, whichever it is but the end: the chain is not complete. Only
// where there is nothing but heads an attempt may be lost unseen, if it was the
// only one.
func TestLossIsNeverComplete(t *testing.T) {
	t.Parallel()
	heads := 0
	rapid.Check(t, func(rt *rapid.T) {
		list := [][2]string{{"intent", ""}}
		for range rapid.IntRange(1, 6).Draw(rt, "events") {
			list = append(list, [2]string{rapid.SampledFrom([]string{"commit", "step", "begin", "more"}).Draw(rt, "what"), ""})
		}
		list = append(list, [2]string{rapid.SampledFrom([]string{"end", "bare"}).Draw(rt, "end"), ""})
		lost := rapid.IntRange(0, len(list)-2).Draw(rt, "lost")
		numbers := rapid.SampledFrom([]string{"all", "some", "none"}).Draw(rt, "numbers")
		attempts, headed := 0, false
		for i := range list {
			if list[i][0] == "begin" {
				attempts++
			}
			if numbers == "all" || numbers == "some" && i < len(list)-1 && rapid.Bool().Draw(rt, "number") {
				list[i][1] = "N"
			}
			if what := list[i][0]; what == "more" || what == "end" || what == "bare" {
				headed = rapid.Bool().Draw(rt, "head")
				if headed {
					list[i][1] += "HEAD"
				}
				list[i][1] += rapid.SampledFrom([]string{"", fmt.Sprintf(`,"event_count":%d`, i+1)}).Draw(rt, "count")
			}
		}
		if headed {
			heads++
		}
		got, why := saidOf(t, list, func(i int) bool { return i != lost }).Coverage()
		bearsNumber := slices.ContainsFunc(slices.Delete(slices.Clone(list), lost, lost+1), func(e [2]string) bool { return strings.Contains(e[1], "N") })
		unseen := headed && !bearsNumber && list[lost][0] == "begin" && attempts == 1
		if got == Complete && !unseen {
			rt.Errorf("without event %d of %v: %s %v", lost, list, got, why)
		}
	})
	if heads == 0 { // of 20 lists at least
		t.Error("no list has a head at its end")
	}
}

// TestBegins: what shows that a chain's first event is its beginning. A plan
// does not: an intent that was lost may have come before it.
func TestBegins(t *testing.T) {
	t.Parallel()
	type list = [][2]string
	for name, c := range map[string]struct {
		events list
		want   bool
	}{
		"an intent":                  {list{{"intent", ""}, {"commit", ""}}, true},
		"a plan":                     {list{{"commit", ""}, {"step", ""}, {"end", ""}}, false},
		"an intent after a plan":     {list{{"commit", ""}, {"intent", ""}}, false},
		"an intent after an attempt": {list{{"begin", ""}, {"intent", ""}}, false},
		"number 0":                   {list{{"commit", "N"}}, true},
		"an agreeing count":          {list{{"commit", ""}, {"end", `,"event_count":2`}}, true},
		"an agreeing head":           {list{{"commit", ""}, {"end", "HEAD"}}, true},
		"another count":              {list{{"commit", ""}, {"end", `,"event_count":3`}}, false},
		"a count midway":             {list{{"more", `,"event_count":1`}, {"end", ""}}, false},
		"number 1 and an intent":     {list{{"intent", `,"producer_seq":1`}}, false},
	} {
		if got := said(t, c.events...).Begins(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if NewState(testKey).Begins() {
		t.Error("a chain without events begins")
	}
}
