"use strict";

// Plots, drawn by hand. Each says in words what it shows, and gives its numbers
// as a table to who cannot see it.

const plotColours = ["var(--plot-1)", "var(--plot-2)", "var(--plot-3)", "var(--plot-4)"];

const short = (n) => n >= 1e6 ? (n / 1e6).toFixed(1) + "M" : n >= 1e4 ? Math.round(n / 1e3) + "k" : n >= 100 || Number.isInteger(n) ? count(Math.round(n)) : n.toFixed(1);

// niceTop is the least of 1, 2, 5 × 10^n that is not below n.
function niceTop(n) {
	if (n <= 1) return 1;
	const power = 10 ** Math.floor(Math.log10(n));
	return [1, 2, 5, 10].map((f) => f * power).find((v) => v >= n);
}

function path(points, x, y) {
	return points.map((p, i) => (i ? "L" : "M") + x(p.at).toFixed(1) + " " + y(p.value).toFixed(1)).join("");
}

// plot draws lines over a window of time that ends now. lines: {name, points:
// [{at, value}]}.
function plot(title, unit, lines, window, now) {
	const width = 520, height = 190, left = 44, right = 10, top = 12, bottom = 26;
	const x = (at) => left + (width - left - right) * Math.max(0, 1 - (now - at) / window);
	const highest = niceTop(Math.max(0, ...lines.flatMap((l) => l.points.map((p) => p.value))));
	const y = (v) => top + (height - top - bottom) * (1 - v / highest);
	const last = (l) => l.points.length ? l.points[l.points.length - 1].value : 0;
	const words = lines.map((l) => `${l.name}: ${short(last(l))} ${unit} now, ${short(Math.max(0, ...l.points.map((p) => p.value)))} at most`).join("; ");
	return el("figure", { class: "card plot" }, el("figcaption", null, el("h2", null, title)),
		svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title + ". " + words },
			[0, 0.5, 1].map((f) => [svg("line", { x1: left, x2: width - right, y1: y(f * highest), y2: y(f * highest), class: "grid" }),
				svg("text", { x: left - 6, y: y(f * highest) + 4, class: "tick", "text-anchor": "end" }, short(f * highest))]),
			[1, 0.5, 0].map((f) => svg("text", { x: x(now - f * window), y: height - 8, class: "tick", "text-anchor": f === 1 ? "start" : f === 0 ? "end" : "middle" },
				f === 0 ? "now" : "−" + Math.round(f * window / 1000) + " s")),
			lines.map((l, i) => l.points.length > 1 && svg("path", { d: path(l.points, x, y), class: "line", stroke: plotColours[i], "stroke-dasharray": ["", "6 3", "2 3", "8 3 2 3"][i] }))),
		el("ul", { class: "plain legend" }, lines.map((l, i) => el("li", null, swatch(i), l.name + " ", el("strong", null, short(last(l))), " " + unit))));
}

function swatch(i) {
	return svg("svg", { viewBox: "0 0 24 8", class: "swatch", "aria-hidden": "true" },
		svg("line", { x1: 0, x2: 24, y1: 4, y2: 4, stroke: plotColours[i], class: "line", "stroke-dasharray": ["", "6 3", "2 3", "8 3 2 3"][i] }));
}

// bars draws shares of a whole, with the numbers beside.
function bars(title, parts) {
	const whole = parts.reduce((sum, p) => sum + p.value, 0);
	return el("figure", { class: "card plot" }, el("figcaption", null, el("h2", null, title)), whole === 0 ? el("p", { class: "quiet" }, "None yet.") :
		el("table", { class: "bars" }, el("tbody", null, parts.map((p) => el("tr", null, el("th", { scope: "row" }, p.name), el("td", null, count(p.value)),
			el("td", { class: "bar", "aria-hidden": "true" }, svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none" },
				svg("rect", { x: 0, y: 0, width: Math.max(p.value ? 0.7 : 0, 100 * p.value / whole), height: 10, class: "share " + p.tone }))))))));
}

// spark is a small plot without axes.
function spark(points, window, now) {
	const highest = Math.max(1e-9, ...points.map((p) => p.value));
	const x = (at) => 100 * Math.max(0, 1 - (now - at) / window), y = (v) => 22 - 20 * v / highest;
	return svg("svg", { viewBox: "0 0 100 24", preserveAspectRatio: "none", class: "spark", "aria-hidden": "true" },
		points.length > 1 && svg("path", { d: path(points, x, y), class: "line", stroke: plotColours[0] }));
}
