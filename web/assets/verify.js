"use strict";

// The verify page: files in, reports out. Nothing is kept beyond the page and
// nothing leaves it.

const maxFile = 512e6; // bytes; the verifier holds a trust bundle twice

const patience = 400; // ms, before it is said that something takes long
const together = 200; // ms, in which verdicts on files that nobody looks at are drawn together

const at = (id) => document.getElementById(id);
const held = []; // {name, file or folder, flip, answer, error}
let current = 0;
let round = 0; // of verification, so that an overtaken answer is dropped
let badLink = ""; // what the link asks that cannot be asked; nothing is verified
let tabs = []; // of each file {item, node, badge}, and the answer and error that it shows
let due = 0; // timer of the next drawing
let drawn = []; // item, answer and error that are on the screen
let wanted = ""; // selector of what had the focus, to have it again after a drawing

const engine = new Engine(async () => {
	const text = atob(at("engine").textContent);
	return Uint8Array.from(text, (c) => c.charCodeAt(0)).buffer;
});

function settings() {
	return { keys: at("keys").value, allowUnsigned: at("allow-unsigned").checked, requireSigned: at("require-signed").checked,
		expectHead: at("expect-head").value, expectPlan: at("expect-plan").value, expectOutcome: at("expect-outcome").value };
}

function tell(kind, text) {
	show(at("state"), text && el("p", { class: kind }, text));
}

// take begins anew with files. Those that come with a folder are one export,
// whatever is or is not in it: no part of one is judged by itself, nor together
// with another folder's.
async function take(list) {
	held.length = current = 0;
	const folders = new Map();
	for (const file of list) {
		const path = pathOf(file).split("/");
		if (path.length === 1) {
			held.push({ name: file.name, file });
			continue;
		}
		const key = (file.chaindDrop ?? "") + "/" + path[0];
		if (!folders.has(key)) {
			folders.set(key, []);
			held.push({ name: path[0], folder: folders.get(key) });
		}
		folders.get(key).push(file);
	}
	at("file").value = at("folder").value = "";
	await verifyAll();
}

const pathOf = (file) => file.chaindPath || file.webkitRelativePath || file.name;

async function bytesOf(file, from, to) {
	try {
		return new Uint8Array(await file.slice(Math.max(0, from), to).arrayBuffer());
	} catch {
		throw new Error("read file: it cannot be read any more, since it was changed, moved or removed after it was chosen");
	}
}

// isZip tells an archive by its first bytes: of an entry, or of the end of one
// without any.
const isZip = async (file) => ["PK\x03\x04", "PK\x05\x06"].includes(String.fromCharCode(...await bytesOf(file, 0, 4)));

function sizeOf(item) {
	const total = (item.folder || [item.file]).reduce((sum, file) => sum + file.size, 0);
	if (total > maxFile) throw new Error(`${item.folder ? "the folder" : "the file"} has ${size(total)}; this page takes ${size(maxFile)} at most, the command line more`);
	return total;
}

// verifyAll judges every file anew; a newer call makes an older one stop.
async function verifyAll() {
	const mine = ++round;
	let stopped = false;
	for (const item of held) item.answer = item.error = null;
	draw();
	for (const [i, item] of held.entries()) {
		const work = working(item, () => { stopped = true; engine.stop(); });
		try {
			if (stopped) throw new Error("you stopped the verification");
			item.total = sizeOf(item);
			const answer = await judge(item, work.progress);
			if (mine !== round) return;
			item.answer = { text: answer.report, report: JSON.parse(answer.report), took: answer.took, parts: (answer.parts || []).map((p) => ({ path: p.path, text: p.report, report: JSON.parse(p.report) })) };
		} catch (error) {
			if (mine !== round) return;
			item.error = stopped ? "you stopped the verification" : error.message;
		} finally {
			work.end();
		}
		if (i === current) draw();
		else due ||= setTimeout(draw, together);
	}
	if (due) draw();
	if (held.length && !held[0].flip) at("tabs").scrollIntoView({ block: "start" });
	document.body.dataset.settled = String(mine);
}

