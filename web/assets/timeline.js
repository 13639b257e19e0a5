"use strict";

// A chain as a timeline: segments and attempts in order of arrival. Only the
// rows in sight are in the document, however many there are.

const rowHeight = 60; // px, as in console.css
const kindRank = { intent_bound: 1, comp_committed: 2, step_executed: 3, run_sealed: 4 };

// OrderReader marks what strict verification would object to, as it reads the
// segments in order: steps outside the plan, out of its order, kinds out of
// place.
class OrderReader {
	constructor() {
		this.rank = 0;
		this.plan = null; // Map of step id to positions
		this.next = 0;
	}

	mark(kind, body) {
		const rank = kindRank[kind] || 0;
		let mark = "";
		if (rank < this.rank || rank === 1 && this.rank === 1) mark = { intent_bound: "a second intent, or late", comp_committed: "plan after steps", step_executed: "step after the seal" }[kind] || "out of place";
		this.rank = Math.max(this.rank, rank);
		if (kind === "comp_committed") this.commit(body.step_topo);
		if (kind === "step_executed") mark = mark || this.step(body.step_id);
		return mark;
	}

	commit(topo) {
		this.plan = new Map();
		this.next = 0;
		topo.forEach((id, i) => this.plan.has(id) ? this.plan.get(id).push(i) : this.plan.set(id, [i]));
	}

	step(id) {
		if (!this.plan) return "no plan yet";
		const positions = this.plan.get(id);
		if (!positions) return "outside the plan";
		const at = positions.find((p) => p >= this.next);
		if (at === undefined) return "out of the plan's order";
		this.next = at + 1;
		return "";
	}
}

// rowOf keeps of a segment what its row shows; the rest is asked for again.
function rowOf(segment, order) {
	const body = JSON.parse(segment.kind_jcs);
	const row = { type: segment.kind, seq: segment.seq, arrival: segment.arrival, at: segment.emitted_at_ms ?? segment.broker_ms, mark: order.mark(segment.kind, body), note: "" };
	switch (segment.kind) {
	case "intent_bound":
		row.title = "Intent bound";
		row.note = plural(body.intent_len, "byte") + ", digest " + body.intent_digest.slice(0, 16) + "…";
		break;
	case "comp_committed":
		row.title = "Plan committed: " + plural(body.step_topo.length, "step");
		row.note = plain(body.step_topo.slice(0, 12).join(" → "), 200) + (body.step_topo.length > 12 ? " → …" : "");
		break;
	case "step_executed":
		row.title = "Step " + plain(body.step_id, 80);
		row.note = plain(body.source_line, 200);
		if (body.request_fingerprints.length) row.requests = body.request_fingerprints.length;
		break;
	case "run_sealed":
		row.title = "Run sealed";
		row.note = plain(body.run_id, 100);
		break;
	default:
		row.title = plain(segment.kind);
	}
	return row;
}

function rowOfAttempt(a) {
	return { type: a.phase, arrival: a.arrival, at: a.at_ms ?? a.broker_ms, mark: "", attempt: a,
		title: `Step ${plain(a.step_id, 80)} ${a.phase === "failed" ? "failed" : "begun"}`, note: a.phase === "failed" ? plain(a.reason || "no reason given", 200) : "" };
}

const rowIcons = { intent_bound: "◆", comp_committed: "≡", step_executed: "▸", run_sealed: "■", begin: "○", failed: "✕", end: "●" };

class Timeline {
	constructor(url) {
		this.url = url;
		this.segments = [];
		this.attempts = [];
		this.order = new OrderReader();
		this.rows = [];
		this.chosen = -1;
		this.ended = null; // the last row, how the chain ended
		this.busy = false;
		this.spacer = el("div", { class: "rows", role: "presentation" });
		this.list = el("div", { class: "timeline", role: "listbox", tabindex: "0", "aria-label": "Timeline of the chain", onscroll: () => this.draw(), onkeydown: (e) => this.key(e) }, this.spacer);
		this.status = el("p", { class: "quiet small", role: "status" });
		this.panel = el("div", { class: "row-panel", role: "region", "aria-live": "polite", "aria-label": "The chosen row" });
		this.node = el("section", { class: "card", "aria-label": "Timeline" }, el("h2", null, "Timeline"), this.status, this.list, this.panel);
		this.gone = new AbortController();
		addEventListener("resize", () => this.draw(), { signal: this.gone.signal });
	}

