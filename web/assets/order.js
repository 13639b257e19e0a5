"use strict";

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