// working shows, of what takes longer than a moment, how far it is, with a
// button that ends it.
function working(item, stop) {
	const text = el("span", null, "Verifying ", plain(item.name), " …");
	const bar = el("progress", { "aria-label": "Progress" });
	const node = el("div", { class: "working" }, text, bar, el("button", { type: "button", id: "stop", onclick: stop }, "Stop"));
	const shown = setTimeout(() => at("work").replaceChildren(node), patience);
	return {
		progress(p) {
			const done = item.folder ? plural(p.parts, "bundle") + " judged" : count(p.segments) + " segments, " + size(p.bytes);
			text.replaceChildren(...el("p", null, "Verifying ", plain(item.name), ": ", done).childNodes);
			if (!item.folder && item.total) bar.value = Math.min(1, p.bytes / item.total);
		},
		end() {
			clearTimeout(shown);
			node.remove();
		},
	};
}

async function judge(item, progress) {
	if (badLink) throw new Error(badLink);
	if (item.folder) return engine.verifyExport(item.folder.map((file) => ({ path: pathOf(file).split("/").slice(1).join("/"), file })), settings(), progress);
	const file = item.flip ? item.flip.file : item.file;
	if (await isZip(file)) return engine.verifyExport([{ path: "", file }], settings(), progress);
	return engine.verify(file, settings(), progress);
}

function draw() {
	clearTimeout(due);
	due = 0;
	keepFocus();
	if (tabs.length !== held.length || tabs.some((tab, i) => tab.item !== held[i])) makeTabs();
	for (const i of held.keys()) drawTab(i);
	drawResult();
	if (wanted && document.activeElement === document.body) document.querySelector(wanted)?.focus({ preventScroll: true });
}

// makeTabs makes a button for each of several files, once: there may be thousands.
function makeTabs() {
	tabs = held.map((item, i) => {
		const mark = badge("…", "idle");
		return { item, badge: mark, node: el("button", { type: "button", "data-tab": i, onclick: () => { current = i; draw(); } }, plain(item.name, 60), " ", mark) };
	});
	at("tabs").replaceChildren(...tabs.length > 1 ? [el("div", { class: "tabs", role: "group", "aria-label": "Verified files" }, tabs.map((tab) => tab.node))] : []);
}

// drawTab changes what a file's tab says, where that is something else.
function drawTab(i) {
	const tab = tabs[i], { answer, error } = tab.item, pressed = String(i === current);
	if (tab.node.getAttribute("aria-pressed") !== pressed) tab.node.setAttribute("aria-pressed", pressed);
	if (tab.answer === answer && tab.error === error) return;
	Object.assign(tab, { answer, error });
	const mark = answer ? badge(answer.report.verdict, tone(answer.report.exit_code)) : badge(error ? "not verified" : "…", "idle");
	tab.badge.replaceWith(mark);
	tab.badge = mark;
}

// drawResult leaves alone what is on the screen already, with whoever reads it.
function drawResult() {
	const item = held[current];
	const now = [item, item?.answer, item?.error];
	if (item && now.every((part, i) => part === drawn[i])) return;
	drawn = now;
	if (!item) return show(at("result"));
	at("result").replaceChildren(...(item.error ? [notVerified(item)] : item.answer ? [
		reportOf(item),
		item.answer.parts.length ? partsOf(item) : null,
		item.folder || !item.file.size ? null : flipCard(item),
	].filter(Boolean) : [el("p", { class: "quiet", role: "status" }, "Verifying ", plain(item.name), " …")]));
}

// keepFocus notes what has the focus, where a drawing may take it away. The
// button that somebody pressed may be gone for a while, until there is a verdict.
function keepFocus() {
	const on = document.activeElement;
	if (on === document.body || !on) return;
	const inside = at("tabs").contains(on) || at("result").contains(on);
	wanted = !inside ? "" : on.dataset.tab ? `[data-tab="${on.dataset.tab}"]` : on.id ? "#" + on.id : "";
}

function reportOf(item) {
	const view = reportView(item.answer.report, item.answer.text, item.name);
	view.append(el("p", { class: "quiet small" }, `${size(item.total)} verified in ${item.answer.took < 10 ? item.answer.took.toFixed(1) : count(Math.round(item.answer.took))} ms, here in the browser.`));
	return view;
}

