"use strict";

// A chain as a timeline: segments and attempts in order of arrival. Only the rows
// in sight are in the document, and of the others the page holds a few numbers
// each: what a row says is asked for when it comes into sight, and forgotten when
// others have.

const rowHeight = 60; // px, as in console.css
const atOnce = 1000; // entries that are read in one piece, to know their order
const stretch = 100; // rows that are asked for together, and forgotten together
const kept = 20; // stretches of each list that are held

const rowIcons = { intent_bound: "◆", comp_committed: "≡", step_executed: "▸", run_sealed: "■", begin: "○", failed: "✕", end: "●" };

// Numbers grows as it is filled, eight bytes an entry or one.
class Numbers {
	constructor(Type) {
		this.values = new Type(256);
		this.length = 0;
	}

	push(...some) {
		if (this.length + some.length > this.values.length) {
			const more = new this.values.constructor(2 * (this.length + some.length));
			more.set(this.values);
			this.values = more;
		}
		this.values.set(some, this.length);
		this.length += some.length;
	}
}

// List is one of the two lists that a timeline is made of. rowOf makes a row of an
// entry and of its position.
class List {
	constructor(what, rowOf) {
		this.what = what;
		this.rowOf = rowOf;
		this.arrivals = new Numbers(Float64Array);
		this.stretches = new Map(); // by number, those that were used last at the end
		this.together = stretch; // entries that come in one answer, which ends at so many bytes
	}

	get length() { return this.arrivals.length; }

	// row gives the row of an entry, if it is here.
	row(i) {
		const at = Math.floor(i / stretch), rows = this.stretches.get(at);
		if (!rows) return undefined;
		this.stretches.delete(at);
		this.stretches.set(at, rows);
		return rows[i % stretch];
	}

	keep(i, row) {
		const at = Math.floor(i / stretch);
		if (!this.stretches.has(at)) this.stretches.set(at, []);
		this.stretches.get(at)[i % stretch] = row;
	}

	// gap is what to ask for, to have an entry that is not here: what is missing beside
	// it, as far as an answer reaches.
	gap(i) {
		const rows = this.stretches.get(Math.floor(i / stretch)) ?? [];
		let first = i, end = i + 1;
		while (first % stretch && first % this.together && !rows[(first - 1) % stretch]) first--;
		while (end < this.length && end % stretch && end - first < this.together && !rows[end % stretch]) end++;
		return { first, limit: end - first };
	}

	// take puts rows that were asked for in the place of those longest not used.
	take(first, entries) {
		entries.forEach((entry, n) => this.keep(first + n, this.rowOf(entry, first + n)));
		for (const at of this.stretches.keys()) if (this.stretches.size > kept) this.stretches.delete(at);
	}
}

// Reader is the thread that reads the lists, as reader.js says. It goes on where
// another had come to.
class Reader {
	constructor(before) {
		const url = URL.createObjectURL(new Blob([document.getElementById("reader").textContent], { type: "text/javascript" }));
		this.worker = new Worker(url);
		URL.revokeObjectURL(url);
		this.reject = () => {};
		if (before) this.worker.postMessage({ before });
	}

	read(what, path, whole) { return this.ask({ what, url: new URL(path, location.href).href, token: sessionStorage.getItem(tokenKey), whole }); }

	// ask takes one question at a time.
	ask(question) {
		return new Promise((resolve, reject) => {
			this.reject = reject;
			this.worker.onmessage = ({ data }) => data.problem ? reject(new Problem(data.problem.status, data.problem.title, data.problem.detail)) : resolve(data);
			this.worker.onerror = (event) => reject(new Problem(0, "Not read", event.message || "the chain could not be read"));
			this.worker.postMessage(question);
		});
	}

	stop() {
		this.worker.terminate();
		this.reject(new Problem(0, "Left", "the view was left"));
	}
}