	// leave ends what would outlive the view.
	leave() { this.gone.abort(); }

	// load reads what is not there yet, page by page.
	async load(chain) {
		if (this.busy) return;
		this.busy = true;
		try {
			await this.read("segments", chain.segments, (page) => {
				for (const s of page.segments) this.segments.push(rowOf(s, this.order));
			});
			if (chain.steps.some((s) => s.begun + s.failed > 0) || chain.untold_steps) {
				await this.read("attempts", Infinity, (page) => { for (const a of page.attempts) this.attempts[a.ordinal] = rowOfAttempt(a); });
			}
			this.ended = { type: "end", title: chain.outcome === "open" ? "Open: more may come" : "Ended: " + plain(chain.outcome), note: plain(chain.reason || ""), mark: "", at: null };
			this.merge();
		} finally {
			this.busy = false;
		}
	}

	// read goes on with a list from where it was left.
	async read(what, most, take) {
		while (this[what].length < most) {
			const page = await askJSON(withQuery(this.url + "/" + what, { from: this[what].length, limit: 1000 }));
			take(page);
			this.say(what, most);
			if (page[what].length === 0) return;
			this.merge();
		}
	}

	say(what, most) {
		const n = this.segments.length;
		show(this.status, what === "segments" && n < most ? `reading, ${count(n)} of ${count(most)} segments` :
			[plural(n, "segment"), this.attempts.length ? ", " + plural(this.attempts.length, "attempt event") : "", this.deviations()]);
	}

	deviations() {
		const marked = this.segments.filter((r) => r.mark).length;
		return marked ? el("span", { class: "badge bad deviations" }, plural(marked, "deviation")) : "";
	}

	merge() {
		const rows = [];
		let i = 0;
		for (const s of this.segments) {
			while (i < this.attempts.length && this.attempts[i].arrival < s.arrival) rows.push(this.attempts[i++]);
			rows.push(s);
		}
		while (i < this.attempts.length) rows.push(this.attempts[i++]);
		if (this.ended) rows.push(this.ended);
		this.rows = rows;
		this.spacer.style.height = rows.length * rowHeight + "px";
		this.list.style.height = Math.min(rows.length * rowHeight + 2, Math.max(360, innerHeight * 0.7)) + "px";
		this.node.dataset.rows = rows.length;
		this.draw();
	}

	draw() {
		const first = Math.max(0, Math.floor(this.list.scrollTop / rowHeight) - 8);
		const last = Math.min(this.rows.length, Math.ceil((this.list.scrollTop + this.list.clientHeight) / rowHeight) + 8);
		const fragment = document.createDocumentFragment();
		for (let i = first; i < last; i++) fragment.append(this.row(i));
		this.spacer.replaceChildren(fragment);
		if (this.chosen >= first && this.chosen < last) this.list.setAttribute("aria-activedescendant", "row-" + this.chosen);
		else this.list.removeAttribute("aria-activedescendant");
	}

	row(i) {
		const r = this.rows[i];
		const node = el("div", { class: "row " + r.type + (r.mark ? " marked" : ""), role: "option", id: "row-" + i, "aria-selected": String(i === this.chosen), "aria-posinset": i + 1, "aria-setsize": this.rows.length, onclick: () => this.choose(i) },
			el("span", { class: "row-icon", "aria-hidden": "true" }, rowIcons[r.type] || "·"),
			el("span", { class: "row-text" }, el("span", { class: "row-title" }, el("span", { class: "row-name" }, r.title), r.requests && badge(plural(r.requests, "request"), "idle")),
				el("span", { class: "row-note" }, r.mark && el("span", { class: "row-mark" }, "✕ " + r.mark + (r.note ? " · " : "")), r.note)),
			el("span", { class: "row-side" }, r.seq !== undefined && "#" + count(r.seq), r.at !== null && el("span", { class: "row-time" }, when(r.at))));
		node.style.top = i * rowHeight + "px";
		return node;
	}

