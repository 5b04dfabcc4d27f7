// SPDX-License-Identifier: MIT
// The devices: asked for page by page, searched and sorted by the monitor. Only the rows in sight exist, so that a hundred
// thousand of them scroll like ten. What is here of the list is its beginning and its end, from which it is asked for as well:
// `front` and, last first, `back`; what lies between comes when it is looked at.

import { go, here, keep, to } from "./route.js";
import { ago, announce, ask, because, byId, count, element, middle, moment, setMiddle, setText, span, visible } from "./text.js";

const PAGE = 500, LONG_PAGE = 1000;
const ROW = 36;
const AHEAD = 200; // rows that are asked for before they are in sight
const RETRY_MS = 2000;
const MANY = 300;  // so many changes at once are better asked for anew

const grid = byId("grid"), space = byId("space"), found = byId("found");
const others = byId("found-all"); // leads to what matches in any state
const filters = { state: byId("state"), group: byId("group"), sort: byId("sort"), search: byId("search") };
const usual = { state: "offline", group: "", sort: "newest", search: "" };
let front = [], back = [], total = 0, next = null, nextBack = null;
let prefix = "", loading = false, failed = false, asked = 0, active = -1, onOpen, drawn = new Map(), mentioned = "", why = "";
let late = null; // a refresh that was asked for while one was under way
let typed;       // one that waits for more to be typed
let counts = null; // how many there are of each state, as the tiles show it

const at = (i) => (i < front.length ? front[i] : back[total - 1 - i]);
const isWhole = () => front.length >= total;

function query(more) {
	const all = new URLSearchParams({ sort: filters.sort.value, ...more });
	if (filters.state.value !== "all")
		all.set("state", filters.state.value);
	for (const key of ["group", "search"])
		if (filters[key].value)
			all.set(key, filters[key].value);
	if (prefix)
		all.set("prefix", prefix);
	return all;
}

const opposite = (sort) => (sort.endsWith("-back") ? sort.slice(0, -5) : `${sort}-back`);

// A page from the beginning, or from the end.
function path(fromBack, after, limit = PAGE) {
	const all = query({ limit });
	if (fromBack)
		all.set("sort", opposite(filters.sort.value));
	if (after)
		all.set("after", after);
	return `v1/devices?${all}`;
}

// The list comes page by page, and late while thousands change: where nothing is left out, it is as long as the tiles say.
const isUnfiltered = () => !filters.search.value && !filters.group.value && !prefix;
const number = () => (counts && isUnfiltered() ? counts[filters.state.value] : total);

function tell() {
	const what = filters.state.value !== "all" ? `${filters.state.value} ` : "", n = number();
	if (n === 0 || (total === 0 && (loading || failed)))
		setText(found, failed ? `Not known: ${why}.` : loading ? "Looking …" : filters.search.value || filters.group.value || prefix
			? `No ${what}device matches.` : `No device is ${what.trim() || "known"}.`);
	else
		setText(found, `${count(n)} ${what}device${n === 1 ? "" : "s"}`);
	grid.classList.toggle("alike", filters.state.value !== "all"); // then a phone needs no column for it
	others.hidden = n > 0 || loading || failed || filters.state.value === "all" || isUnfiltered();
	others.href = to("overview", "", { ...kept(), state: "all" });
	const asks = query({}).toString();
	if (!loading && asks !== mentioned) {
		if (mentioned)
			announce(found.textContent);
		mentioned = asks;
	}
}

const cells = [
	[(d) => visible(d.id)],
	[(d) => d.state, "state"],
	[(d) => ago(d.since_ms)],
	[(d) => (d.last_seen_ms ? ago(d.last_seen_ms) : "never"), "wide"],
	[(d) => span(d.timeout_ms), "wide"],
	[(d) => because(d.reason), "wide"],
	[(d) => visible(d.group), "middle"],
];

function fill(row, d, index) {
	row.className = `row ${d.state ?? ""}${index === active ? " active" : ""}`;
	row.setAttribute("aria-rowindex", index + 2);
	row.setAttribute("aria-selected", index === active);
	row.dataset.index = index;
	row.style.transform = `translateY(${index * ROW}px)`;
	setMiddle(row.children[0].firstChild, d.id === undefined ? "…" : cells[0][0](d));
	cells.forEach(([text], i) => { if (i > 0) setText(row.children[i], d.id === undefined ? "" : text(d)); });
	row.children[2].title = d.id === undefined ? "" : moment(d.since_ms);
}

function makeRow() {
	return element("div", { class: "row", role: "row" },
		...cells.map(([, name], i) => element("span", { role: "gridcell", class: name ?? "" }, ...(i === 0 ? [middle("")] : []))));
}

