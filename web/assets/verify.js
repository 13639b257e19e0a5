"use strict";

// The verify page: files in, reports out. Nothing is kept beyond the page and
// nothing leaves it.

const maxFile = 512e6; // bytes; a tab holds a file twice

const at = (id) => document.getElementById(id);
const held = []; // {name, bytes, original, flip, answer, error}
let current = 0;
let round = 0; // of verification, so that an overtaken answer is dropped
let badLink = ""; // what the link asks that cannot be asked; nothing is verified

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

// take begins anew with files. Those that come with a path, as a folder's do,
// are one export when there is a manifest among them.
async function take(list) {
	held.length = 0;
	current = 0;
	const manifest = list.find((file) => /^[^/]+\/manifest\.json$/.test(pathOf(file)));
	if (manifest) held.push({ name: pathOf(manifest).split("/")[0], folder: list });
	else for (const file of list) held.push({ name: file.name, file });
	at("file").value = at("folder").value = "";
	await verifyAll();
}

const pathOf = (file) => file.chaindPath || file.webkitRelativePath || file.name;

const isZip = (bytes) => bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4;

async function load(item) {
	if (item.folder) {
		let sum = 0;
		for (const file of item.folder) sum += file.size;
		if (sum > maxFile) throw new Error(`the folder has ${size(sum)}; this page takes ${size(maxFile)} at most, the command line more`);
		item.files = await Promise.all(item.folder.map(async (file) => ({ path: pathOf(file).split("/").slice(1).join("/"), bytes: await file.arrayBuffer() })));
		item.bytes = item.original = new Uint8Array(0);
		item.total = sum;
		return;
	}
	if (item.file.size > maxFile) throw new Error(`the file has ${size(item.file.size)}; this page takes ${size(maxFile)} at most, the command line more`);
	item.bytes = new Uint8Array(await item.file.arrayBuffer());
	item.original = item.bytes;
}

// verifyAll judges every file anew; a newer call makes an older one stop.
async function verifyAll() {
	const mine = ++round;
	draw();
	for (const item of held) {
		item.answer = item.error = null;
		try {
			if (!item.bytes) await load(item);
			const answer = await judge(item, (p) => mine === round && tell("note", `${plain(item.name)}: ${count(p.segments)} segments, ${size(p.bytes)}`));
			if (mine !== round) return;
			item.answer = { text: answer.report, report: JSON.parse(answer.report), took: answer.took, parts: (answer.parts || []).map((p) => ({ path: p.path, text: p.report, report: JSON.parse(p.report) })) };
		} catch (error) {
			if (mine !== round) return;
			item.error = error.message;
		}
		tell();
		draw();
	}
	if (mine !== round) return;
	if (held.length && !held[0].flip) at("tabs").scrollIntoView({ block: "start" });
	document.body.dataset.settled = String(mine);
}

function judge(item, progress) {
	if (badLink) throw new Error(badLink);
	if (item.files) return engine.verifyExport(item.files, settings());
	if (isZip(item.bytes)) return engine.verifyExport([{ path: "", bytes: item.bytes.slice().buffer }], settings());
	return engine.verify(item.bytes.slice().buffer, settings(), progress);
}

function draw() {
	show(at("tabs"), held.length > 1 && el("div", { class: "tabs", role: "group", "aria-label": "Verified files" }, held.map((item, i) =>
		el("button", { type: "button", "aria-pressed": String(i === current), "data-tab": i }, plain(item.name, 60), " ",
			item.answer ? badge(item.answer.report.verdict, tone(item.answer.report.exit_code)) : item.error ? badge("not verified", "idle") : badge("…", "idle")))));
	for (const button of at("tabs").querySelectorAll("button")) button.onclick = () => { current = Number(button.dataset.tab); draw(); };
	const item = held[current];
	if (!item) return show(at("result"));
	at("result").replaceChildren(...(item.error ? [notVerified(item)] : item.answer ? [
		reportOf(item),
		item.answer.parts.length ? partsOf(item) : null,
		item.files ? null : flipCard(item),
	].filter(Boolean) : [el("p", { class: "quiet", role: "status" }, "Verifying " + plain(item.name) + " …")]));
}

