"use strict";

// Samples of the metrics, kept as long as the page is open.

const sampleEvery = 2000, sampleWindow = 300000; // ms
const samples = []; // {at, found}
let sampleProblem = "";

async function sample() {
	try {
		samples.push({ at: Date.now(), found: await series() });
		while (samples.length && samples[0].at < Date.now() - sampleWindow) samples.shift();
		sampleProblem = "";
	} catch (error) {
		sampleProblem = error.status === 404 ? "This token may not read the metrics of the whole daemon." : error.message;
	}
}

const level = (name, label) => samples.map((s) => ({ at: s.at, value: total(s.found, name, label) }));

// rate turns a counter into events a second; a restart, which sets it back,
// counts as nothing.
function rate(name, label) {
	const points = level(name, label);
	return points.slice(1).map((p, i) => ({ at: p.at, value: Math.max(0, p.value - points[i].value) * 1000 / Math.max(1, p.at - points[i].at) }));
}

// plotOf draws lines, or says that there is nothing to draw: no axes of nothing.
function plotOf(title, unit, lines, none, now) {
	if (lines.some((l) => l.points.some((p) => p.value > 0))) return plot(title, unit, lines, span(now), now);
	return el("figure", { class: "card plot" }, el("figcaption", null, el("h2", null, title)), el("p", { class: "quiet" }, none + " since this page was opened."));
}

// span is how far back the plots go: what there is, a minute at least.
const span = (now) => Math.min(sampleWindow, Math.max(60000, samples.length ? now - samples[0].at : 0));

const latest = (name, label) => samples.length ? total(samples[samples.length - 1].found, name, label) : 0;

const verdicts = [["appended", "appended"], ["duplicate", "duplicate"], ["rejected", "rejected"], ["late", "late"]];

// verdictLabel finds how the daemon spells a verdict: its first letters decide.
function verdictSeries(word) {
	const names = new Set();
	for (const s of samples.slice(-1)) for (const key of s.found.keys()) {
		const m = /^chaind_events_total\{.*verdict="(\w+)"/.exec(key);
		if (m && m[1].startsWith(word)) names.add(m[1]);
	}
	return [...names].map((n) => `verdict="${n}"`)[0] || `verdict="${word}"`;
}

function tiles() {
	const now = Date.now();
	const taken = rate("chaind_events_total", "");
	const last = (points) => points.length ? points[points.length - 1].value : 0;
	const tile = (name, value, unit, line) => el("div", { class: "tile" }, el("div", { class: "tile-name" }, name),
		el("div", { class: "tile-value" }, value, unit && el("span", { class: "quiet small" }, " " + unit)), line);
	if (sampleProblem && !samples.length) return null;
	return el("div", { class: "tiles" },
		tile("Events taken in", short(last(taken)), "a second", spark(taken, span(now), now)),
		tile("Not yet applied", short(latest("chaind_intake_lag_messages")), "in the stream", spark(level("chaind_intake_lag_messages"), span(now), now)),
		tile("Chains sealed", short(latest("chaind_seals_total")), "since the start", spark(level("chaind_seals_total"), span(now), now)),
		tile("Rejected", short(latest("chaind_events_total", verdictSeries("reject"))), "since the start", spark(level("chaind_events_total", verdictSeries("reject")), span(now), now)));
}

// The view of all that goes on: plots, histories of the stream, what was lost.
class ActivityView {
	constructor(node) {
		this.plots = el("div", { class: "plots" });
		this.gaps = el("div");
		put(node, [el("h1", null, "Activity"), el("p", { class: "quiet" }, "Sampled by this page every two seconds since it was opened; Prometheus keeps more."), this.plots, this.gaps]);
		this.drawn = false;
	}

	async refresh() {
		const now = Date.now();
		show(this.plots, sampleProblem ? el("p", { class: "note" }, sampleProblem) : [
			plotOf("Events taken in", "a second", verdicts.map(([name, word]) => ({ name, points: rate("chaind_events_total", verdictSeries(word)) })), "No event has come", now),
			plotOf("Messages not yet applied", "messages", [{ name: "lag", points: level("chaind_intake_lag_messages") }], "No message has waited", now),
			plotOf("Chains sealed", "a second", ["heads", "unplanned", "nonconforming"].map((c) => ({ name: c === "heads" ? "conforming" : c, points: rate("chaind_seals_total", `class="${c}"`) })), "No chain was sealed", now),
			bars("Sealed since the start", ["heads", "unplanned", "nonconforming", "empty"].map((c) => ({ name: c === "heads" ? "conforming" : c, tone: { heads: "good", unplanned: "fair", nonconforming: "bad" }[c] || "idle", value: latest("chaind_seals_total", `class="${c}"`) }))),
		]);
		if (!this.drawn) await this.drawGaps();
	}

	async drawGaps() {
		this.drawn = true;
		try {
			const [lost, epochs] = await Promise.all([askJSON("/v1/lost?limit=200"), askJSON("/v1/epochs?limit=200")]);
			show(this.gaps, el("section", { class: "card" }, el("h2", null, "Gaps: stream sequences that never came"), lost.lost.length ? lostTable(lost.lost) : el("p", { class: "quiet" }, "None recorded.")),
				el("section", { class: "card" }, el("h2", null, "Histories of the stream"), el("p", { class: "quiet" }, "One more for each time the broker lost or replaced its own."),
					el("div", { class: "stack" }, table(["Epoch", "Stream", "Why", "From sequence", "Applied", "Began"], epochs.epochs.map((e) => [count(e.number), plain(e.stream), plain(e.why), count(e.base + 1), count(e.applied), when(e.started_ms)])))));
		} catch (error) {
			show(this.gaps, error.status === 404 ? null : problemNote(error));
		}
	}
}

function lostTable(lost) {
	return el("div", { class: "stack" }, table(["Stream", "Epoch", "Sequences", "Why", "Recorded"], lost.map((l) => [plain(l.stream), count(l.epoch), `${count(l.from)} to ${count(l.to)}`, plain(l.why), when(l.recorded_ms)])));
}