// Draws the rows in sight; elements are used again.
export function draw() {
	space.style.height = `${total * ROW}px`; // the grid is as high as what is in it, up to a bound
	const top = grid.scrollTop, first = Math.max(0, Math.floor(top / ROW) - 4);
	const end = Math.min(total, first + Math.ceil(grid.clientHeight / ROW) + 8);
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
		fill(row, at(i) ?? {}, i);
	}
	for (const row of spare)
		row.remove();
	grid.setAttribute("aria-rowcount", total + 1);
	if (active >= 0)
		grid.setAttribute("aria-activedescendant", `row-${active}`);
	else
		grid.removeAttribute("aria-activedescendant");
	if (!loading && !isWhole() && grid.clientHeight > 0)
		more(first, end);
}

// What is in sight, or soon will be, and is not here: from the nearer side.
async function more(first, end) {
	const hole = [front.length, total - back.length], mine = asked;
	if (hole[0] >= hole[1] || end + AHEAD < hole[0] || first - AHEAD > hole[1])
		return;
	const fromFront = next !== null && (end - hole[0] <= hole[1] - first || (back.length > 0 && nextBack === null));
	loading = true;
	try {
		const far = fromFront ? first - hole[0] > PAGE : hole[1] - end > PAGE;
		const page = await ask(path(!fromFront, fromFront ? next : nextBack, far ? LONG_PAGE : PAGE));
		if (mine === asked)
			take(page, fromFront);
	} catch {
		// The page says elsewhere that the monitor does not answer; scrolling asks again.
	} finally {
		if (mine === asked)
			loading = false;
	}
	tell();
	if (mine === asked)
		draw();
}

// What has changed state meanwhile may come twice.
function take(page, toFront) {
	const known = new Set((toFront ? front : back).map((d) => d.id));
	const some = page.devices.filter((d) => !known.has(d.id));
	total = page.total;
	if (toFront) {
		front = front.concat(some);
		next = page.next ?? null;
		if (next === null)
			total = front.length;
	} else {
		back = back.concat(some);
		nextBack = page.next ?? null;
	}
	if (front.length + back.length >= total)
		join();
}

// Beginning and end have met.
function join() {
	const ids = new Set(front.map((d) => d.id));
	front = front.concat(back.filter((d) => !ids.has(d.id)).reverse());
	back = [];
	next = null;
	total = front.length;
}

// Asks anew, from the first row; `stays`: the reader is left where he is, as far as that goes.
export async function refresh(stays = false) {
	if (loading && stays) {
		soon(500);
		return;
	}
	const mine = ++asked;
	loading = true;
	if (!stays) {
		active = -1;
		grid.scrollTop = 0;
		front = back = [];
		total = 0;
	}
	tell();
	try {
		const page = await ask(path(false, null));
		if (mine !== asked)
			return;
		front = page.devices;
		back = [];
		next = page.next ?? null;
		nextBack = null;
		total = next === null ? front.length : page.total;
		active = Math.min(active, total - 1);
		failed = false;
	} catch (error) {
		why = error.message;
		failed = true; // so that nobody is said to be offline no more
	}
	if (failed && mine === asked)
		soon(RETRY_MS);
	if (mine !== asked)
		return;
	loading = false;
	tell();
	draw();
}

// With each status: the tiles and the line below the list have one source.
export function setCounts(s) {
	counts = { online: s.online, offline: s.offline, all: s.devices };
	tell();
}

function soon(ms) {
	late ??= setTimeout(() => { late = null; refresh(true); }, ms);
}

function matches(d) {
	return (filters.state.value === "all" || d.state === filters.state.value) && d.id.startsWith(prefix) && d.state !== "forgotten" &&
		(!filters.group.value || d.group === filters.group.value) &&
		d.id.toLowerCase().includes(filters.search.value.toLowerCase());
}

// Transitions, oldest first: what left goes, what came is put in its place where that is known.
export function change(transitions) {
	if (transitions.length > MANY || loading || back.length > 0) {
		soon(loading || back.length > 0 ? 1000 : 0);
		return;
	}
	const latest = new Map(transitions.map((d) => [d.id, d]));
	const was = active >= 0 ? at(active)?.id : null;
	const before = front.length, whole = isWhole();
	front = front.filter((d) => !latest.has(d.id));
	const left = before - front.length, come = [...latest.values()].filter(matches).sort((a, b) => b.since_ms - a.since_ms);
	if (filters.sort.value === "newest")
		front = come.concat(front);
	else if (filters.sort.value === "oldest" && !next)
		front = front.concat(come.reverse());
	else if (come.length > 0 && filters.sort.value.startsWith("id"))
		front = place(come);
	total = whole ? front.length : Math.max(front.length, total - left + come.length);
	if (!whole)
		soon(1000);
	if (left === 0 && come.length === 0)
		return;
	active = was === null ? -1 : front.findIndex((d) => d.id === was);
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
	const last = front[front.length - 1], sign = filters.sort.value === "id" ? 1 : -1;
	return front.concat(come.filter((d) => !next || (last && sign * compare(d, last) < 0))).sort((a, b) => sign * compare(a, b));
}

