package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/verifier"
)

// asking fills in what is expected, before files are chosen.
func (b *tab) asking(head, plan, outcome string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(fmt.Sprintf(`for (const [id, value] of [["expect-head", %q], ["expect-plan", %q], ["expect-outcome", %q]]) {
		at(id).value = value;
	}`, head, plan, outcome), nil))
}

// TestExpectationsGetTheVerdictOfTheCommandLine asks for heads, plans and
// outcomes that are there, that are not, and that do not fit the file.
func TestExpectationsGetTheVerdictOfTheCommandLine(t *testing.T) {
	b := open(t)
	home := onDisk(t)
	b.run(chromedp.Navigate(home))
	run := vectorsNamed(t, "p02-full-run-signed.json")[0]
	sealed := vectorsNamed(t, "engine-run-testdata-succeeded.tsb")[0]
	report := run.native(t)
	head, plan := report.ComputedHead.String(), report.Plan
	bundled := sealed.native(t).Content.Run.Head
	other := strings.Repeat("0", 64)
	for _, c := range []struct {
		file                sample
		head, plan, outcome string
		exit                int
	}{
		{run, head, plan, "", verifier.ExitPass},
		{run, other, "", "", verifier.ExitEnvelope},
		{run, "", other, "", verifier.ExitSemantic},
		{run, "", "", "succeeded", verifier.ExitUsage},
		{sealed, bundled, "", "succeeded", verifier.ExitPass},
		{sealed, other, "", "", verifier.ExitEnvelope},
		{sealed, "", "", "failed", verifier.ExitPolicy},
		{sealed, "", plan, "", verifier.ExitUsage},
	} {
		c.file.asked = verifier.Options{ExpectPlan: c.plan, ExpectOutcome: c.outcome}
		if c.head != "" {
			want, err := segments.ParseDigest(c.head)
			if err != nil {
				t.Fatal(err)
			}
			c.file.asked.ExpectHead = &want
		}
		b.asking(c.head, c.plan, c.outcome)
		compare(t, c.file, b.upload([]sample{c.file}, c.file.keys)[0])
		if got := c.file.native(t).ExitCode; got != c.exit {
			t.Errorf("%s, asked for head %q, plan %q, outcome %q: exit code %d, want %d", c.file.name, c.head, c.plan, c.outcome, got, c.exit)
		}
	}
	for _, wrong := range [][2]string{{"not-a-head", ""}, {strings.ToUpper(head), ""}, {"", "12"}} {
		b.asking(wrong[0], wrong[1], "")
		b.upload([]sample{run}, nil)
		if !b.refuses() {
			t.Errorf("with %q expected something was verified", wrong)
		}
	}
	b.quiet(home)
}

// refuses says that the page gives no verdict, and says that.
func (b *tab) refuses() bool {
	b.t.Helper()
	return eval[bool](b, `(at("not-verified")?.textContent ?? "").includes("neither a pass nor a failure") && document.querySelector(".verdict") === null`)
}

// TestExpectationsOfTheLink takes head, plan and outcome from the fragment. A
// link that asks for what the page does not know, twice for the same, or for
// nothing, is refused until somebody fills in the form.
func TestExpectationsOfTheLink(t *testing.T) {
	b := open(t)
	run := vectorsNamed(t, "p02-full-run-signed.json")[0]
	report := run.native(t)
	head, plan, other := report.ComputedHead.String(), report.Plan, strings.Repeat("0", 64)
	home := onDisk(t)
	for _, c := range []struct{ link, verdict string }{
		{"trust=" + run.keys[0] + "&expect-head=" + head + "&expect-plan=" + plan, string(verifier.Pass)},
		{"expect-head=" + other, string(verifier.Broken)},
		{"expect-plan=" + other, string(verifier.Fail)},
		{"expect-head=", ""},
		{"expect-head=" + head + "&expect-plan=%20", ""},
		{"expect-outcome=splendid", ""},
		{"expect_head=" + other, ""},
		{"Trust=" + run.keys[0], ""},
		{"require-signed=1", ""},
		{"trust=" + run.keys[0] + "&expected-head=" + other, ""},
		{"trust=" + run.keys[0] + "&trust=" + other, ""},
		{"expect-head=" + head + "&expect-head=" + other, ""},
		{"expect-head=" + head + "&expect-head=" + head, ""},
		{"__proto__=1", ""},
		{"constructor", ""},
		{"=" + head, ""},
		{"main", string(verifier.Pass)}, // where the link to skip the top leads
	} {
		b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(home+"#"+c.link))
		if got := b.upload([]sample{run}, run.keys)[0].Word; got != c.verdict {
			t.Errorf("%s: the verdict is %q, want %q", c.link, got, c.verdict)
		}
		if c.verdict == "" && !b.refuses() {
			t.Errorf("%s: the page does not say that nothing was verified", c.link)
		}
	}
	b.asking(head, "", "succeeded")
	b.run(chromedp.Evaluate(`at("expect-outcome").value = ""; at("expect-outcome").dispatchEvent(new Event("change"))`, nil))
	b.until(`at("verdict-word")?.textContent === "PASS"`)
}