	key(event) {
		const page = Math.max(1, Math.floor(this.list.clientHeight / rowHeight) - 1);
		const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
		if (!(event.key in moves)) return;
		event.preventDefault();
		this.choose(Math.min(this.rows.length - 1, Math.max(0, this.chosen + moves[event.key])));
	}

	choose(i) {
		this.chosen = i;
		const top = i * rowHeight;
		if (top < this.list.scrollTop) this.list.scrollTop = top;
		if (top + rowHeight > this.list.scrollTop + this.list.clientHeight) this.list.scrollTop = top + rowHeight - this.list.clientHeight;
		this.draw();
		this.explain(this.rows[i]);
	}

	// explain shows all of one row, asking for the segment again.
	async explain(row) {
		if (row.attempt) return show(this.panel, attemptPanel(row));
		if (row.seq === undefined) return show(this.panel);
		try {
			const page = await askJSON(withQuery(this.url + "/segments", { from: row.seq, limit: 1 }));
			if (this.rows[this.chosen] === row) show(this.panel, segmentPanel(row, page.segments[0]));
		} catch (error) {
			show(this.panel, problemNote(error));
		}
	}
}

function segmentPanel(row, s) {
	const body = JSON.parse(s.kind_jcs);
	return [el("h3", null, row.title), row.mark && el("p", { class: "problem" }, "Deviation: " + row.mark + "."), facts([
		["Segment", "#" + count(s.seq)], ["Digest", hex(s.digest)], ["Previous", s.prev && digest(s.prev)],
		["Source line", body.source_line && el("code", null, plain(body.source_line, 4000))],
		["Steps in order", body.step_topo && plain(body.step_topo.slice(0, 300).join(" → "), 8000)],
		["Requests", body.request_fingerprints && body.request_fingerprints.length ? el("ol", { class: "plain" }, body.request_fingerprints.slice(0, 100).map((f) => el("li", null, el("code", null, plain(f, 200)))),
			body.request_fingerprints.length > 100 && el("li", { class: "quiet" }, "and " + count(body.request_fingerprints.length - 100) + " more")) : null],
		["Run id", body.run_id && digest(body.run_id)],
		["Claimed time", s.emitted_at_ms !== null && [when(s.emitted_at_ms), el("span", { class: "quiet" }, " (not hashed)")]],
		["Broker's time", when(s.broker_ms)], ["Event id", plain(s.event_id)], ["Producer's number", s.producer_seq !== null ? count(s.producer_seq) : null],
		["Stream sequence", `${count(s.stream_seq)} of epoch ${count(s.epoch)}`], ["Payload SHA-256", digest(s.payload_sha256)]]),
	details("What is hashed (canonical JSON of the kind)", false, el("pre", { class: "json", tabindex: "0", "aria-label": "Canonical JSON" }, plain(s.kind_jcs, 100000)))];
}

function attemptPanel(row) {
	const a = row.attempt;
	return [el("h3", null, row.title), el("p", { class: "quiet" }, "An attempt is recorded beside the chain; it is no segment of it."), facts([["Reason", plain(a.reason, 4000)],
		["Claimed time", a.at_ms !== null && when(a.at_ms)], ["Broker's time", when(a.broker_ms)], ["Event id", plain(a.event_id)],
		["Stream sequence", `${count(a.stream_seq)} of epoch ${count(a.epoch)}`], ["Payload SHA-256", digest(a.payload_sha256)]])];
}