class Timeline {
	// gone is a signal that the view was left.
	constructor(url, gone) {
		this.url = url;
		this.gone = gone;
		this.reader = this.before = null; // the thread that reads, and what the last one knew
		this.words = [""]; // what a segment may be marked with
		this.marks = new Numbers(Uint8Array); // of each segment, which of these
		this.deviating = 0;
		this.segments = new List("segments", (s, i) => rowOf(s, this.markOf(i)));
		this.attempts = new List("attempts", rowOfAttempt);
		this.count = 0; // rows, with the last
		this.rows = new Numbers(Int32Array); // positions of segments, and -1 - those of attempts
		this.chosen = -1;
		this.ended = null; // the last row, how the chain ended
		this.missing = null; // the first row in sight that is not here
		this.asking = false; // for rows that are in sight
		this.failed = null; // why they did not come
		this.spacer = el("div", { class: "rows", role: "presentation" });
		this.list = el("div", { class: "timeline", role: "listbox", tabindex: "0", "aria-label": "Timeline of the chain", onscroll: () => this.draw(), onkeydown: (e) => this.key(e) }, this.spacer);
		this.status = el("p", { class: "quiet small", role: "status" });
		this.panel = el("div", { class: "row-panel", role: "region", "aria-live": "polite", "aria-label": "The chosen row" });
		this.node = el("section", { class: "card", "aria-label": "Timeline" }, el("h2", null, "Timeline"), this.status, this.list, this.panel);
		addEventListener("resize", () => this.draw(), { signal: gone });
	}

	// leave ends what would outlive the view.
	leave() { this.reader?.stop(); }

	markOf(i) { return this.words[this.marks.values[i]]; }

	// begin reads the first segments, for somebody to see.
	async begin(chain) {
		await this.read(this.segments, Math.min(atOnce, chain.segments), chain.segments);
		await this.rest();
	}

	// load reads what is not there yet, page by page.
	async load(chain) {
		await this.read(this.segments, chain.segments, chain.segments);
		if (chain.steps.some((s) => s.begun + s.failed > 0) || chain.untold_steps) await this.read(this.attempts, Infinity, Infinity);
		await this.rest();
		this.ended = { type: "end", title: chain.outcome === "open" ? "Open: more may come" : "Ended: " + plain(chain.outcome), note: plain(chain.reason || ""), mark: "", at: null };
		this.merge();
	}

	// rest ends the thread, whose memory somebody else may need, and keeps what it knew.
	async rest() {
		if (!this.reader) return;
		this.before = await this.reader.ask({});
		this.reader = this.reader.stop();
	}

	// read goes on with a list from where it was left. The first rows come with it, so
	// that a short chain is not asked for twice.
	async read(list, most, all) {
		while (list.length < most) {
			const from = list.length, first = from === 0;
			this.gone.throwIfAborted();
			this.reader ??= new Reader(this.before);
			const { arrivals, marks, words, whole } = await this.reader.read(list.what, this.address(list, from, atOnce), first ? stretch : 0);
			list.arrivals.push(...arrivals);
			if (list === this.segments) this.mark(marks, words);
			if (first) list.take(0, whole);
			this.say(list, all);
			if (arrivals.length === 0) return;
			this.measure();
		}
	}

	mark(marks, words) {
		const from = this.marks.length;
		this.words = words;
		this.marks.push(...marks);
		this.deviating += marks.filter((m) => m).length;
		if (!this.ended) this.rows.push(...Array.from(marks, (_, n) => from + n));
	}

	address(list, from, limit) { return withQuery(this.url + "/" + list.what, { from, limit }); }

	async ask(list, from, limit) { return (await askJSON(this.address(list, from, limit), { signal: this.gone }))[list.what]; }

	say(list, most) {
		const n = this.segments.length;
		show(this.status, list === this.segments && n < most ? `reading, ${count(n)} of ${count(most)} segments` :
			[plural(n, "segment"), this.attempts.length ? ", " + plural(this.attempts.length, "attempt event") : "", this.deviations()]);
	}

	deviations() {
		return this.deviating ? el("span", { class: "badge bad deviations" }, plural(this.deviating, "deviation")) : "";
	}

	// merge puts both lists in order of arrival. What is read before is shown without
	// attempts, and what is read later, by a chain that was shown, is not shown before.
	// The row that was chosen stays chosen, wherever it comes to stand.
	merge() {
		const chosen = this.chosen < this.rows.length ? this.rows.values[this.chosen] : null; // null: the last
		const segments = this.segments.arrivals, attempts = this.attempts.arrivals;
		this.rows = new Numbers(Int32Array);
		for (let s = 0, a = 0; s < segments.length || a < attempts.length;) {
			const attempt = s === segments.length || a < attempts.length && attempts.values[a] < segments.values[s];
			this.rows.push(attempt ? -1 - a++ : s++);
		}
		if (this.chosen >= 0) this.chosen = chosen === null ? this.rows.length : this.rows.values.indexOf(chosen);
		this.measure();
		this.draw();
	}