function reportOf(item) {
	const view = reportView(item.answer.report, item.answer.text, item.name);
	view.append(el("p", { class: "quiet small" }, `${size(item.total ?? item.bytes.length)} verified in ${item.answer.took < 10 ? item.answer.took.toFixed(1) : count(Math.round(item.answer.took))} ms, here in the browser.`));
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
		`${plain(item.name)} was not judged, so this is neither a pass nor a failure: ${plain(item.error)}.`);
}

// Flip a byte, to see what a change does: another letter for a letter, another
// digit for a digit, so that the file stays readable.

function flipCard(item) {
	return el("section", { class: "card", "aria-label": "Flip a byte" }, el("h2", null, "Try it: change one byte"),
		item.flip ? flippedText(item) : el("p", { class: "quiet" }, "Changes one character of your copy at random, in memory only, and verifies again. See which check notices."),
		el("div", { class: "actions" },
			el("button", { type: "button", id: "flip", onclick: () => flip(item) }, item.flip ? "Flip another byte" : "Flip a byte"),
			item.flip && el("button", { type: "button", id: "restore", onclick: () => restore(item) }, "Put it back")));
}

function flippedText(item) {
	const { offset, before, after } = item.flip;
	const text = (from, to) => plain(new TextDecoder().decode(item.bytes.subarray(Math.max(0, from), to)));
	const report = item.answer.report;
	const unnoticed = report.exit_code === item.flip.exit && report.summary === item.flip.summary;
	return [el("p", null, `Byte ${count(offset)}: “${before}” is now “${after}”.`),
		el("p", { class: "flipped" }, "…", text(offset - 40, offset), el("mark", null, after), text(offset + 1, offset + 41), "…"),
		el("p", { class: unnoticed ? "note" : "quiet" }, unnoticed
			? "The verdict did not change: nothing covers this byte. Times, anchors and, in an unsigned file, the scope are claims that no hash protects."
			: `The verdict is now ${plain(report.verdict)}.`)];
}

function flip(item) {
	const places = [];
	for (let tries = 0; tries < 4000 && places.length < 1; tries++) {
		const offset = crypto.getRandomValues(new Uint32Array(1))[0] % item.original.length;
		if (/[0-9a-z]/i.test(String.fromCharCode(item.original[offset]))) places.push(offset);
	}
	const offset = places.length ? places[0] : 0;
	flipAt(item, offset);
}

function flipAt(item, offset) {
	const before = item.original[offset];
	const bytes = item.original.slice();
	bytes[offset] = another(before);
	const first = item.flip || { exit: item.answer.report.exit_code, summary: item.answer.report.summary };
	item.flip = { offset, before: plain(String.fromCharCode(before)), after: plain(String.fromCharCode(bytes[offset])), exit: first.exit, summary: first.summary };
	item.bytes = bytes;
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
	item.bytes = item.original;
	item.flip = null;
	return verifyAll();
}

// What a link may ask for, by the names of the command line's flags.
const expected = ["expect-head", "expect-plan", "expect-outcome"];

// askedByLink takes keys and expectations of a link; they are as good as whoever
// gave the link. One with nothing after a name, from a variable in somebody's
// script that was not set, would quietly ask for nothing: it is refused, as the
// command line refuses an empty flag, until somebody fills in the form.
function askedByLink() {
	const given = new URLSearchParams(location.hash.slice(1));
	const named = ["trust", ...expected].filter((name) => given.has(name));
	if (!named.length) return;
	badLink = faultOf(given, named);
	if (given.has("trust")) at("keys").value = given.get("trust").split(/[\s,]+/).filter(Boolean).join("\n");
	for (const name of expected) if (given.has(name)) at(name).value = given.get(name).trim();
	if (badLink) tell("problem", badLink);
	else tell("note", linkNote(given.has("trust"), named.length > 1 || !given.has("trust")));
	if (held.length) verifyAll();
}

function faultOf(given, named) {
	const empty = named.filter((name) => !given.get(name).trim());
	if (empty.length) return `the link that you opened has nothing after ${empty.join(" and ")}`;
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
	const walk = async (entry) => {
		if (files.length > 100000) throw new Error("more than 100,000 files were dropped");
		if (entry.isFile) {
			const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
			file.chaindPath = entry.fullPath.replace(/^\//, "");
			files.push(file);
			return;
		}
		const reader = entry.createReader();
		for (;;) {
			const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
			if (!some.length) return;
			for (const inner of some) await walk(inner);
		}
	};
	for (const entry of entries) await walk(entry);
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
