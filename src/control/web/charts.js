// SPDX-License-Identifier: MIT
// The last hour: devices online and offline, and how long detection took. Chart.js draws; colours are the page's.

import { byId, clock, count } from "./text.js";

const HOUR_MS = 3600000;
let devices, delay, samples = [];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Whole minutes, about five of them.
function minutes(from, to) {
	const step = [1, 2, 5, 10, 15].map((m) => m * 60000).find((s) => (to - from) / s <= 6.5) ?? 900000;
	const ticks = [];
	for (let value = Math.ceil(from / step) * step; value <= to; value += step)
		ticks.push({ value });
	return ticks;
}

function timeAxis() {
	return {
		type: "linear",
		afterBuildTicks: (axis) => { axis.ticks = minutes(axis.min, axis.max); },
		ticks: { maxRotation: 0, color: colour("--soft"), callback: (v) => clock(v).slice(0, 5) },
		grid: { display: false },
		border: { color: colour("--line") },
	};
}

function valueAxis(text, more = {}) {
	return {
		beginAtZero: true,
		grid: { color: colour("--line") },
		ticks: { precision: 0, maxTicksLimit: 6, color: colour("--soft"), callback: (v) => count(v) },
		title: { display: Boolean(text), text, color: colour("--soft") },
		...more,
	};
}

function options(scales, label) {
	return {
		animation: false,
		maintainAspectRatio: false,
		parsing: false,
		normalized: true,
		interaction: { mode: "index", intersect: false },
		elements: { point: { radius: 0, hitRadius: 8 }, line: { borderWidth: 2 } },
		scales,
		plugins: {
			legend: { position: "bottom", labels: { boxWidth: 12, boxHeight: 12, color: colour("--soft") } },
			tooltip: { callbacks: { title: (items) => clock(items[0].parsed.x), label } },
		},
	};
}

// Grey where the monitor was blind for some of the time.
const blindness = {
	id: "blindness",
	beforeDatasetsDraw(chart) {
		const { ctx, chartArea, scales } = chart;
		ctx.save();
		ctx.fillStyle = colour("--warn-soft");
		for (let i = 0; i < samples.length; i++) {
			if (!samples[i].blind)
				continue;
			const from = scales.x.getPixelForValue(i > 0 ? samples[i - 1].time_ms : samples[i].time_ms - 10000);
			const to = scales.x.getPixelForValue(samples[i].time_ms);
			const left = Math.max(from, chartArea.left);
			if (to > left)
				ctx.fillRect(left, chartArea.top, to - left, chartArea.height);
		}
		ctx.restore();
	},
};

// A few that are offline must show beside thousands that are not: they have a scale of their own.
function makeDevices() {
	const right = { position: "right", grid: { display: false }, suggestedMax: 5 };
	const scales = { x: timeAxis(), y: valueAxis("online"), offline: valueAxis("offline", right) };
	const label = (item) => `${item.dataset.label}: ${count(item.parsed.y)}`;
	return new Chart(byId("chart-devices"), {
		type: "line",
		data: { datasets: [
			{ label: "offline", data: [], yAxisID: "offline", borderColor: colour("--bad"), backgroundColor: colour("--bad-soft") },
			{ label: "online", data: [], fill: "origin", borderColor: colour("--good"), backgroundColor: colour("--good-soft") },
		] },
		options: options(scales, label),
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
		options: options(scales, label),
		plugins: [blindness],
	});
}

function draw() {
	if (!devices)
		return;
	const end = samples.length ? samples[samples.length - 1].time_ms : Date.now();
	const from = Math.max(end - HOUR_MS, Math.min(samples[0]?.time_ms ?? end, end - 300000));
	for (const chart of [devices, delay]) {
		chart.options.scales.x.min = from;
		chart.options.scales.x.max = end + (end - from) * .01; // the last point whole
	}
	devices.data.datasets[0].data = samples.map((s) => ({ x: s.time_ms, y: s.offline }));
	devices.data.datasets[1].data = samples.map((s) => ({ x: s.time_ms, y: s.online }));
	const detected = samples.filter((s) => s.detected > 0);
	delay.data.datasets[0].data = detected.map((s) => ({ x: s.time_ms, y: s.delay_max_ms }));
	delay.data.datasets[1].data = detected.map((s) => ({ x: s.time_ms, y: s.delay_mean_ms }));
	devices.update("none");
	delay.update("none");
	const last = samples[samples.length - 1];
	if (last) {
		byId("chart-devices").setAttribute("aria-label",
			`Devices over the last hour: now ${count(last.online)} online and ${count(last.offline)} offline`);
		byId("chart-delay").setAttribute("aria-label", detected.length
			? `Detection delay over the last hour: at most ${Math.max(...detected.map((s) => s.delay_max_ms)).toFixed(1)} ms`
			: "Detection delay over the last hour: no device was found to be silent");
	}
}

function make() {
	devices?.destroy();
	delay?.destroy();
	devices = makeDevices();
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

export function show(answer) {
	samples = answer.samples;
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