// partsOf shows the reports on the bundles of an export.
function partsOf(item) {
	return el("section", { class: "card" }, el("h2", null, "Bundles in it"), item.answer.parts.map((part) => details(
		[badge(part.report.verdict, tone(part.report.exit_code)), " ", el("span", { class: "mono" }, plain(part.path))], item.answer.parts.length === 1,
		reportView(part.report, part.text, part.path.split("/").pop()))));
}

function notVerified(item) {
	return el("div", { class: "note", role: "status", id: "not-verified" }, el("strong", null, "Not verified. "),
		plain(item.name), " was not judged, so this is neither a pass nor a failure: ", plain(item.error.replace(/\.+$/, "")), ".");
}

// Flip a byte, to see what a change does: another letter for a letter, another
// digit for a digit, so that the file stays readable.

function flipCard(item) {
	return el("section", { class: "card", "aria-label": "Flip a byte" }, el("h2", null, "Try it: change one byte"),
		item.flip ? flippedText(item) : el("p", { class: "quiet" }, "Changes one character of your copy at random, in memory only, and verifies again. See which check notices."),
		el("div", { class: "actions" },
			el("button", { type: "button", id: "flip", onclick: () => flip(item).catch((error) => tell("problem", plain(error.message))) }, item.flip ? "Flip another byte" : "Flip a byte"),
			item.flip && el("button", { type: "button", id: "restore", onclick: () => restore(item) }, "Put it back")));
}

function flippedText(item) {
	const { offset, before, after, left, right } = item.flip;
	const report = item.answer.report;
	const unnoticed = report.exit_code === item.flip.exit && report.summary === item.flip.summary;
	return [el("p", null, `Byte ${count(offset)}: “${before}” is now “${after}”.`),
		el("p", { class: "flipped" }, "…", left, el("mark", null, after), right, "…"),
		el("p", { class: unnoticed ? "note" : "quiet" }, unnoticed
			? "The verdict did not change: nothing covers this byte. Times, anchors and, in an unsigned file, the scope are claims that no hash protects."
			: `The verdict is now ${plain(report.verdict)}.`)];
}

// flip changes the first letter or digit behind a place that is chosen at random.
async function flip(item) {
	for (let tries = 0; tries < 20; tries++) {
		const offset = crypto.getRandomValues(new Uint32Array(1))[0] % item.file.size;
		const some = await bytesOf(item.file, offset, offset + 200);
		const at = some.findIndex((c) => /[0-9a-z]/i.test(String.fromCharCode(c)));
		if (at >= 0) return flipAt(item, offset + at);
	}
	return flipAt(item, 0);
}

// flipAt puts another file together, of the parts before and behind the byte.
async function flipAt(item, offset) {
	const first = item.flip || { exit: item.answer.report.exit_code, summary: item.answer.report.summary };
	const around = await bytesOf(item.file, offset - 40, offset + 41), here = Math.min(offset, 40);
	const code = another(around[here]);
	const text = (some) => plain(new TextDecoder().decode(some));
	item.flip = { offset, exit: first.exit, summary: first.summary,
		file: new Blob([item.file.slice(0, offset), Uint8Array.of(code), item.file.slice(offset + 1)]),
		before: plain(String.fromCharCode(around[here])), after: plain(String.fromCharCode(code)),
		left: text(around.subarray(0, here)), right: text(around.subarray(here + 1)) };
	return verifyAll();
}

// another gives a character of the same kind: 9 → 0, f → a, z → a, others + 1.
function another(code) {
	const c = String.fromCharCode(code);
	if (c === "9") return 48;
	if (c === "f" || c === "z") return 97;
	if (c === "F" || c === "Z") return 65;
	return code === 255 ? 0 : code + 1;
}

function restore(item) {
	item.flip = null;
	wanted = "#flip";
	document.activeElement.blur();
	return verifyAll();
}

// What a link may ask for, by the names of the command line's flags.
const expected = ["expect-head", "expect-plan", "expect-outcome"];

