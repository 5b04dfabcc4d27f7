// SPDX-License-Identifier: MIT
// The devices: asked for page by page, searched and sorted by the monitor. Only the rows in sight exist, so that a hundred
// thousand of them scroll like ten.

import { ago, ask, byId, count, element, moment, setText, span } from "./text.js";

const PAGE = 500;
const ROW = 36;
const AHEAD = 200; // rows that are asked for before they are in sight
const MANY = 300;  // so many changes at once are better asked for anew

const grid = byId("grid"), space = byId("space"), found = byId("found");
const filters = { state: byId("state"), group: byId("group"), sort: byId("sort"), search: byId("search") };
let rows = [], next = null, loading = false, asked = 0, active = -1, onOpen, drawn = new Map();
let late = null; // a refresh that was asked for while one was under way

function path(after) {
	const query = new URLSearchParams({ limit: PAGE, sort: filters.sort.value });
	for (const key of ["state", "group", "search"])
		if (filters[key].value)
			query.set(key, filters[key].value);
	if (after)
		query.set("after", after);
	return `v1/devices?${query}`;
}

function tell() {
	const what = filters.state.value ? `${filters.state.value} ` : "";
	if (rows.length === 0)
		setText(found, loading ? "Looking …" : filters.search.value || filters.group.value
			? `No ${what}device that matches.` : `No device is ${filters.state.value || "known"}.`);
	else
		setText(found, `${count(rows.length)}${next ? " and more" : ""} ${what}device${rows.length === 1 && !next ? "" : "s"}`);
}

const cells = [
	[(d) => d.id],
	[(d) => d.state, "state"],
	[(d) => ago(d.since_ms)],
	[(d) => (d.last_seen_ms ? ago(d.last_seen_ms) : "never"), "wide"],
	[(d) => span(d.timeout_ms), "wide"],
	[(d) => d.reason, "wide"],
	[(d) => d.group, "middle"],
];

function fill(row, d, index) {
	row.className = `row ${d.state}${index === active ? " active" : ""}`;
	row.setAttribute("aria-rowindex", index + 2);
	row.setAttribute("aria-selected", index === active);
	row.dataset.index = index;
	row.style.transform = `translateY(${index * ROW}px)`;
	cells.forEach(([text], i) => setText(row.children[i], text(d)));
	row.children[0].title = d.id;
	row.children[2].title = moment(d.since_ms);
}

function makeRow() {
	return element("div", { class: "row", role: "row" },
		...cells.map(([, name]) => element("span", { role: "gridcell", class: name ?? "" })));
}

// Draws the rows in sight; elements are used again.
export function draw() {
	const top = grid.scrollTop, first = Math.max(0, Math.floor(top / ROW) - 4);
	const end = Math.min(rows.length, first + Math.ceil(grid.clientHeight / ROW) + 8);
	const spare = [];
	for (const [index, row] of drawn)
		if (index < first || index >= end) {
			drawn.delete(index);
			spare.push(row);
		}
	for (let i = first; i < end; i++) {
		let row = drawn.get(i);
		if (!row) {
			row = spare.pop() ?? space.appendChild(makeRow());
			drawn.set(i, row);
		}
		row.id = `row-${i}`;
		fill(row, rows[i], i);
	}
	for (const row of spare)
		row.remove();
	space.style.height = `${rows.length * ROW}px`;
	grid.setAttribute("aria-rowcount", next ? -1 : rows.length + 1);
	if (active >= 0)
		grid.setAttribute("aria-activedescendant", `row-${active}`);
	else
		grid.removeAttribute("aria-activedescendant");
	if (next && !loading && end > rows.length - AHEAD)
		more();
}

async function more() {
	const mine = asked;
	loading = true;
	try {
		const page = await ask(path(next));
		if (mine !== asked)
			return;
		// What has changed state meanwhile may come twice.
		const known = new Set(rows.map((d) => d.id));
		rows = rows.concat(page.devices.filter((d) => !known.has(d.id)));
		next = page.next ?? null;
	} catch {
		// The page says elsewhere that the monitor does not answer; scrolling asks again.
	} finally {
		if (mine === asked)
			loading = false;
	}
	tell();
	draw();
}

