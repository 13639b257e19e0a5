"use strict";

// What stands in a page that came from a file or an event is text, bounded in
// length, with nothing in it that hides or reorders other text.

const maxShown = 400;

// Controls, format characters (bidirectional overrides, zero-width), line and
// paragraph separators, private use, lone surrogates, unassigned.
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Cn}]/gu;

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
		node.append(child instanceof Node ? child : document.createTextNode(String(child)));
	}
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

// hex shows a digest or another long name: whole, but breaking where it must,
// with a button that copies it.
function hex(text) {
	const value = plain(text);
	return el("span", { class: "hex" }, el("code", null, value), copier(text));
}

function shortHex(text, digits = 12) {
	const value = String(text);
	return el("code", { title: plain(value) }, plain(value.length > digits ? value.slice(0, digits) + "…" : value));
}

function copier(text) {
	const button = el("button", { type: "button", class: "copy", "aria-label": "Copy " + plain(text, 12) }, "copy");
	button.addEventListener("click", async () => {
		try {
			await navigator.clipboard.writeText(String(text));
			button.textContent = "copied";
		} catch {
			button.textContent = "select and copy";
		}
		setTimeout(() => { button.textContent = "copy"; }, 1500);
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

function table(heads, rows) {
	return el("div", { class: "table", tabindex: "0", role: "group", "aria-label": heads[0] + " table" }, el("table", null, el("thead", null, el("tr", null, heads.map((h) => el("th", { scope: "col" }, h)))),
		el("tbody", null, rows.map((cells) => el("tr", null, cells.map((c, i) => el("td", { "data-head": heads[i] }, c)))))));
}

function problemNote(error) {
	return el("p", { class: "problem", role: "alert" }, plain(error.message || error, 500));
}
