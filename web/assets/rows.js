"use strict";

// What a row of a timeline says, of a segment or of an attempt, and the panel below.

// rowOf keeps of a segment what its row shows; the rest is asked for again.
function rowOf(segment, mark) {
	const body = JSON.parse(segment.kind_jcs);
	const row = { type: segment.kind, seq: segment.seq, at: segment.emitted_at_ms ?? segment.broker_ms, mark, note: "" };
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
	return { type: a.phase, at: a.at_ms ?? a.broker_ms, mark: "",
		title: `Step ${plain(a.step_id, 80)} ${a.phase === "failed" ? "failed" : "begun"}`, note: a.phase === "failed" ? plain(a.reason || "no reason given", 200) : "" };
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

function attemptPanel(a) {
	return [el("h3", null, rowOfAttempt(a).title), el("p", { class: "quiet" }, "An attempt is recorded beside the chain; it is no segment of it."), facts([["Reason", plain(a.reason, 4000)],
		["Claimed time", a.at_ms !== null && when(a.at_ms)], ["Broker's time", when(a.broker_ms)], ["Event id", plain(a.event_id)],
		["Stream sequence", `${count(a.stream_seq)} of epoch ${count(a.epoch)}`], ["Payload SHA-256", digest(a.payload_sha256)]])];
}
