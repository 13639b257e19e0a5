"use strict";

// One chain: how it stands, its timeline, its verdict, and what is beside it.

const verifyUpTo = 64e6; // bytes of evidence that the page fetches on its own

// What a view has begun ends when it is left: it asks for no more, its verifier stops,
// and nothing that it still learns is shown in the next.
class ChainView {
	constructor(node, key) {
		this.url = "/v1/chains/" + key.map(encodeURIComponent).join("/");
		this.key = key;
		this.head = el("div");
		this.state = el("section", { class: "card", "aria-label": "State" });
		this.verdict = el("section", { class: "verdict-part", "aria-label": "Verdict" });
		this.gone = new AbortController();
		const how = this.how = { signal: this.gone.signal };
		this.engine = new Engine(async () => whole((await ask("/verifier.wasm.gz", how)).arrayBuffer()));
		this.timeline = new Timeline(this.url, how.signal);
		this.banner = el("div"); // the verdict in a line, before anything else
		this.beside = el("div");
		this.refreshing = null; // what a refresh under way will come to
		this.judged = ""; // digest of the evidence that the verdict is on
		put(node, [this.head, this.banner, this.timeline.node, this.state, this.verdict, this.beside]);
	}

	leave() {
		this.gone.abort();
		this.timeline.leave();
		this.engine.stop();
	}

	// refresh is asked for by a clock, and may take longer than that waits.
	refresh() { return this.refreshing ??= this.renew().finally(() => { this.refreshing = null; }); }

	// renew asks for the whole chain only when its line in the list says that
	// something happened, or that something is missing: a chain may have very many steps.
	async renew() {
		const [tenant, prompt_hash, session, chain] = this.key;
		const line = (await askJSON(withQuery("/v1/chains", { tenant, prompt_hash, session, chain, limit: 1 }), this.how)).chains[0];
		const state = JSON.stringify(line ?? null);
		if (line && state === this.known) return this.timeline.again();
		const c = await askJSON(this.url, this.how);
		this.chain = c;
		show(this.head, el("p", { class: "crumb" }, el("a", { href: "#/" }, "Chains")), el("h1", null, plain(c.chain)), el("div", { class: "badges" }, badge(c.outcome, outcomeTone[c.outcome]),
			badge(c.conformity, conformityTone[c.conformity]), badge("coverage " + c.coverage, coverageTone[c.coverage] || "idle"), c.sealed && badge(c.sealed.signed ? "signed" : "unsigned", c.sealed.signed ? "good" : "idle")));
		show(this.state, this.about(c));
		if (!c.evidence_url) show(this.verdict, el("div", { class: "card" }, el("h2", null, "Verdict"), el("p", { class: "quiet" }, c.outcome === "open" ? "The chain is open. Its evidence is sealed, and can be verified, when it ends." : c.segments ? "The evidence is being written." : "The chain has no segments: there is nothing to verify.")));
		// One after the other, since a long chain would take memory for both: what
		// verifying took is free again at its end, what reading took only some time later.
		await both(this.timeline.begin(c), this.around(c));
		const unjudged = await this.judge(c);
		await this.timeline.load(c);
		await this.timeline.again();
		if (unjudged) throw unjudged;
		this.gone.signal.throwIfAborted();
		this.known = state;
		document.body.dataset.chain = c.outcome + " " + (c.sealed ? "sealed" : "");
	}

	about(c) {
		return [el("h2", null, "State"), el("div", { class: "two" }, facts([
			["Tenant", c.tenant ? plain(c.tenant) : "(the empty tenant)"], ["Session", digest(c.session)], ["Prompt", digest(c.prompt_hash)],
			["Reason", plain(c.reason, 1000)], ["Segments", count(c.segments)], ["Head", c.head && hex(c.head)],
			["Run ids", c.run_ids.length ? c.run_ids.slice(0, 20).map((id) => el("div", null, digest(id))) : null]]),
		facts([["Coverage", [badge(c.coverage, coverageTone[c.coverage] || "idle"), c.coverage_why.length ? el("span", { class: "sub" }, c.coverage_why.map((w) => plain(w)).join(", ")) : null]],
			["Conformity", [badge(c.conformity, conformityTone[c.conformity]), c.conformity_codes.length ? el("span", { class: "sub" }, c.conformity_codes.map((w) => plain(w)).join(", ")) : null]],
			["Producer's head", c.producer_head ? badge(c.producer_head, c.producer_head === "agrees" ? "good" : "bad") : el("span", { class: "quiet" }, "not given")],
			["Producer's signature", c.producer_signature ? badge(c.producer_signature, c.producer_signature === "agrees" ? "good" : "bad") : el("span", { class: "quiet" }, "not given")],
			["Events", `${count(c.event_ids)} distinct` + (c.event_count !== null ? `, ${count(c.event_count)} declared` : "") + (c.duplicates ? `, ${count(c.duplicates)} repeated` : "")],
			["Late", count(c.late)], ["Rejected", count(c.rejected)], ["Stream", `sequences ${count(c.first_stream_seq)} to ${count(c.stream_seq)}, epoch ${count(c.epoch)}`],
			["Sealed", c.sealed && [when(c.sealed.sealed_ms), c.sealed.path && el("span", { class: "sub hex path" }, el("code", { title: plain(c.sealed.path) }, "…/" + middle(c.sealed.path.split("/").pop(), 12, 22)), copier(c.sealed.path))]]])),
		el("div", { class: "actions downloads" }, c.evidence_url && el("button", { type: "button", class: "primary", id: "download", onclick: () => this.download(c.evidence_url, c.head + ".evidence.json") }, "Download evidence"),
			c.bundle_url && (c.outcome === "open" || c.sealed && c.sealed.bundle_path) && el("button", { type: "button", onclick: () => this.download(c.bundle_url, c.chain + ".tsb") }, "Download trust bundle"),
			el("a", { class: "button", href: "/verify" }, "Open the verify page"))];
	}