	// measure makes room for all rows, and draws when some of them are in sight.
	measure() {
		const before = this.count;
		this.count = this.rows.length + (this.ended ? 1 : 0);
		this.spacer.style.height = this.count * rowHeight + "px";
		const most = Math.floor(Math.max(360, innerHeight * 0.7) / rowHeight); // no row is cut in half at rest
		const shown = this.count > most + 2 ? most : this.count; // nobody scrolls for one or two
		this.list.style.height = shown * rowHeight + 2 + "px";
		this.node.dataset.rows = this.count;
		if (before < this.inSight().last) this.draw();
	}

	// inSight is the range of rows that are in the document, the last not included.
	inSight() {
		return { first: Math.max(0, Math.floor(this.list.scrollTop / rowHeight) - 8),
			last: Math.min(this.count, Math.ceil((this.list.scrollTop + this.list.clientHeight) / rowHeight) + 8) };
	}

	// find gives the list that a row is of, and its position in it; the last row, how
	// the chain ended, is of none.
	find(i) {
		if (i >= this.rows.length) return null;
		const at = this.rows.values[i];
		return at < 0 ? { list: this.attempts, at: -1 - at } : { list: this.segments, at };
	}

	draw() {
		this.paint();
		if (this.missing) this.fetch();
	}

	// paint draws with what is here.
	paint() {
		const { first, last } = this.inSight();
		const fragment = document.createDocumentFragment();
		let missing = null;
		for (let i = first; i < last; i++) {
			const found = this.find(i), row = found ? found.list.row(found.at) : this.ended;
			if (!row) missing = missing ?? found;
			fragment.append(this.row(i, row ?? this.unread(found)));
		}
		this.spacer.replaceChildren(fragment);
		if (this.chosen >= first && this.chosen < last) this.list.setAttribute("aria-activedescendant", "row-" + this.chosen);
		else this.list.removeAttribute("aria-activedescendant");
		this.missing = missing;
		if (!missing) this.failed = null;
	}

	// unread is what is known of a row that is not here.
	unread({ list, at }) {
		const segment = list === this.segments;
		return { type: "unread", title: this.failed ? "Not read" : "Reading …", note: "", mark: segment ? this.markOf(at) : "", seq: segment ? at : undefined, at: null };
	}

	// fetch asks for the rows that are in sight, some at a time, until all are here:
	// whoever scrolls on meanwhile gets those that are in sight then. After a failure it
	// asks no more, until somebody scrolls or the view is refreshed.
	async fetch() {
		if (this.asking) return;
		this.asking = true;
		this.failed = null;
		try {
			while (this.missing) await this.fill(this.missing);
		} catch (error) {
			if (this.gone.aborted) return;
			this.failed = error;
			this.paint();
			complain(error, view);
		} finally {
			this.asking = false;
		}
	}

	// fill asks for a row, with others beside it. An answer brings those it begins with.
	async fill({ list, at }) {
		const { first, limit } = list.gap(at);
		const entries = await this.ask(list, first, limit);
		if (!entries.length) throw new Problem(0, "Not read", `the server did not give ${list.what} of this chain that it has; they are asked for again`);
		if (entries.length < limit) list.together = entries.length;
		list.take(first, entries);
		this.paint();
	}

	// again asks for what is still missing, and fails when it does not come.
	async again() {
		if (this.missing) await this.fetch();
		if (this.failed) throw this.failed;
	}

	row(i, r) {
		const node = el("div", { class: "row " + r.type + (r.mark ? " marked" : ""), role: "option", id: "row-" + i, "aria-selected": String(i === this.chosen), "aria-posinset": i + 1, "aria-setsize": this.count, onclick: () => this.choose(i) },
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
		if (!this.count) return;
		this.choose(Math.min(this.count - 1, Math.max(0, this.chosen + moves[event.key])));
	}

	choose(i) {
		this.chosen = i;
		const top = i * rowHeight;
		if (top < this.list.scrollTop) this.list.scrollTop = top;
		if (top + rowHeight > this.list.scrollTop + this.list.clientHeight) this.list.scrollTop = top + rowHeight - this.list.clientHeight;
		this.draw();
		this.explain(i);
	}

	// explain shows all of one row, asking for it again.
	async explain(i) {
		const found = this.find(i);
		if (!found) return show(this.panel);
		let panel;
		try {
			const [entry] = await this.ask(found.list, found.at, 1);
			panel = found.list === this.segments ? segmentPanel(rowOf(entry, this.markOf(found.at)), entry) : attemptPanel(entry);
		} catch (error) {
			panel = problemNote(error);
		}
		if (this.chosen === i) show(this.panel, panel);
	}
}
