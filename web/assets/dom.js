"use strict";

// What stands in a page that came from a file or an event is text, bounded in
// length, with nothing in it that is invisible, and nothing that reorders text
// beside it.

const maxShown = 400;

// Controls, format characters (bidirectional overrides, zero-width), every space
// but U+0020, private use, lone surrogates, unassigned, what Unicode lets a font
// leave out (Default_Ignorable_Code_Point: fillers, joiners, variation selectors),
// and the Braille pattern without dots. Package verifier has the same list.
const hidden = /(?! )[\p{Cc}\p{Cf}\p{Z}\p{Co}\p{Cs}\p{Cn}\p{DI}\u2800]/gu;

// Letters that are written from right to left, with the marks on them.
const leftward = /([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]\p{M}*)+/gu;

function plain(text, limit = maxShown) {
	const whole = String(text);
	let cut = whole;
	if (whole.length > limit) {
		cut = whole.slice(0, limit).replace(/[\ud800-\udbff]$/, "") + "… (" + count(whole.length) + " characters)";
	}
	return cut.replace(hidden, (c) => {
		const code = c.codePointAt(0);
		return code > 0xffff ? "\\U" + code.toString(16).padStart(8, "0") : "\\u" + code.toString(16).padStart(4, "0");
	});
}

const numbers = new Intl.NumberFormat("en");
const count = (n) => numbers.format(n);
const plural = (n, word) => count(n) + " " + word + (n === 1 ? "" : "s");

function size(bytes) {
	if (bytes < 1000) return plural(bytes, "byte");
	const units = ["kB", "MB", "GB"];
	let at = -1;
	do { bytes /= 1000; at++; } while (bytes >= 1000 && at < units.length - 1);
	return (bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)) + " " + units[at];
}

// el makes an element. Attributes: class, on… handlers, others as they are
// (null and false leave them out). Children: nodes, texts, nested lists.
function el(name, attributes, ...children) {
	return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
	return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(node, attributes, children) {
	for (const [key, value] of Object.entries(attributes || {})) {
		if (value === null || value === undefined || value === false) continue;
		if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
		else node.setAttribute(key, value === true ? "" : value);
	}
	put(node, children);
	return node;
}

function put(node, children) {
	for (const child of [children].flat(Infinity)) {
		if (child === null || child === undefined || child === false) continue;
		node.append(...child instanceof Node ? [child] : isolated(String(child)));
	}
}

// isolated makes nodes of a text. Words that are written from right to left stand
// apart, so that no digits, brackets or words beside them change their places.
function isolated(text) {
	const nodes = [];
	let done = 0;
	for (const found of text.matchAll(leftward)) {
		nodes.push(text.slice(done, found.index), Object.assign(document.createElement("bdi"), { textContent: found[0] }));
		done = found.index + found[0].length;
	}
	return [...nodes, text.slice(done)].filter((node) => node !== "");
}

// show replaces the content of a node, and leaves it alone when nothing
// changed, so that focus and selection survive a refresh.
function show(node, ...children) {
	const fresh = document.createElement(node.nodeName);
	put(fresh, children);
	if (fresh.innerHTML === node.innerHTML && !fresh.querySelector("[data-live]")) return;
	node.replaceChildren(...fresh.childNodes);
}

// facts is a list of names and values; empty values are left out.
function facts(pairs) {
	const rows = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
	return el("dl", { class: "facts" }, rows.map(([name, value]) =>
		el("div", null, el("dt", null, name), el("dd", null, value))));
}

// hex shows what people compare by eye, a head or a key: whole, but breaking where
// it must, with a button that copies it.
function hex(text) {
	return el("span", { class: "hex whole" }, el("code", null, plain(text)), copier(text));
}

// digest shows what people only recognise: both ends of it, and a button that
// copies it whole.
function digest(text) {
	return el("span", { class: "hex" }, el("code", { title: plain(text) }, middle(text, 12, 8)), copier(text));
}

// middle leaves out the middle of a long text.
function middle(text, first, last) {
	const value = String(text);
	return value.length > first + last + 2 ? plain(value.slice(0, first)) + "…" + plain(value.slice(-last)) : plain(value);
}

function shortHex(text, digits = 12) {
	const value = String(text);
	return el("code", { class: "short", title: plain(value) }, plain(value.length > digits ? value.slice(0, digits) + "…" : value));
}

const copyIcon = () => svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("rect", { x: 5.5, y: 5.5, width: 8, height: 8, rx: 1.5 }), svg("path", { d: "M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2" }));
const doneIcon = () => svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: "M3 8.5l3.2 3.2L13 5" }));

function copier(text) {
	const label = "Copy " + plain(text, 12);
	const button = el("button", { type: "button", class: "copy", title: "Copy", "aria-label": label }, copyIcon());
	const say = (title, icon) => {
		button.title = title;
		button.setAttribute("aria-label", title);
		button.replaceChildren(icon);
	};
	button.addEventListener("click", async () => {
		try {
			await navigator.clipboard.writeText(String(text));
			say("Copied", doneIcon());
		} catch {
			button.parentNode.querySelector("code").textContent = plain(text);
			getSelection().selectAllChildren(button.parentNode.querySelector("code"));
			say("Selected: copy it", copyIcon());
		}
		setTimeout(() => { say("Copy", copyIcon()); button.setAttribute("aria-label", label); }, 1500);
	});
	return button;
}

function when(ms) {
	if (ms === null || ms === undefined) return "";
	const date = new Date(Number(ms));
	if (Number.isNaN(date.getTime())) return plain(ms);
	const text = date.toISOString();
	return el("time", { datetime: text }, text.slice(0, 10) + " " + text.slice(11, 23) + " UTC");
}

// whenBriefly leaves out the milliseconds, which stand in its title.
function whenBriefly(ms) {
	const time = when(ms);
	if (!(time instanceof Node)) return time;
	time.title = time.textContent;
	time.textContent = time.textContent.replace(/\.\d+/, "");
	return time;
}

// save offers bytes as a file, without asking any server.
function save(bytes, name, type) {
	const url = URL.createObjectURL(new Blob([bytes], { type }));
	const link = el("a", { href: url, download: name });
	document.body.append(link);
	link.click();
	link.remove();
	setTimeout(() => URL.revokeObjectURL(url), 60000);
}

function details(summary, open, ...children) {
	return el("details", { open: open || null }, el("summary", null, summary), children);
}

const numeric = new Set(["Segments", "Late", "Rejected", "Begun", "Ended", "Failed", "Epoch", "From sequence", "Applied"]);

function table(heads, rows) {
	const kind = (head) => numeric.has(head) ? "number" : null;
	return el("div", { class: "table", tabindex: "0", role: "group", "aria-label": heads[0] + " table" }, el("table", null, el("thead", null, el("tr", null, heads.map((h) => el("th", { scope: "col", class: kind(h) }, h)))),
		el("tbody", null, rows.map((cells) => el("tr", null, cells.map((c, i) => el("td", { "data-head": heads[i], class: kind(heads[i]) }, c)))))));
}

// tally is a count that should be nought; more is not hidden among the others.
function tally(n, tone) {
	return n ? el("span", { class: "tally " + tone }, count(n)) : el("span", { class: "quiet" }, "0");
}

function problemNote(error) {
	return el("p", { class: "problem", role: "alert" }, plain(error.message || error, 500));
}