	async download(url, name) {
		try {
			save(await askFile(url), name, "application/octet-stream");
		} catch (error) {
			complain(error, this);
		}
	}

	// judge verifies the evidence here, once for each version of it. It answers what
	// kept the evidence from being had, if anything: then it is to be asked for again.
	async judge(c) {
		if (!c.evidence_url || this.judged === c.sealed.sha256) return;
		this.judged = c.sealed.sha256;
		this.banner.replaceChildren();
		const title = el("h2", null, "Verdict");
		if (c.sealed.bytes > verifyUpTo) return show(this.verdict, el("div", { class: "card" }, title, el("p", { class: "quiet" }, `The evidence has ${size(c.sealed.bytes)}. Download it and use the verify page or chaind verify.`)));
		show(this.verdict, el("div", { class: "card" }, title, el("p", { class: "quiet", role: "status" }, "Verifying in this browser …")));
		try {
			const [keys, evidence] = await Promise.all([askJSON("/v1/keys", this.how), askFile(c.evidence_url, this.how)]);
			const answer = await this.engine.verify(evidence, { keys: "", entries: keys.trusted });
			this.engine.stop(); // and what it held
			const report = JSON.parse(answer.report);
			const view = reportView(report, answer.report, c.head + ".evidence.json");
			this.banner.replaceChildren(view.querySelector(".verdict"));
			this.verdict.replaceChildren(el("h2", { class: "part" }, "What the verdict rests on"), el("p", { class: "quiet" }, "Computed in this browser from the downloaded bytes, ", keys.pinned ? "with this daemon's trust list." : "with nobody trusted, since this daemon has no trust list."), view);
		} catch (error) {
			this.verdict.replaceChildren(el("div", { class: "card" }, title, el("p", { class: "note" }, "Not verified here, which is neither a pass nor a failure: " + plain(error.message, 600))));
			if (!(error instanceof Problem)) return; // the verifier's own failure, which would come again
			this.judged = "";
			return error;
		}
	}

	// around lists what is beside the chain: steps, gaps, late and rejected events.
	async around(c) {
		const [late, rejected] = await Promise.all([c.late ? askJSON(this.url + "/addenda?limit=200", this.how) : { addenda: [] },
			c.rejected ? askJSON(withQuery("/v1/rejected", { tenant: c.tenant || "_", prompt_hash: c.prompt_hash, session: c.session, chain: c.chain, limit: 200 }), this.how) : { rejected: [] }]);
		show(this.beside, stepsCard(c), el("section", { class: "card" }, el("h2", null, "Gaps"), c.lost.length ? lostTable(c.lost) : el("p", { class: "quiet" }, "No range of the stream was lost while this chain was open.")),
			rejected.rejected.length ? el("section", { class: "card" }, el("h2", null, "Rejected events of this chain"), long(rejected.rejected, (some) => rejectedTable(some, false))) : null,
			late.addenda.length ? el("section", { class: "card" }, el("h2", null, "Addenda: events that came after the end"), el("p", { class: "quiet" }, "They changed nothing that was sealed."), addendaTable(late.addenda)) : null);
	}
}

// both waits for the end of two things, whichever of them fails.
async function both(one, other) {
	for (const { reason } of await Promise.allSettled([one, other])) if (reason) throw reason;
}

// long shows the first entries of a list and keeps the others folded.
function long(list, show, first = 5) {
	return [show(list.slice(0, first)), list.length > first && details(count(list.length - first) + " more", false, show(list.slice(first)))];
}

function stepsCard(c) {
	if (!c.steps.length) return null;
	const verdictOf = (s) => s.begun > s.ended + s.failed ? badge("outcome unknown", "fair") : s.ended ? badge("ended", "good") : s.failed ? badge("failed", "bad") : badge("begun", "idle");
	return el("section", { class: "card" }, el("h2", null, "Steps and their attempts"), el("div", { class: "stack" }, table(["Step", "State", "Begun", "Ended", "Failed"], c.steps.slice(0, 200).map((s) => [el("code", null, plain(s.step_id, 120)), verdictOf(s), count(s.begun), count(s.ended), count(s.failed)]))),
		c.steps.length > 200 && el("p", { class: "quiet" }, "and " + count(c.steps.length - 200) + " more"));
}

function addendaTable(list) {
	return el("div", { class: "stack" }, table(["When", "Event", "What", "Payload SHA-256"], list.map((a) => [when(a.broker_ms), plain(a.event_id, 60), [plain(a.verb), a.step_id && " of step " + plain(a.step_id, 80), a.outcome && ": " + plain(a.outcome), a.reason && el("span", { class: "sub" }, plain(a.reason, 300))], shortHex(a.payload_sha256, 16)])));
}
