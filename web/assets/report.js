"use strict";

// How a report is shown. The words are the verifier's: verdict, summary and the
// detail of every check stand as it gave them.

const marks = { pass: "✓", fail: "✕", warn: "!", skipped: "–", not_applicable: "·" };
const statusWords = { pass: "passed", fail: "failed", warn: "warning", skipped: "not checked", not_applicable: "not applicable" };

const signatureWords = {
	"UNSIGNED": "Nobody signed this file.",
	"SIGNED-UNPINNED": "The signature fits, but you have not said whom you trust, so it shows only that somebody with this key signed.",
	"TRUSTED": "Signed by a key that you trust.",
	"RETIRED": "Signed by a key that you trust for old files.",
	"REVOKED": "Signed by a key that is revoked.",
	"UNTRUSTED": "Signed by a key that is not among those you trust.",
	"INVALID": "The signature does not fit.",
};

// tone is the colour of a verdict; the word always stands beside it.
function tone(exit) {
	return exit === 0 ? "good" : exit === 3 ? "fair" : "bad";
}

function badge(text, kind) {
	return el("span", { class: "badge " + kind }, plain(text, 60));
}

function checkRow(check) {
	return el("li", { class: "check " + check.status, "data-check": plain(check.name), "data-status": plain(check.status) },
		el("span", { class: "mark", "aria-hidden": "true" }, marks[check.status] || "?"),
		el("div", null,
			el("div", null, el("span", { class: "check-name" }, plain(check.name)),
				el("span", { class: "check-status" }, statusWords[check.status] || plain(check.status))),
			el("p", { class: "check-detail" }, plain(check.detail, 2000))));
}

function checkList(report) {
	const of = (...status) => report.checks.filter((c) => status.includes(c.status));
	const parts = [["Failed", of("fail"), true], ["Warnings", of("warn"), true], ["Passed", of("pass"), !matchMedia("(max-width: 820px)").matches],
		["Not checked", of("skipped"), true], ["Not applicable, or not asked for", of("not_applicable"), false]];
	return el("section", { class: "card checks" }, el("h2", { id: "checks" }, "Checks"), parts.filter(([, list]) => list.length).map(([title, list, open]) =>
		details([title, " ", el("span", { class: "count" }, count(list.length))], open, el("ul", { class: "plain" }, list.map(checkRow)))));
}

function finding(f, word) {
	const where = [f.where, f.path, f.seq !== undefined && "segment " + f.seq, f.step_id && "step " + f.step_id,
		f.offset !== undefined && "byte " + count(f.offset)].filter(Boolean).map((w) => plain(w)).join(", ");
	return el("li", { class: "finding " + word }, el("code", null, plain(f.code)), " ", plain(f.detail, 2000),
		where && el("span", { class: "quiet" }, " (" + where + ")"), f.more && el("span", { class: "quiet" }, " and " + count(f.more) + " more"));
}

function findings(report) {
	const list = [...report.errors.map((f) => finding(f, "error")), ...report.warnings.map((f) => finding(f, "warning"))];
	return list.length ? el("section", { class: "card" }, el("h2", null, "What was found"), el("ul", { class: "plain" }, list)) : null;
}

function aboutEvidence(r) {
	const scope = r.scope || {};
	return [
		["Head computed", r.head.computed && hex(r.head.computed)],
		["Head declared", r.head.declared && r.head.declared !== r.head.computed ? hex(r.head.declared) : null],
		["Segments", r.bundle || r.kind === "export" ? null : count(r.segments)],
		["Plan", r.plan && digest(r.plan)],
		["Tenant", r.scope && (scope.tenant_id ? plain(scope.tenant_id) : "(the empty tenant)")],
		["Session", scope.execute_session_id && digest(scope.execute_session_id)],
		["Prompt", scope.prompt_hash && digest(scope.prompt_hash)],
		["Catalog", scope.catalog_cgs_hash && digest(scope.catalog_cgs_hash)],
		["Entry", scope.entry_id && plain(scope.entry_id)],
		["Runs sealed", r.run_seals.count ? el("ul", { class: "plain" }, r.run_seals.first.map((s) =>
			el("li", null, digest(s.run_id), el("span", { class: "quiet" }, " at segment " + count(s.seq)))),
		r.run_seals.count > r.run_seals.first.length && el("li", { class: "quiet" }, "and " + count(r.run_seals.count - r.run_seals.first.length) + " more")) : null],
	];
}

