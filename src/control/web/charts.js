// SPDX-License-Identifier: MIT
// The last hour: devices offline, and online, and how long detection took. A time in which nothing was measured is a gap,
// never 0; heartwheel-history may fill it (past.js). Chart.js draws; colours are the page's.

import * as past from "./past.js";
import { byId, clock, count, now, setText } from "./text.js";

const HOUR_MS = 3600000;
let offline, online, delay, samples = [], present = null; // `present`: as the tiles have it
let period = 10000, gaps = []; // `gaps`: of the counts

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Whole minutes, as many as have room.
function minutes(from, to, width) {
	const most = Math.max(1.5, Math.min(6.5, width / 64));
	const step = [1, 2, 5, 10, 15, 30].map((m) => m * 60000).find((s) => (to - from) / s <= most) ?? 1800000;
	const ticks = [];
	for (let value = Math.ceil(from / step) * step; value <= to; value += step)
		ticks.push({ value });
	return ticks;
}

function timeAxis() {
	return {
		type: "linear",
		afterBuildTicks: (axis) => { axis.ticks = minutes(axis.min, axis.max, axis.width || axis.chart.width); },
		ticks: { maxRotation: 0, color: colour("--soft"), callback: (v) => clock(v).slice(0, 5) },
		grid: { display: false },
		border: { color: colour("--line") },
	};
}

function valueAxis(text, more = {}) {
	return {
		beginAtZero: true,
		suggestedMax: 5,
		grid: { color: colour("--line") },
		ticks: { precision: 0, maxTicksLimit: 5, color: colour("--soft"), callback: (v) => count(v) },
		title: { display: Boolean(text), text, color: colour("--soft") },
		...more,
	};
}

function options(scales, label, legend) {
	return {
		animation: false,
		maintainAspectRatio: false,
		parsing: false,
		normalized: true,
		interaction: { mode: "index", intersect: false },
		elements: { point: { radius: 0, hitRadius: 8 }, line: { borderWidth: 2 } },
		scales,
		plugins: {
			legend: { display: legend, position: "bottom", labels: { boxWidth: 12, boxHeight: 12, color: colour("--soft") } },
			tooltip: { callbacks: { title: (items) => clock(items[0].parsed.x), label } },
		},
	};
}

// Hatched, as the legend's square is.
function hatch(ctx) {
	const tile = document.createElement("canvas"), t = tile.getContext("2d");
	tile.width = tile.height = 8;
	t.strokeStyle = colour("--soft");
	t.lineWidth = 1.5;
	t.beginPath();
	for (const x of [-8, 0, 8]) {
		t.moveTo(x, 8);
		t.lineTo(x + 8, 0);
	}
	t.stroke();
	return ctx.createPattern(tile, "repeat");
}

// What of a sample's time was blind, as far as the sample says; the present's lasts.
export function blindSpan(all, i) {
	const s = all[i];
	if (s.blind_from_ms !== undefined)
		return s.blind_ms > 0 ? [s.blind_from_ms, s.blind_from_ms + s.blind_ms] : [0, 0];
	return s.blind ? [Math.max(s.blind_since_ms, all[i - 1]?.time_ms ?? 0), s.time_ms] : [0, 0];
}

// Marks the times of which nothing is known, in words where there is room.
const unknown = {
	id: "unknown",
	beforeDatasetsDraw(chart) {
		const { ctx, chartArea, scales } = chart;
		ctx.save();
		ctx.beginPath();
		ctx.rect(chartArea.left, chartArea.top, chartArea.width, chartArea.height);
		ctx.clip();
		ctx.font = `12px ${Chart.defaults.font.family}`;
		ctx.textAlign = "center";
		for (const { begin, end, text } of chart.unknown ?? []) {
			const left = Math.max(scales.x.getPixelForValue(begin), chartArea.left), width = scales.x.getPixelForValue(end) - left;
			const fits = [text, "not known"].find((t) => ctx.measureText(t).width + 12 < width);
			ctx.fillStyle = colour("--hover");
			ctx.fillRect(left, chartArea.top, width, chartArea.height);
			ctx.fillStyle = colour("--soft");
			if (fits)
				ctx.fillText(fits, left + width / 2, (chartArea.top + chartArea.bottom) / 2);
		}
		ctx.restore();
	},
};

// Where the monitor could not hear devices for some of the time: above what is filled.
const blindness = {
	id: "blindness",
	afterDatasetsDraw(chart) {
		const { ctx, chartArea, scales } = chart;
		ctx.save();
		ctx.fillStyle = hatch(ctx);
		const all = series();
		for (let i = 0; i < all.length; i++) {
			const [begin, end] = blindSpan(all, i);
			const left = Math.max(scales.x.getPixelForValue(begin), chartArea.left), to = scales.x.getPixelForValue(end);
			if (end > begin && to > left)
				ctx.fillRect(left, chartArea.top, to - left, chartArea.height);
		}
		ctx.restore();
	},
};

// A few that are offline must show beside thousands that are not: each has a chart.
function makeCounts(id, name, kind) {
	return new Chart(byId(id), {
		type: "line",
		data: { datasets: [{ label: name, data: [], fill: "origin", borderColor: colour(`--${kind}`), backgroundColor: colour(`--${kind}-soft`) }] },
		options: options({ x: timeAxis(), y: valueAxis("") }, (item) => `${name}: ${count(item.parsed.y)}`, false),
		plugins: [unknown, blindness],
	});
}

