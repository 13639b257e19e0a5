"use strict";

const outcomeTone = { succeeded: "good", failed: "bad", cancelled: "fair", abandoned: "fair", open: "idle" };
const conformityTone = { conforming: "good", unplanned: "fair", nonconforming: "bad" };
const coverageTone = { complete: "good", incomplete: "bad", unspecified: "idle" };

const chainPath = (c) => [c.tenant || "_", c.prompt_hash, c.session, c.chain].map(encodeURIComponent).join("/");

function chainLink(c) {
	return el("a", { class: "chain-name" + (c.chain.length <= 28 ? " short" : ""), href: "#/chain/" + chainPath(c) }, plain(c.chain));
}

// sealedState says where a chain's evidence is.
function sealedState(c) {
	if (c.sealed) return c.sealed.class ? [badge(c.sealed.signed ? "signed" : "unsigned", c.sealed.signed ? "good" : "idle"), el("span", { class: "sub" }, whenBriefly(c.sealed.sealed_ms))] : el("span", { class: "quiet" }, "no segments");
	return el("span", { class: "quiet" }, c.outcome === "open" ? "still open" : "being sealed");
}

// The list of chains, in pages, with filters that stand in the address.
class ChainsView {
	constructor(node, query) {
		this.query = query;
		this.stack = []; // cursors of the pages before
		this.after = null;
		this.tiles = el("div");
		this.list = el("section", { class: "card", "aria-label": "Chains" });
		put(node, [el("h1", null, "Chains"), this.tiles, this.filters(), this.list]);
	}

	filters() {
		const choice = (name, label, values) => el("div", null, el("label", { for: "f-" + name }, label), el("select", { id: "f-" + name, name }, el("option", { value: "" }, "any"),
			values.map((v) => el("option", { value: v, selected: this.query.get(name) === v }, v))));
		const text = (name, label, pattern, size) => el("div", null, el("label", { for: "f-" + name }, label), el("input", { id: "f-" + name, name, size, value: this.query.get(name) || "", spellcheck: "false", autocomplete: "off" }));
		const form = el("form", { class: "filters", onsubmit: (e) => e.preventDefault(), onchange: () => {
			const chosen = new URLSearchParams([...new FormData(form)].filter(([, v]) => v.trim()).map(([k, v]) => [k, v.trim()]));
			location.hash = "#/" + (chosen.size ? "?" + chosen : "");
		} }, choice("outcome", "Outcome", ["open", "succeeded", "failed", "cancelled", "abandoned"]), choice("conformity", "Conformity", ["conforming", "unplanned", "nonconforming"]),
		text("tenant", "Tenant", "", 10), text("session", "Session", "", 20), text("chain", "Chain", "", 16));
		return form;
	}

	async refresh() {
		show(this.tiles, tiles());
		const page = await askJSON(withQuery("/v1/chains", { ...Object.fromEntries(this.query), after: this.after, limit: 50 }));
		show(this.list, page.chains.length ? [el("div", { class: "stack" }, this.table(page.chains))] : this.nothing(), this.pager(page));
		this.next = page.next;
	}

	nothing() {
		if (this.query.size) return el("p", { class: "quiet" }, "No chain fits these filters.");
		return [el("h2", null, "No chain yet"), el("p", { class: "quiet" }, "A chain appears with its first event. To see one: ", el("code", null, "chaind publish docs/example.jsonl"))];
	}

	table(chains) {
		const t = table(["Chain", "Outcome", "Conformity", "Segments", "Late", "Rejected", "Head", "Evidence"], chains.map((c) => c.damage ? [chainLink(c), el("span", { class: "problem" }, plain(c.damage))] : [
			[chainLink(c), el("span", { class: "sub" }, c.tenant ? plain(c.tenant) : "empty tenant", " · session ", shortHex(c.session, 8))],
			badge(c.outcome, outcomeTone[c.outcome] || "idle"), badge(c.conformity, conformityTone[c.conformity] || "idle"),
			count(c.segments), tally(c.late, "fair"), tally(c.rejected, "bad"), c.head ? shortHex(c.head, 10) : "–", sealedState(c)]));
		t.classList.add("chains");
		return t;
	}

	pager(page) {
		const turn = (change) => () => { change(); this.refresh().catch((error) => complain(error, this)); };
		if (!page.next && !this.stack.length) return null;
		return el("div", { class: "pages", "data-live": true }, el("button", { type: "button", disabled: !this.stack.length, onclick: turn(() => { this.after = this.stack.pop(); }) }, "Previous"),
			el("button", { type: "button", id: "next-page", disabled: !page.next, onclick: turn(() => { this.stack.push(this.after); this.after = this.next; }) }, "Next"),
			el("span", { class: "quiet small" }, "page " + count(this.stack.length + 1)));
	}
}

// Rejected events, of all chains.
class RejectedView {
	constructor(node) {
		this.list = el("section", { class: "card", "aria-label": "Rejected events" });
		put(node, [el("h1", null, "Rejected events"), el("p", { class: "quiet" }, "What did not enter its chain, and why. Payloads are not shown; a digest finds one in the stream of rejected events."), this.list]);
	}

	async refresh() {
		const found = [];
		let more = false;
		await everyPage("/v1/rejected", { limit: 200 }, (page) => { found.push(...page.rejected); more = Boolean(page.next) && found.length >= 1000; return !more; });
		show(this.list, found.length ? long(found.reverse(), (some) => rejectedTable(some, true), 25) : el("p", { class: "quiet" }, "None."), more && el("p", { class: "quiet" }, "The first 1,000 are shown; chaind rejected lists all."));
	}
}

function rejectedTable(list, withChain) {
	const heads = ["When", ...(withChain ? ["Chain"] : []), "Why", "Event id", "Payload SHA-256"];
	return el("div", { class: "stack" }, table(heads, list.map((r) => [whenBriefly(r.broker_ms),
		...(withChain ? [r.chain ? chainLink(r.chain) : el("span", { class: "quiet small mono", title: plain(r.subject) }, middle(r.subject, 22, 10))] : []),
		[badge(r.class, "bad"), el("span", { class: "sub" }, plain(r.detail, 600))], r.event_id ? plain(r.event_id, 60) : "–", shortHex(r.payload_sha256, 12)])));
}

// Public keys and their states.
class KeysView {
	constructor(node) {
		this.body = el("div");
		put(node, [el("h1", null, "Keys"), this.body]);
	}

	async refresh() {
		const k = await askJSON("/v1/keys");
		const status = (s) => badge(s || "not in the trust list", { active: "good", retired: "fair", revoked: "bad" }[s] || "idle");
		show(this.body, el("section", { class: "card" }, el("h2", null, "What is signed with"), k.signing ? facts([["Public key", hex(k.signing.public_key)], ["Key id", el("code", null, plain(k.signing.key_id))], ["Status", status(k.signing.status)],
			["Comment", plain(k.signing.comment)], ["For auditors", el("a", { href: "/verify#trust=" + k.signing.public_key }, "the verify page, trusting this key")]]) :
			el("p", { class: "quiet" }, "Nothing: what is sealed stays unsigned. ", el("code", null, "chaind keygen"), " creates a key.")),
		el("section", { class: "card" }, el("h2", null, "Who is trusted"), k.pinned ? el("div", { class: "stack" }, table(["Key id", "Status", "Public key", "Comment"], k.trusted.map((e) => [el("code", null, plain(e.key_id)), status(e.status), hex(e.public_key), plain(e.comment) || "–"]))) :
			el("p", { class: "quiet" }, "Nobody said whom to trust, so a valid signature counts as SIGNED-UNPINNED.")));
	}
}