function aboutBundle(b) {
	const run = b.run || {};
	return [
		["Root", b.root && b.root.computed && hex(b.root.computed)],
		["Domain", b.domain && plain(b.domain) + (b.engine_version ? ", " + plain(b.engine_version) : "")],
		["How far", b.taxonomy && plain(b.taxonomy)],
		["Question", b.question && plain(b.question, 1000)],
		["Run", b.run && plain(run.outcome) + (run.reason ? " (" + plain(run.reason) + ")" : "")],
		["Conformity", run.conformity && plain(run.conformity)],
		["Coverage", run.coverage && plain(run.coverage)],
		["Segments", b.run && count(run.segments)],
		["Head", run.head && hex(run.head)],
		["Chain", run.chain && plain(run.chain)],
		["Session", run.session && digest(run.session)],
		["Run ids", run.run_ids && run.run_ids.length ? run.run_ids.slice(0, 20).map((id) => el("div", null, digest(id))) : null],
		["Answer", b.answer && plain(b.answer)],
		["Action", b.action && b.action !== "none" ? plain(b.action) : null],
		["Withheld", b.withheld && b.withheld.count ? count(b.withheld.count) + ": " + b.withheld.first.map((w) => plain(w, 80)).join(", ") : null],
	];
}

const claimTone = (verdict) => ({ "re-derived": "good", "unsupported": "bad", "altered": "bad" }[verdict] || "fair");

function claims(b) {
	if (!b.claims.length) return null;
	return el("section", { class: "card" }, el("h2", null, "Claims, computed again from the evidence in the file"),
		el("ol", { class: "plain claims" }, b.claims.map((c) => el("li", { "data-claim": plain(c.verdict, 60) },
			badge(c.verdict, claimTone(c.verdict)), el("span", null, plain(c.text, 2000)),
			c.cause && el("p", { class: "quiet" }, plain(c.cause, 2000))))));
}

function upstreams(b) {
	if (!b.upstreams.length) return null;
	return el("section", { class: "card" }, el("h2", null, "Bundles that this one builds on"), el("ul", { class: "plain" },
		b.upstreams.map((u) => el("li", null, badge(u.verdict, claimTone(u.verdict)), " ", digest(u.root), u.cause && el("p", { class: "quiet" }, plain(u.cause))))));
}

function signatureCard(s) {
	if (!s.state) return null;
	const kind = { TRUSTED: "good", RETIRED: "good", "SIGNED-UNPINNED": "fair", UNSIGNED: "fair" }[s.state] || "bad";
	return el("section", { class: "card" }, el("h2", null, "Signature ", badge(s.state, kind)), el("p", null, signatureWords[s.state] || ""),
		facts([["Public key", s.public_key && hex(s.public_key)], ["Key id", s.key_id && hex(s.key_id)], ["Comment", s.comment && plain(s.comment)]]));
}

function verdictBanner(report, name) {
	return el("div", { class: "verdict " + tone(report.exit_code), role: "status" },
		el("span", { class: "verdict-mark", "aria-hidden": "true" }, { good: "✓", fair: "!", bad: "✕" }[tone(report.exit_code)]),
		el("div", null,
			el("p", { class: "verdict-word" }, el("strong", { id: "verdict-word" }, plain(report.verdict)), " ", el("span", { class: "verdict-file", title: plain(name) }, middle(name, 44, 22))),
			el("p", { class: "verdict-summary" }, plain(report.summary, 4000)),
			el("p", { class: "verdict-facts" }, tallies(report), " · exit code " + report.exit_code + " · " + (report.mode === "reference" ? "reference mode" : "strict mode"))));
}

// tallies says in a line how the checks went, so that what was not checked is seen
// without looking for it.
function tallies(report) {
	const words = [["pass", "passed"], ["fail", "failed"], ["warn", "with a warning"], ["skipped", "not checked"]];
	const counted = words.map(([status, word]) => [report.checks.filter((c) => c.status === status).length, word]).filter(([n]) => n);
	return "checks: " + counted.map(([n, word]) => count(n) + " " + word).join(", ");
}

const kindWords = { evidence: "Evidence bundle", export: "Export" };

// reportView shows a whole report; text is its JSON as the verifier wrote it.
function reportView(report, text, name) {
	const kind = report.bundle ? "Trust bundle" : kindWords[report.kind] || "File";
	const about = facts([...(report.bundle ? aboutBundle(report.bundle) : []), ...aboutEvidence(report)]);
	return el("div", { class: "report" }, verdictBanner(report, name),
		findings(report), report.bundle && claims(report.bundle),
		about.childElementCount > 0 && el("section", { class: "card" }, el("h2", null, kind), about),
		signatureCard(report.signature), checkList(report),
		report.bundle && upstreams(report.bundle),
		el("section", { class: "card" }, details("The report as JSON", false, el("p", null, el("button", { type: "button", onclick: () => save(text, "report.json", "application/json") }, "Save report")),
			el("pre", { class: "json", tabindex: "0", "aria-label": "Report as JSON" }, lines(JSON.stringify(report, null, 2))))));
}

// lines keeps the line breaks that indentation put in; any other is escaped.
function lines(json) {
	return json.split("\n").slice(0, 5000).map((line) => plain(line, 2000)).join("\n");
}