function makeDelay() {
	const scales = { x: timeAxis(), y: valueAxis("ms") };
	const label = (item) => `${item.dataset.label}: ${item.parsed.y.toFixed(1)} ms`;
	return new Chart(byId("chart-delay"), {
		type: "line",
		data: { datasets: [
			{ label: "longest", data: [], borderColor: colour("--bad"), backgroundColor: colour("--bad"), pointRadius: 2, showLine: false },
			{ label: "mean", data: [], borderColor: colour("--good"), backgroundColor: colour("--good"), pointRadius: 2, spanGaps: true },
		] },
		options: options(scales, label, true),
		plugins: [unknown, blindness],
	});
}

// The past, the samples, and the present: the charts end with what the tiles say.
function series() {
	const last = samples[samples.length - 1]?.time_ms ?? 0, first = samples[0]?.time_ms ?? 0;
	return [...past.known().filter((c) => c.time_ms < first), ...samples, ...(present && present.time_ms > last ? [present] : [])];
}

// Of counts in the order of time, where those of a moment may be null: the times in [from, end] of which nothing is known.
export function findGaps(all, from, end, most) {
	const found = [];
	let known = from, hole = false, none = true;
	const note = (begin, to) => found.push({ begin, end: to, text: none ? `not known before ${clock(to)}` : "not known" });
	for (const s of all.filter((one) => one.time_ms >= from)) {
		if (s.online === null) {
			hole = true;
			continue;
		}
		if (hole || s.time_ms - known > most)
			note(known, s.time_ms);
		known = s.time_ms;
		hole = none = false;
	}
	if (hole || end - known > most)
		note(known, end);
	return found;
}

// The line breaks at a gap: the point after its begin has no value.
const points = (all, key) => [...all.filter((s) => s[key] !== null).map((s) => ({ x: s.time_ms, y: s[key] })),
	...gaps.map((g) => ({ x: g.begin + 1, y: null }))].sort((a, b) => a.x - b.x);

function draw() {
	if (!online)
		return;
	const all = series(), end = all.length ? all[all.length - 1].time_ms : now(), from = end - HOUR_MS;
	const counted = all.filter((s) => s.time_ms >= from - period);
	gaps = findGaps(all, from, end, 3.5 * period);
	offline.unknown = online.unknown = gaps;
	delay.unknown = findGaps(samples, from, end, 3.5 * period); // no history has delays
	for (const chart of [offline, online, delay]) {
		chart.options.scales.x.min = from;
		chart.options.scales.x.max = end + (end - from) * .01; // the last point whole
	}
	offline.data.datasets[0].data = points(counted, "offline");
	online.data.datasets[0].data = points(counted, "online");
	const detected = samples.filter((s) => s.detected > 0);
	delay.data.datasets[0].data = detected.map((s) => ({ x: s.time_ms, y: s.delay_max_ms }));
	delay.data.datasets[1].data = detected.map((s) => ({ x: s.time_ms, y: s.delay_mean_ms }));
	offline.update("none");
	online.update("none");
	delay.update("none");
	const last = all[all.length - 1];
	if (last) {
		byId("chart-offline").setAttribute("aria-label", `Devices offline over the last hour: now ${count(last.offline)}`);
		byId("chart-online").setAttribute("aria-label", `Devices online over the last hour: now ${count(last.online)}`);
		byId("chart-delay").setAttribute("aria-label", detected.length
			? `Detection delay over the last hour: at most ${Math.max(...detected.map((s) => s.delay_max_ms)).toFixed(1)} ms`
			: "Detection delay over the last hour: no device went offline");
	}
}

function make() {
	for (const chart of [offline, online, delay])
		chart?.destroy();
	offline = makeCounts("chart-offline", "offline", "bad");
	online = makeCounts("chart-online", "online", "good");
	delay = makeDelay();
	draw();
}

export function start() {
	if (typeof Chart === "undefined") {
		byId("no-charts").hidden = false;
		document.querySelector(".charts").hidden = true;
		return;
	}
	Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
	make();
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", make);
}

// A chart that was not shown has no size.
export function resize() {
	delay?.resize();
}

// With each status. Before the store's devices are there, the counts are not known (as samples.c has it).
export function setPresent(s) {
	const isKnown = !s.loading && !(s.starting && s.redis !== "up" && s.redis !== "off");
	present = !isKnown ? null : { time_ms: s.now_ms, online: s.online, offline: s.offline, blind: s.blind, blind_since_ms: s.now_ms - s.blind_for_ms, detected: 0 };
	draw();
}

// The first sample, if the monitor has not run for the whole hour; else null.
function begin() {
	const first = samples[0]?.time_ms;
	return !first || now() - first > HOUR_MS - 3 * period ? null : first;
}

// Since when the monitor itself has counted and measured; "": for the whole hour.
export const reach = () => (begin() === null ? "" : clock(begin()));

function showPast() {
	const since = byId("chart-since"), text = past.explain();
	since.hidden = !text;
	setText(since, text);
	draw();
}

export function show(answer) {
	samples = answer.samples;
	period = answer.period_s * 1000;
	past.renew(begin(), answer.history, showPast);
	showPast();
}

// The delay of the last so many minutes, for the tile: [mean, longest, how many], or null.
export function recentDelay(minutes) {
	const since = (samples[samples.length - 1]?.time_ms ?? 0) - minutes * 60000;
	const some = samples.filter((s) => s.detected > 0 && s.time_ms >= since);
	const n = some.reduce((sum, s) => sum + s.detected, 0);
	if (n === 0)
		return null;
	return [some.reduce((sum, s) => sum + s.delay_mean_ms * s.detected, 0) / n, Math.max(...some.map((s) => s.delay_max_ms)), n];
}
