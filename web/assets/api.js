"use strict";

// Questions to the server that sent the page. A token, when the server wants
// one, lives as long as the tab.

class Problem extends Error {
	constructor(status, title, detail) {
		super(detail || title);
		this.status = status;
		this.title = title;
	}
}

const tokenKey = "chaind-token";

// ask fails with a Problem, also when signal gives it up before the answer.
async function ask(path, { token = sessionStorage.getItem(tokenKey), signal } = {}) {
	const headers = token ? { Authorization: "Bearer " + token } : {};
	let answer;
	try {
		answer = await fetch(path, { headers, signal, credentials: "omit", redirect: "error" });
	} catch {
		throw new Problem(0, "No answer", "the server does not answer");
	}
	if (answer.ok) return answer;
	let said = {};
	try { said = await answer.json(); } catch { /* not a problem document */ }
	if (answer.status === 401) dispatchEvent(new CustomEvent("token-wanted"));
	throw new Problem(answer.status, said.title || "Error " + answer.status, said.detail || "");
}

const askJSON = async (path, how) => whole((await ask(path, how)).json());

// askFile gives an answer as a file, which is not in the memory of the tab.
const askFile = async (path, how) => whole((await ask(path, how)).blob());

// whole waits for the rest of an answer that has begun.
async function whole(rest) {
	try {
		return await rest;
	} catch {
		throw new Problem(0, "No answer", "the server's answer broke off");
	}
}

function withQuery(path, pairs) {
	const query = new URLSearchParams(Object.entries(pairs).filter(([, v]) => v !== "" && v !== null && v !== undefined));
	return query.size ? path + "?" + query : path;
}

// everyPage walks a list to its end, or until visit says false.
async function everyPage(path, pairs, visit) {
	for (let after = null; ;) {
		const page = await askJSON(withQuery(path, { ...pairs, after }));
		if (visit(page) === false || !page.next) return;
		after = page.next;
	}
}

// readiness is answered with 503 when something is wrong, and tells what.
async function readiness() {
	const answer = await fetch("/readyz", { credentials: "omit" });
	return answer.json();
}

// series reads the metrics: name{labels} to number.
async function series() {
	const text = await (await ask("/metrics")).text();
	const found = new Map();
	for (const line of text.split("\n")) {
		const m = /^(chaind_\w+)(\{[^}]*\})? (\S+)$/.exec(line);
		if (m) found.set(m[1] + (m[2] || ""), Number(m[3]));
	}
	return found;
}

// total sums the series of a name whose labels hold a text.
function total(found, name, label = "") {
	let sum = 0;
	for (const [key, value] of found) {
		if ((key === name || key.startsWith(name + "{")) && key.includes(label)) sum += value;
	}
	return sum;
}
