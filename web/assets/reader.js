"use strict";

// A thread that reads the lists of a chain, in order. What is told of an entry is
// much, and its order is a few bytes: the memory that reading takes ends with the
// thread.

const order = new OrderReader();
const words = [""]; // what a segment may be marked with

function markOf(segment) {
	const mark = order.mark(segment.kind, JSON.parse(segment.kind_jcs));
	if (!words.includes(mark)) words.push(mark);
	return words.indexOf(mark);
}

// known is what a thread that goes on must know.
const known = () => ({ order: { ...order }, words });

function resume(before) {
	Object.assign(order, before.order);
	words.splice(0, words.length, ...before.words);
}

// A question names a list, an address on which some of it is, a token, and how many
// entries are wanted whole. Without a list it asks what another thread must know to
// go on, or tells it.
onmessage = async ({ data: { what, url, token, whole, before } }) => {
	if (before) return resume(before);
	if (!what) return postMessage(known());
	try {
		const entries = (await askJSON(url, { token }))[what];
		const arrivals = Float64Array.from(entries, (e) => e.arrival);
		const marks = what === "segments" ? Uint8Array.from(entries, markOf) : new Uint8Array(0);
		postMessage({ arrivals, marks, words, whole: entries.slice(0, whole) });
	} catch (error) {
		postMessage({ problem: { status: error.status, title: error.title, detail: error.message } });
	}
};