// Asks anew, from the first row; `keep`: stays where the reader is, as far as that goes.
export async function refresh(keep = false) {
	if (loading && keep) {
		late ??= setTimeout(() => { late = null; refresh(true); }, 500);
		return;
	}
	const mine = ++asked;
	loading = true;
	if (!keep) {
		active = -1;
		grid.scrollTop = 0;
	}
	tell();
	try {
		const page = await ask(path(null));
		if (mine !== asked)
			return;
		rows = page.devices;
		next = page.next ?? null;
		active = Math.min(active, rows.length - 1);
	} catch {
		// As above.
	}
	if (mine !== asked)
		return;
	loading = false;
	tell();
	draw();
}

function matches(d) {
	return (!filters.state.value || d.state === filters.state.value) && d.state !== "forgotten" &&
		(!filters.group.value || d.group === filters.group.value) &&
		d.id.toLowerCase().includes(filters.search.value.toLowerCase());
}

// Transitions, oldest first: what left goes, what came is put in its place where that is known.
export function change(transitions) {
	if (transitions.length > MANY || loading) {
		refresh(true);
		return;
	}
	const latest = new Map(transitions.map((d) => [d.id, d]));
	const was = active >= 0 ? rows[active]?.id : null;
	const before = rows.length;
	rows = rows.filter((d) => !latest.has(d.id));
	const come = [...latest.values()].filter(matches).sort((a, b) => b.since_ms - a.since_ms);
	if (filters.sort.value === "newest")
		rows = come.concat(rows);
	else if (filters.sort.value === "oldest" && !next)
		rows = rows.concat(come.reverse());
	else if (come.length > 0 && filters.sort.value === "id")
		rows = place(come);
	if (rows.length === before && come.length === 0)
		return;
	active = was === null ? -1 : rows.findIndex((d) => d.id === was);
	tell();
	draw();
}

// By the bytes of the ids, as the monitor sorts; beyond the last page that is here, a device comes with its own page.
const encoder = new TextEncoder();
function compare(a, b) {
	const x = encoder.encode(a.id), y = encoder.encode(b.id);
	for (let i = 0; i < Math.min(x.length, y.length); i++)
		if (x[i] !== y[i])
			return x[i] - y[i];
	return x.length - y.length;
}
function place(come) {
	const last = rows[rows.length - 1];
	return rows.concat(come.filter((d) => !next || (last && compare(d, last) < 0))).sort(compare);
}

export function setGroups(groups) {
	const wanted = ["", ...groups.map((g) => g.name)];
	byId("group-label").hidden = groups.length < 2;
	if (wanted.join("\n") === [...filters.group.options].map((o) => o.value).join("\n"))
		return;
	const was = filters.group.value;
	filters.group.replaceChildren(...wanted.map((name) => element("option", { value: name }, name || "all")));
	filters.group.value = wanted.includes(was) ? was : "";
}

function move(to) {
	if (rows.length === 0)
		return;
	active = Math.max(0, Math.min(rows.length - 1, to));
	const top = active * ROW, height = grid.clientHeight - ROW; // the head covers a row
	if (top < grid.scrollTop)
		grid.scrollTop = top;
	else if (top + ROW > grid.scrollTop + height)
		grid.scrollTop = top + ROW - height;
	draw();
}

function onKey(event) {
	const page = Math.max(1, Math.floor(grid.clientHeight / ROW) - 2);
	const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
	if (event.key in steps) {
		event.preventDefault();
		move((active < 0 ? (steps[event.key] > 0 ? -1 : 0) : active) + steps[event.key]);
	} else if (event.key === "Enter" && active >= 0) {
		event.preventDefault();
		onOpen(rows[active].id);
	}
}

export function start(open) {
	onOpen = open;
	let typed;
	filters.search.addEventListener("input", () => {
		clearTimeout(typed);
		typed = setTimeout(refresh, 150);
	});
	for (const key of ["state", "group", "sort"])
		filters[key].addEventListener("change", () => refresh());
	grid.addEventListener("scroll", draw, { passive: true });
	grid.addEventListener("keydown", onKey);
	space.addEventListener("click", (event) => {
		const row = event.target.closest(".row");
		if (!row)
			return;
		active = Number(row.dataset.index);
		draw();
		onOpen(rows[active].id);
	});
	addEventListener("resize", draw);
}
