// SPDX-License-Identifier: MIT
// The wheel as it is: four rings of 31 slots, the quickest innermost. A slot is as opaque as it is full; a hand on each
// ring is its cursor. Between two answers the hands go on by the clock.

import { byId, count, element, setText, span } from "./text.js";

const SLOTS = 31;
const RADII = [[34, 50], [53, 69], [72, 88], [91, 107]];
const SVG = "http://www.w3.org/2000/svg";
const still = matchMedia("(prefers-reduced-motion: reduce)");
let hands = [], slots = [], total, last;

function make(name, attributes) {
	const e = document.createElementNS(SVG, name);
	for (const [key, value] of Object.entries(attributes))
		e.setAttribute(key, value);
	return e;
}

const at = (radius, turn) => {
	const angle = turn * 2 * Math.PI - Math.PI / 2;
	return `${(radius * Math.cos(angle)).toFixed(2)} ${(radius * Math.sin(angle)).toFixed(2)}`;
};

// A sector of a ring, a little narrower than its part of the turn.
function sector([inner, outer], i) {
	const from = (i + .06) / SLOTS, to = (i + .94) / SLOTS;
	return `M${at(inner, from)}A${inner} ${inner} 0 0 1 ${at(inner, to)}L${at(outer, to)}A${outer} ${outer} 0 0 0 ${at(outer, from)}Z`;
}

export function start() {
	const svg = byId("wheel");
	for (const [level, radii] of RADII.entries()) {
		slots[level] = [];
		for (const r of radii)
			svg.append(make("circle", { r, class: "ring" }));
		for (let i = 0; i < SLOTS; i++) {
			const path = make("path", { d: sector(radii, i), class: "slot", "fill-opacity": .06 });
			path.append(make("title", {}));
			slots[level].push(path);
			svg.append(path);
		}
	}
	for (const [level, [inner, outer]] of RADII.entries()) {
		hands[level] = make("path", { d: `M0 ${-inner + 1.5}V${-outer - 1.5}`, class: "hand" });
		svg.append(hands[level]);
	}
	total = make("text", { y: 2 });
	total.textContent = "–";
	const unit = make("text", { y: 12, class: "unit" });
	unit.textContent = "in the wheel";
	svg.append(total, unit);
	setInterval(turn, 100);
}

const slotSpan = (ticks, perS) => (ticks < perS ? `${ticks}/${perS} s` : span(Math.floor(ticks / perS) * 1000));

// The wheel of keys goes by a clock of its own: what is as far ahead of its cursor is shown in the same slot.
function both({ keys, ...wheel }) {
	if (!keys)
		return wheel;
	const levels = wheel.levels.map((l, i) => {
		const k = keys.levels[i];
		const slots = l.slots.map((n, s) => n + k.slots[(s - l.cursor + k.cursor + SLOTS) % SLOTS]);
		return { ...l, length: l.length + k.length, slots };
	});
	return { ...wheel, length: wheel.length + keys.length, levels };
}

export function show(answer) {
	const wheel = both(answer);
	last = { ...wheel, at: performance.now() };
	setText(total, count(wheel.length));
	const body = byId("wheel-levels").tBodies[0];
	if (!body.rows.length)
		body.append(...wheel.levels.map((l) => element("tr", {}, element("th", { scope: "row" }, `${l.level}`),
			element("td", {}, slotSpan(l.slot_ticks, wheel.ticks_per_s)),
			element("td", {}, slotSpan(l.slot_ticks * SLOTS, wheel.ticks_per_s)), element("td"))));
	for (const l of wheel.levels) {
		const most = Math.max(1, ...l.slots);
		setText(body.rows[l.level].cells[3], count(l.length));
		l.slots.forEach((n, i) => {
			const path = slots[l.level][i];
			// A single device shows; the fullest slot is full.
			path.setAttribute("fill-opacity", n === 0 ? .06 : (.28 + .72 * n / most).toFixed(2));
			setText(path.firstChild, `level ${l.level}, slot ${i}: ${count(n)}`);
		});
	}
	byId("wheel").setAttribute("aria-label", `The timing wheel with ${count(wheel.length)} devices: ` +
		wheel.levels.map((l) => `${count(l.length)} on level ${l.level}`).join(", "));
	turn();
}

function turn() {
	if (!last || document.hidden)
		return;
	// A second at most: if no answer comes, the hands stop.
	const gone = still.matches ? 0 : Math.min(2, (performance.now() - last.at) / 1000);
	const tick = last.cursor_tick + gone * last.ticks_per_s;
	for (const l of last.levels)
		hands[l.level].setAttribute("transform", `rotate(${((tick / l.slot_ticks % SLOTS) / SLOTS * 360).toFixed(1)})`);
}