// askedByLink takes keys and expectations of a link; they are as good as whoever
// gave the link. What the page cannot ask would quietly not be asked: a name that
// it does not know, one that stands twice, one with nothing after it, from a
// variable in somebody's script that was not set. Such a link is refused, as the
// command line refuses such flags, until somebody fills in the form.
function askedByLink() {
	const fragment = location.hash.slice(1);
	if (!fragment || fragment === "main") return;
	const given = new URLSearchParams(fragment);
	const named = [...given.keys()];
	badLink = faultOf(given, named);
	if (given.has("trust")) at("keys").value = given.get("trust").split(/[\s,]+/).filter(Boolean).join("\n");
	for (const name of expected) if (given.has(name)) at(name).value = given.get(name).trim();
	if (badLink) tell("problem", badLink);
	else tell("note", linkNote(given.has("trust"), named.length > 1 || !given.has("trust")));
	if (held.length) verifyAll();
}

function faultOf(given, named) {
	const several = (names) => [...new Set(names)].map((name) => plain(name, 60)).join(" and ");
	const unknown = named.filter((name) => name !== "trust" && !expected.includes(name));
	if (unknown.length) return `the link that you opened asks for ${several(unknown) || "something without a name"}, which this page does not know`;
	const twice = named.filter((name, i) => named.indexOf(name) !== i);
	if (twice.length) return `the link that you opened asks for ${several(twice)} more than once`;
	const empty = named.filter((name) => !given.get(name).trim());
	if (empty.length) return `the link that you opened has nothing after ${several(empty)}`;
	const outcome = given.get("expect-outcome");
	if (outcome === null || [...at("expect-outcome").options].some((o) => o.value === outcome.trim())) return "";
	return "the link that you opened expects an outcome that there is not: " + plain(outcome, 60);
}

// asked takes what is in the form from now on, whatever a link said.
function asked() {
	badLink = "";
	if (held.length) verifyAll();
	else tell();
}

function linkNote(keys, more) {
	if (!more) return "The trusted keys came with the link that you opened. Compare them with the signer's own.";
	return (keys ? "Trusted keys, and what is expected," : "What is expected") + " came with the link that you opened. Compare with what the signer, or whoever noted the head, told you.";
}

function watchDrop() {
	const zone = at("drop");
	for (const name of ["dragover", "dragenter"]) window.addEventListener(name, (event) => { event.preventDefault(); zone.classList.add("over"); });
	for (const name of ["dragleave", "drop"]) window.addEventListener(name, () => zone.classList.remove("over"));
	window.addEventListener("drop", (event) => {
		event.preventDefault();
		dropped(event.dataTransfer).then((files) => files.length && take(files), (error) => tell("problem", plain(error.message)));
	});
	for (const id of ["file", "folder"]) at(id).addEventListener("change", () => { if (at(id).files.length) take([...at(id).files]); });
}

// dropped lists what was dropped, folders with all that is in them.
async function dropped(transfer) {
	const entries = [...transfer.items].map((i) => i.webkitGetAsEntry && i.webkitGetAsEntry()).filter(Boolean);
	if (!entries.some((e) => e.isDirectory)) return [...transfer.files];
	const files = [];
	const walk = async (entry, drop) => {
		if (files.length > 100000) throw new Error("more than 100,000 files were dropped");
		if (entry.isFile) {
			const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
			file.chaindPath = entry.fullPath.replace(/^\//, "");
			file.chaindDrop = drop; // two folders may have one name
			files.push(file);
			return;
		}
		const reader = entry.createReader();
		for (;;) {
			const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
			if (!some.length) return;
			for (const inner of some) await walk(inner, drop);
		}
	};
	for (const [i, entry] of entries.entries()) await walk(entry, i);
	return files;
}

watchDrop();
for (const id of ["keys", "allow-unsigned", "require-signed", ...expected]) at(id).addEventListener("change", asked);
window.addEventListener("hashchange", askedByLink);
askedByLink();
engine.start().then(() => { document.body.dataset.engine = "ready"; }, (error) => {
	document.body.dataset.engine = "missing";
	tell("note", "Nothing is verified here: " + plain(error.message) + ".");
});
