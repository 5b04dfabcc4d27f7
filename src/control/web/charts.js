// SPDX-License-Identifier: MIT
// The last hour: devices offline, and online, and how long detection took. Chart.js draws; colours are the page's.

import { byId, clock, count, now, setText } from "./text.js";

const HOUR_MS = 3600000;
let offline, online, delay, samples = [], present = null; // `present`: as the tiles have it

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
		plugins: [blindness],
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
		plugins: [blindness],
	});
}

// The samples, and behind them the present: the charts end with what the tiles say.
const series = () => (present && present.time_ms > (samples[samples.length - 1]?.time_ms ?? 0) ? [...samples, present] : samples);

function draw() {
	if (!online)
		return;
	const all = series(), end = all.length ? all[all.length - 1].time_ms : Date.now();
	const from = Math.max(end - HOUR_MS, Math.min(all[0]?.time_ms ?? end, end - 300000));
	for (const chart of [offline, online, delay]) {
		chart.options.scales.x.min = from;
		chart.options.scales.x.max = end + (end - from) * .01; // the last point whole
	}
	offline.data.datasets[0].data = all.map((s) => ({ x: s.time_ms, y: s.offline }));
	online.data.datasets[0].data = all.map((s) => ({ x: s.time_ms, y: s.online }));
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
			: "Detection delay over the last hour: no device was found to be silent");
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

// With each status.
export function setPresent(s) {
	present = { time_ms: s.now_ms, online: s.online, offline: s.offline, blind: s.blind, blind_since_ms: s.now_ms - s.blind_for_ms, detected: 0 };
	draw();
}

export function show(answer) {
	samples = answer.samples;
	const first = samples[0]?.time_ms, since = byId("chart-since");
	since.hidden = !first || now() - first > HOUR_MS - 60000;
	setText(since, since.hidden ? "" : `From ${clock(first)} on: the monitor has run since then, and keeps no earlier counts.`);
	draw();
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