export function setGroups(groups) {
	const wanted = ["", ...groups.map((g) => g.name)];
	byId("group-label").hidden = groups.length < 2;
	if (wanted.join("\n") === [...filters.group.options].map((o) => o.value).join("\n"))
		return;
	const was = here().view === "overview" ? here().query.get("group") ?? "" : filters.group.value;
	filters.group.replaceChildren(...wanted.map((name) => element("option", { value: name }, visible(name) || "all")));
	setGroup(was);
}

// Also one that is no group any more, or is not known yet.
function setGroup(name) {
	if (![...filters.group.options].some((o) => o.value === name))
		filters.group.append(element("option", { value: name }, visible(name)));
	filters.group.value = name;
}

function move(to) {
	if (total === 0)
		return;
	active = Math.max(0, Math.min(total - 1, to));
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
	} else if (event.key === "Enter" && at(active)) {
		event.preventDefault();
		onOpen(at(active).id);
	}
}

// --- what is shown is in the address

const kept = () => ({ prefix, ...Object.fromEntries(Object.keys(usual).map((key) => [key, filters[key].value === usual[key] ? "" : filters[key].value])) });
const keepFilters = () => keep(kept());

function showSort() {
	const is = filters.sort.value;
	byId("by-id").setAttribute("aria-sort", is === "id" ? "ascending" : is === "id-back" ? "descending" : "none");
	byId("by-since").setAttribute("aria-sort", is === "newest" ? "descending" : is === "oldest" ? "ascending" : "none");
}

// From the address: what it does not name is as usual.
export function setFilters(given) {
	const before = query({}).toString();
	for (const key of Object.keys(usual))
		if (key === "group")
			setGroup(given.get("group") ?? "");
		else
			filters[key].value = given.get(key) ?? usual[key];
	for (const key of ["state", "sort"])
		if (filters[key].selectedIndex < 0)
			filters[key].value = usual[key];
	prefix = given.get("prefix") ?? "";
	byId("prefix").hidden = !prefix;
	setText(byId("prefix"), `begins with ${visible(prefix)} ✕`);
	byId("prefix").title = "Show other states as well";
	showSort();
	if (query({}).toString() !== before)
		refresh();
}

function changed() {
	clearTimeout(typed); // what was typed is asked for as well
	showSort();
	keepFilters();
	refresh();
}

// --- all that matches, as a table for other programs

// A cell that a spreadsheet would take for a formula begins with an apostrophe.
const quoted = (text) => `"${(/^[=+@\t\r-]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
const iso = (ms) => (ms ? new Date(ms).toISOString() : "");

async function save() {
	const button = byId("csv"), lines = ["id,state,since,last_seen,timeout_s,reason,group"];
	button.disabled = true;
	try {
		for (let after = null, page; page === undefined || after; after = page.next ?? null) {
			page = await ask(path(false, after, LONG_PAGE));
			lines.push(...page.devices.map((d) => [quoted(d.id), d.state, iso(d.since_ms), iso(d.last_seen_ms), d.timeout_ms / 1000, d.reason,
				quoted(d.group)].join(",")));
			setText(button, `${count(lines.length - 1)} of ${count(page.total)}`);
		}
		const url = URL.createObjectURL(new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
		element("a", { href: url, download: `heartwheel-devices-${new Date().toISOString().slice(0, 16).replace(":", "-")}.csv` }).click();
		setTimeout(() => URL.revokeObjectURL(url), 60000);
		setText(button, "CSV");
	} catch (error) {
		setText(button, "CSV: try again");
		announce(error.message);
	}
	button.disabled = false;
}

export function start(open) {
	onOpen = open;
	filters.search.addEventListener("input", () => {
		keepFilters(); // at once: whatever asks meanwhile asks for it
		clearTimeout(typed);
		typed = setTimeout(changed, 150);
	});
	for (const key of ["state", "group", "sort"])
		filters[key].addEventListener("change", changed);
	for (const [id, first, second] of [["by-id", "id", "id-back"], ["by-since", "newest", "oldest"]])
		byId(id).firstChild.addEventListener("click", () => {
			filters.sort.value = filters.sort.value === first ? second : first;
			changed();
		});
	byId("prefix").addEventListener("click", () => {
		const { query: all } = here();
		all.delete("prefix");
		go(to("overview", "", all));
	});
	byId("csv").addEventListener("click", save);
	grid.addEventListener("scroll", draw, { passive: true });
	grid.addEventListener("keydown", onKey);
	space.addEventListener("click", (event) => {
		const row = event.target.closest(".row"), d = row && at(Number(row.dataset.index));
		if (!d)
			return;
		active = Number(row.dataset.index);
		draw();
		onOpen(d.id);
	});
	addEventListener("resize", draw);
	addEventListener("keydown", (event) => {
		if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog"))
			return;
		event.preventDefault();
		if (here().view !== "overview")
			go(to("overview"));
		setTimeout(() => filters.search.focus(), 0);
	});
}
