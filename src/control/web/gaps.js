// SPDX-License-Identifier: MIT
// The gaps between a device's heartbeats, as bars below the line of its timeout. The monitor keeps no list of gaps: the page
// collects them while it is open, from the last_seen_ms of each answer. What is learned from earlier gaps is drawn as lines.

import { clock, count, element, setText, span } from "./text.js";

const SHOWN = 60;
const REGULAR_MS = 10000; // answers further apart than this may have missed several heartbeats
const SAME_MS = 50; // one heartbeat: the monitor reckons last_seen_ms from two clocks, and may round it otherwise in the next answer
const FROM = { device: "asked for by the device", inventory: "from the inventory", learned: "learned", group: "of the group" };

// Takes an answer of the monitor about the device, for which the page asked at `asked`. `sure`: the monitor could hear devices.
export function add(g, d, asked, sure) {
	const last = g.last;
	if (last && asked < last.asked) // an answer that was overtaken
		return;
	g.last = { seen_ms: d.last_seen_ms, timeout_ms: d.timeout_ms, seq: d.seq, state: d.state, asked };
	g.unsure ||= !sure;
	if (!last || Math.abs(last.seen_ms - d.last_seen_ms) < SAME_MS)
		return;
	const gap = { from_ms: last.seen_ms, ms: d.last_seen_ms - last.seen_ms, kind: "up" }, isUnsure = g.unsure;
	g.unsure = !sure;
	if (!last.seen_ms || gap.ms <= 0 || asked - last.asked > REGULAR_MS)
		return;
	const wasOffline = last.state === "offline" || last.seq !== d.seq;
	if (isUnsure)
		gap.kind = "unseen";
	else if (gap.ms > last.timeout_ms && wasOffline)
		gap.kind = "down";
	else // longer than the timeout, but never offline: several gaps between two answers. The silence before the first is certain.
		gap.ms = Math.min(gap.ms, Math.max(last.timeout_ms, last.asked - last.seen_ms));
	g.all = [...g.all, gap].slice(-SHOWN + 1);
}

const kindWords = { up: "", down: ", longer than the timeout", unseen: ", the monitor could not hear devices in it" };
const inWords = (gap) => `${clock(gap.from_ms)}: ${span(gap.ms)}${kindWords[gap.kind]}`;

// The silence that lasts, as a gap; null: the device was never heard.
function lasting(g, d, now) {
	const ms = now - d.last_seen_ms;
	return d.last_seen_ms ? { from_ms: d.last_seen_ms, ms, kind: g.unsure ? "unseen" : d.state === "offline" ? "down" : "up" } : null;
}

function summary(g, silence) {
	const late = g.all.filter((gap) => gap.kind === "down").length;
	const past = g.all.length === 0 ? "No gap has ended since this page was opened"
		: `${count(g.all.length)} ${g.all.length === 1 ? "gap" : "gaps"} since ${clock(g.all[0].from_ms)}: largest ${span(Math.max(...g.all.map((gap) => gap.ms)))}, ${count(late)} longer than the timeout`;
	return `${past}${silence ? `; silent for ${span(silence.ms)} now` : ""}.`;
}

// The heights that are drawn as lines, with their words.
function lines(d) {
	const all = [["timeout", d.timeout_ms, `timeout in force, ${FROM[d.timeout_from] ?? "of the group"}`]];
	if (d.learned_ms && d.timeout_from !== "learned")
		all.push(["learned", d.learned_ms, "learned timeout, not in force"]);
	if (d.gaps_seen)
		all.push(["largest", d.largest_gap_ms, "largest gap that is learned from"]);
	return all;
}

export function make() {
	const strip = element("div", { class: "gaps", role: "img" }), note = element("p", { class: "note bar-note" }), legend = element("ul", { class: "legend" });
	const g = { all: [], last: null, unsure: false, strip, note, legend, pointed: null, elements: [strip, note, legend] };
	const point = (event) => {
		const box = strip.getBoundingClientRect();
		g.pointed = SHOWN - 1 - Math.max(0, Math.min(SHOWN - 1, Math.floor((event.clientX - box.left) / box.width * SHOWN))); // from the right
		g.word?.();
	};
	strip.addEventListener("pointermove", point);
	strip.addEventListener("pointerdown", point);
	strip.addEventListener("pointerleave", () => { g.pointed = null; g.word?.(); });
	return g;
}

// Bars of equal width, the latest at the right. A gap of more than twice the highest line fills the height.
export function show(g, d, now) {
	const silence = lasting(g, d, now), all = silence ? [...g.all, silence] : g.all, marks = lines(d);
	const high = Math.max(...marks.map(([, ms]) => ms)), top = Math.min(2 * high, 1.15 * Math.max(high, ...all.map((gap) => gap.ms)));
	const percent = (ms) => `${Math.min(100, ms / top * 100)}%`;
	g.strip.replaceChildren(...all.map((gap, i) => {
		const bar = element("i", { class: gap === silence ? `${gap.kind} lasts` : gap.kind });
		bar.style.height = percent(gap.ms);
		bar.style.right = `${(all.length - 1 - i) / SHOWN * 100}%`;
		return bar;
	}), ...marks.map(([kind, ms]) => {
		const line = element("b", { class: kind });
		line.style.bottom = percent(ms);
		return line;
	}));
	const whole = summary(g, silence), drawn = marks.map(([kind, ms, words]) => [kind, `${words}: ${span(ms)}`]);
	g.strip.setAttribute("aria-label", `${whole} ${drawn.map(([, words]) => words).join("; ")}`);
	g.word = () => {
		const gap = g.pointed === null ? null : all[all.length - 1 - g.pointed];
		setText(g.note, gap ? `From ${inWords(gap)}${gap === silence ? ", lasts" : ""}` : whole);
	};
	g.word();
	const names = drawn.map(([kind]) => kind).join();
	if (g.legend.dataset.names !== names)
		g.legend.replaceChildren(...drawn.map(([kind]) => element("li", {}, element("b", { class: kind }), element("span"))));
	g.legend.dataset.names = names;
	drawn.forEach(([, words], i) => setText(g.legend.children[i].lastChild, words));
}
