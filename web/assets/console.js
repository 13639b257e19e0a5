"use strict";

// The console: which view is shown, and how often it is refreshed.

const refreshEvery = 2500, readyEvery = 5000; // ms
let view = null;

const views = new Map([
	["chains", { title: () => "Chains", open: (node, parts, query) => new ChainsView(node, new URLSearchParams(query)) }],
	["chain", { title: (parts) => plain(parts[4]), parts: 5, open: (node, parts) => new ChainView(node, parts.slice(1)) }],
	["rejected", { title: () => "Rejected", open: (node) => new RejectedView(node) }],
	["keys", { title: () => "Keys", open: (node) => new KeysView(node) }],
	["activity", { title: () => "Activity", open: (node) => new ActivityView(node) }],
]);

// decoded gives the parts of an address, none of one that is malformed.
function decoded(path) {
	try {
		return path.split("/").filter(Boolean).map(decodeURIComponent);
	} catch {
		return ["malformed address"];
	}
}

function route() {
	const [path, query] = location.hash.replace(/^#/, "").split("?");
	const parts = decoded(path);
	const node = document.getElementById("view");
	node.replaceChildren();
	show(document.getElementById("alerts"));
	delete document.body.dataset.view;
	delete document.body.dataset.chain;
	const name = parts[0] || "chains";
	const found = views.get(name);
	view?.leave?.();
	view = found && parts.length === (found.parts || Math.min(parts.length, 1)) ? found.open(node, parts, query || "") : null;
	if (!view) put(node, [el("h1", null, "Nothing here"), el("p", null, "The address leads nowhere. ", el("a", { href: "#/" }, "Back to the chains"))]);
	for (const link of document.querySelectorAll("#nav a")) {
		const here = link.hash === "#/" + (["chains", "chain"].includes(name) ? "" : name) && link.pathname === location.pathname;
		if (here) link.setAttribute("aria-current", "page");
		else link.removeAttribute("aria-current");
	}
	document.title = (view ? found.title(parts) : "Nothing here") + " · chaind";
	refresh(name);
}

async function refresh(name) {
	const current = view;
	if (!current) return;
	try {
		await current.refresh();
		if (current === view) {
			show(document.getElementById("alerts"));
			if (name) document.body.dataset.view = name;
		}
	} catch (error) {
		complain(error, current);
	}
}

// complain tells what went wrong in a view, unless it was left.
function complain(error, from) {
	if (error.status === 401 || from !== view) return;
	show(document.getElementById("alerts"), problemNote(error));
}

async function watchReady() {
	const node = document.getElementById("ready");
	try {
		const r = await readiness();
		node.className = "ready " + (r.ready ? "good" : "bad");
		show(node, r.ready ? "ready" : "not ready: " + r.causes.map((c) => plain(c.detail || c.cause, 120)).join("; "));
	} catch {
		node.className = "ready bad";
		show(node, "the daemon does not answer");
	}
}

// wantToken asks for a bearer token; it is kept until the tab is closed.
function wantToken() {
	if (document.getElementById("token")) return;
	document.getElementById("view").hidden = true;
	const input = el("input", { id: "token", type: "password", autocomplete: "off", size: 40 });
	document.getElementById("alerts").replaceChildren(el("form", { class: "card", onsubmit: (event) => {
		event.preventDefault();
		sessionStorage.setItem(tokenKey, input.value.trim());
		location.reload();
	} }, el("h1", null, "A token is needed"), el("p", { class: "quiet" }, "This daemon answers only to bearers of a token. It is kept until you close the tab."), el("div", { class: "actions" }, el("label", { for: "token" }, "Token"), input, el("button", { class: "primary" }, "Use it"))));
	input.focus();
}

// every does something now and then, never twice at once, and not in a hidden
// tab.
function every(ms, what) {
	const tick = async () => {
		if (!document.hidden) await what();
		setTimeout(tick, ms);
	};
	setTimeout(tick, ms);
}

addEventListener("hashchange", () => { route(); document.getElementById("main").focus({ preventScroll: true }); scrollTo(0, 0); });
addEventListener("token-wanted", wantToken);
sample().then(() => { route(); });
watchReady();
every(sampleEvery, sample);
every(refreshEvery, () => refresh());
every(readyEvery, watchReady);
