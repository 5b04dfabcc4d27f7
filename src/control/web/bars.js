// SPDX-License-Identifier: MIT
// A device's time as bars: up, down, down as planned, not seen by any monitor, and not known yet. What the bars say is there in words too.

import { ask, count, element, moment, span } from "./text.js";

export const DAY = 86400000;
const QUARTER = 900000;

// 99.99 %, never 100 where anything is missing.
export const percent = (share) => (share === null ? "–" : share === 1 ? "100 %" : `${(Math.floor(share * 10000) / 100).toFixed(2)} %`);

const dayName = (ms) => new Date(ms).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
const hours = (ms) => new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

// The beginnings of the last `n` days, by the browser's time zone: a day may have 23 or 25 hours.
function days(n, now) {
	const today = new Date(now);
	return Array.from({ length: n }, (_, i) => new Date(today.getFullYear(), today.getMonth(), today.getDate() - n + 1 + i).getTime());
}

// As {since, until, step} of as many bars as are equally long.
function runs(begins, now) {
	const all = [];
	begins.forEach((since, i) => {
		const until = begins[i + 1] ?? now, step = i + 1 < begins.length ? until - since : DAY;
		const last = all[all.length - 1];
		if (last && (last.step === step || (i + 1 === begins.length && until - since <= last.step)))
			last.until = until;
		else
			all.push({ since, until, step });
	});
	return all;
}

async function read(id, wanted, live) {
	const answers = await Promise.all(wanted.map(({ since, until, step }) => ask(`v1/history/bars?${new URLSearchParams(
		{ device: id, since, until, step: `${step}ms`, live: live ? 1 : 0 })}`)));
	return answers.flatMap((a) => a.bars);
}

const views = {
	day: { name: "The last 24 hours", tick: (b) => (new Date(b.from_ms).getHours() % 6 === 0 && new Date(b.from_ms).getMinutes() === 0
		? hours(b.from_ms) : ""), when: (b) => `${dayName(b.from_ms)}, ${hours(b.from_ms)} to ${hours(b.to_ms)}` },
	quarter: { name: "The last 90 days", tick: (b) => ([1, 15].includes(new Date(b.from_ms).getDate()) ? dayName(b.from_ms) : ""),
		when: (b) => moment(b.from_ms).slice(0, 10) },
};

// A sum over some bars, with what follows from it.
export function sum(bars) {
	const all = { length_ms: 0, known_ms: 0, seen_ms: 0, down_ms: 0, planned_ms: 0, outages: 0 };
	for (const b of bars) {
		all.length_ms += b.to_ms - b.from_ms;
		for (const key of ["known", "seen", "down", "planned"])
			all[`${key}_ms`] += b[`${key}_s`] * 1000;
		all.outages += b.outages;
	}
	return { ...all, uptime: all.seen_ms > 0 ? (all.seen_ms - all.down_ms) / all.seen_ms : null,
		seen: all.known_ms > 0 ? all.seen_ms / all.known_ms : null };
}

export const times = (n) => (n === 1 ? "1 outage" : `${count(n)} outages`);

const down = (s) => `down ${span(s.down_ms)}${s.planned_ms < 1 ? "" : s.down_ms - s.planned_ms < 1 ? ", planned" : `, ${span(s.planned_ms)} of it planned`}`;

// What of a bar is worth a word.
function said(s) {
	const parts = [];
	if (s.known_ms < 1)
		return "no data";
	if (s.seen_ms < 1)
		return "not seen";
	parts.push(s.down_ms < 1 ? "up" : down(s));
	if (s.outages)
		parts.push(times(s.outages));
	if (s.known_ms - s.seen_ms >= 1000)
		parts.push(`not seen ${span(s.known_ms - s.seen_ms)}`);
	return parts.join(", ");
}

const isPlain = (s) => s.known_ms < 1 || (s.down_ms < 1 && s.outages === 0 && s.known_ms - s.seen_ms < 1000);

// From the top: not known, not seen, down, down as planned, up. What is there at all can be seen.
function column(s) {
	const parts = [["none", s.length_ms - s.known_ms], ["unseen", s.known_ms - s.seen_ms], ["down", s.down_ms - s.planned_ms],
		["planned", s.planned_ms], ["up", s.seen_ms - s.down_ms]].filter(([, ms]) => ms >= 1);
	return element("span", {}, ...parts.map(([kind, ms]) => {
		const part = element("i", { class: kind });
		part.style.flexGrow = ms;
		return part;
	}));
}

function words(view, bars) {
	const some = bars.map((b) => [b, sum([b])]).filter(([, s]) => !isPlain(s)).reverse();
	if (some.length === 0)
		return [];
	return [element("details", { class: "words" }, element("summary", {}, "In words"),
		element("ul", {}, ...some.map(([b, s]) => element("li", {}, `${view.when(b)}: ${said(s)}`)),
			element("li", {}, "All other bars are empty.")))];
}

const summary = (all) => (all.known_ms < 1 ? "no data" : all.seen_ms < 1 ? "no monitor was watching"
	: all.seen_ms - all.down_ms < 1 ? `offline all the time${all.seen < 1 ? ` that was seen, ${percent(all.seen)} of it` : ""}`
	: `up ${percent(all.uptime)}, ${times(all.outages)}${all.down_ms >= 1 ? `, ${down(all)}` : ""}` +
		(all.seen < 1 ? `; seen ${percent(all.seen)} of the time` : ""));

function draw(at, view, bars) {
	const all = sum(bars), open = at.querySelector("details")?.open ?? false;
	const note = element("p", { class: "note bar-note" }, summary(all));
	const columns = bars.map((b) => column(sum([b])));
	const strip = element("div", { class: "bars", role: "img", "aria-label": `${view.name}: ${summary(all)}` }, ...columns);
	const ticks = element("div", { class: "ticks", "aria-hidden": "true" });
	bars.forEach((b, i) => {
		const text = view.tick(b);
		if (!text)
			return;
		const tick = element("span", {}, text);
		tick.style.left = `min(${i / bars.length * 100}%, 100% - 3.4em)`; // within the strip
		ticks.append(tick);
	});
	const point = (event) => {
		const box = strip.getBoundingClientRect();
		const i = Math.max(0, Math.min(bars.length - 1, Math.floor((event.clientX - box.left) / box.width * bars.length)));
		note.textContent = `${view.when(bars[i])}: ${said(sum([bars[i]]))}`;
	};
	strip.addEventListener("pointermove", point);
	strip.addEventListener("pointerdown", point);
	strip.addEventListener("pointerleave", () => { note.textContent = summary(all); });
	at.replaceChildren(element("h3", {}, view.name), strip, ticks, note, ...words(view, bars));
	if (open && at.querySelector("details"))
		at.querySelector("details").open = true;
}

export function legend() {
	const kinds = [["up", "up"], ["down", "down"], ["planned", "down, as planned: a planned silence covered it"], ["unseen", "not seen: no monitor was watching"], ["none", "no data: not known yet, or forgotten"]];
	return element("ul", { class: "legend" }, ...kinds.map(([kind, text]) => element("li", {}, element("i", { class: kind }), text)));
}

// Reads and draws both. `live`: the monitor sees now. Throws where there is no history.
export async function show(id, day, quarter, now, live, isStill) {
	const since = Math.floor(now / QUARTER) * QUARTER + QUARTER - DAY;
	const [a, b] = await Promise.all([read(id, [{ since, until: Math.ceil(now), step: QUARTER }], live),
		read(id, runs(days(90, now), Math.ceil(now)), live)]);
	if (!isStill())
		return;
	draw(day, views.day, a);
	draw(quarter, views.quarter, b);
}
