// SPDX-License-Identifier: MIT
// The page of one device: what the monitor knows of it now, and what heartwheel-history knows of its past. Where that is
// away, the page says so and shows what the monitor itself remembers. A transition is shown as it happens.

import * as bars from "./bars.js";
import * as gaps from "./gaps.js";
import { to } from "./route.js";
import { UNKNOWN, ago, ask, because, count, element, isAway, moment, now, oldness, setClass, setText, span, visible } from "./text.js";

const FIRST = 10, MORE = 100, HISTORY_MS = 30000, SOON_MS = 1500;
let page = null; // what is shown; null: another page

const isMine = (mine) => page === mine;

// Why a device's state may be from before; "": it is not. It says the same as the page does above.
export function doubt(s) {
	if (!s?.blind)
		return "";
	if (s.blind_cause === "deaf" || s.blind_cause === "upstream")
		return "The monitor cannot hear some devices: their states are from before.";
	return s.judges_in_ms === null ? "No device is judged now: the monitor cannot hear devices. This state is from before."
		: "No device is judged yet: devices have time to report. This state is from before.";
}

// --- its head and what it reports

const FROM = { device: ", for which the device asks", inventory: ", from the inventory", learned: ", learned" };
const upTo = (n) => n < 63 ? n : "63 or more"; // the API counts no further

// What was learned from the gaps between its heartbeats; nothing: its group does not learn.
function learned(d) {
	if (!("learned_ms" in d))
		return [];
	const timeout = d.learned_ms === 0 ? "nothing yet: too few heartbeats, or too short a time" : `${span(d.learned_ms)}${d.timeout_from === "learned" ? "" : ", not in force"}`;
	return [["Learned", timeout], ...(d.gaps_seen ? [["Gaps", `${upTo(d.gaps_seen)}: median ${span(d.median_gap_ms)}, largest ${span(d.largest_gap_ms)}; ${upTo(d.learned_mistakes)} longer than the learned timeout`]] : [])];
}

// What the inventory says.
function described(d) {
	const all = "name" in d ? [["Name", visible(d.name)]] : [];
	if ("labels" in d)
		all.push(["Labels", visible(Object.entries(d.labels).map(([name, value]) => `${name}=${value}`).join(", "))]);
	if ("note" in d)
		all.push(["Note", visible(d.note)]);
	return all;
}

function facts(d) {
	const all = [...described(d), ["Reason", because(d.reason)], ["Last seen", d.last_seen_ms ? `${moment(d.last_seen_ms)}, ${ago(d.last_seen_ms)}` : "never"],
		["Timeout", `${span(d.timeout_ms)}${FROM[d.timeout_from] ?? ""}`], ...learned(d)];
	if ("expected_since_ms" in d) // it was never heard
		return [...all, ["Expected", `since ${moment(d.expected_since_ms)}`]];
	if (d.due_in_ms !== null)
		all.push([d.state === "online" ? "Offline in" : "Forgotten in", d.due_in_ms > 0 ? span(d.due_in_ms) : "overdue"]);
	all.push(["Wheel", d.level === null ? "not in the wheel: waiting for the verdict"
		: `level ${d.level}, slot ${d.slot}${d.rounds ? `, ${d.rounds} rounds` : ""}`]);
	if ("node" in d)
		all.push(["Owner", d.node ?? "no node"]);
	return all;
}

function reported(d) {
	const all = [];
	for (const [key, name, unit] of [["battery", "Battery", " %"], ["rssi", "RSSI", " dBm"], ["ip", "IP", ""], ["version", "Version", ""]])
		if (key in d)
			all.push([name, visible(`${d[key]}${unit}`)]);
	if ("uptime" in d)
		all.push(["Uptime", span(d.uptime * 1000)]);
	if ("data" in d)
		all.push(["Data", visible(JSON.stringify(d.data))]);
	return all;
}

// --- its parents, and the devices behind it

const CHILDREN = 50;
const relative = (d) => [element("a", { href: to("device", d.id) }, visible(d.id)), ` (${d.state ?? "not known"})`];
const relatives = (all) => all.flatMap((d, i) => [i ? ", " : "", ...relative(d)]);

async function readFamily(p) {
	const { parents, children } = p.device;
	const behind = children ? (await ask(`v1/devices?${new URLSearchParams({ parent: p.id, sort: "id", limit: CHILDREN })}`)).devices : [];
	const said = JSON.stringify([parents, children, behind.map((d) => [d.id, d.state])]);
	if (!isMine(p) || said === p.family.dataset.said)
		return;
	p.family.dataset.said = said;
	p.family.replaceChildren(...(parents.length ? [element("p", {}, "Parents: ", ...relatives(parents))] : []),
		...(children ? [element("p", {}, children === 1 ? "1 device is behind it: " : `${count(children)} devices are behind it: `, ...relatives(behind), children > behind.length ? ", …" : "")] : []));
}

// Elements stay where they are: a text that somebody marks stays marked.
function fillList(list, all) {
	const names = all.map(([name]) => name).join("\n");
	if (list.dataset.names !== names)
		list.replaceChildren(...all.flatMap(([name]) => [element("dt", {}, name), element("dd", {})]));
	list.dataset.names = names;
	all.forEach(([, value], i) => setText(list.children[2 * i + 1], value));
}

function showState(p) {
	const d = p.device, state = d?.state ?? (p.gone ? "forgotten" : "…"), since = d?.since_ms ?? p.past?.since_ms;
	setText(p.state, p.gone && !p.past ? "not known" : state);
	const sure = !p.blind && !p.away; // what is from before has no colour
	p.state.className = `pill ${sure && state === "online" ? "good" : sure && state === "offline" ? "bad" : ""}`;
	setText(p.since, since ? `${state} for ${span(now() - since)}, since ${moment(since)}` : "");
	p.aside.hidden = !p.gone && !p.blind && !p.away;
	p.aside.className = p.gone && p.past ? "note aside" : "trouble";
	setText(p.aside, p.away ? d ?? p.past ? "The monitor does not answer: this is its last answer." : "The monitor does not answer: the device's state is not known now."
		: p.gone ? p.past ? "The monitor does not know this device now; heartwheel-history does."
			: "The monitor knows no device with this id: it was forgotten, or the address is wrong."
			: p.blind);
	p.group.hidden = !(d ?? p.past);
	if (d ?? p.past) {
		const name = (d ?? p.past).group;
		setText(p.group.lastChild, visible(name));
		p.group.lastChild.href = to("group", name);
	}
	p.nowCard.hidden = !d;
	p.gapCard.hidden = !d || "expected_since_ms" in d;
	if (!d)
		return;
	fillList(p.facts, facts({ ...d, due_in_ms: d.due_in_ms === null || !sure ? null : d.due_in_ms - (now() - p.asked) }));
	fillList(p.reported, reported(d));
	p.nothing.hidden = p.reported.children.length > 0;
	if (!p.away) // a page that is not visible does not draw how the silence grows
		gaps.show(p.gaps, d, now());
}

// --- transitions and outages

const ofMonitor = (t) => ({ seq: t.seq, at_ms: t.since_ms, state: t.state, reason: t.reason });
const ofHistory = (t) => ({ seq: t.seq, at_ms: t.time_ms, state: t.state, reason: t.reason, found: t.found });

// Those that are known, by their numbers: the same one comes from both.
function learn(p, transitions) {
	for (const t of transitions)
		if (t.state && !p.transitions.has(t.seq))
			p.transitions.set(t.seq, t);
}

function transitionItem(t) {
	return element("li", { class: t.state }, element("span", { class: "dot" }), element("time", {}, moment(t.at_ms)),
		element("span", { class: "state" }, t.state),
		element("span", { class: "what" }, t.found ? "restored: the entry was lost" : because(t.reason)));
}

function showTransitions(p) {
	const all = [...p.transitions.values()].sort((a, b) => b.seq - a.seq).slice(0, p.room);
	p.list.replaceChildren(...all.map(transitionItem));
	p.none.hidden = all.length > 0;
	setText(p.none, p.kept === null ? "Looking …" : p.unheard ? UNKNOWN : "None in memory.");
	p.more.hidden = !(p.next || p.transitions.size > p.room);
}

// From the transitions alone, where there is no history.
function guessed(p) {
	const out = [];
	let open = null;
	for (const t of [...p.transitions.values()].sort((a, b) => a.seq - b.seq)) {
		if (t.state === "offline" && !open)
			out.unshift(open = { from_ms: t.at_ms, to_ms: null, reason: t.reason });
		else if (t.state !== "offline" && open) {
			open.to_ms = t.at_ms;
			open = null;
		}
	}
	return out;
}

// The history may be a moment behind: the last outage is as the monitor says.
function corrected(p) {
	const all = p.kept ? p.outages.map((o) => ({ ...o })) : guessed(p), d = p.device;
	if (d?.state === "offline" && !all.some((o) => o.from_ms === d.since_ms))
		all.unshift({ from_ms: d.since_ms, to_ms: null, reason: d.reason });
	if (d?.state === "online")
		for (const o of all)
			if (o.to_ms === null && o.from_ms < d.since_ms)
				o.to_ms = d.since_ms;
	return all;
}

function showOutages(p) {
	const all = corrected(p).slice(0, p.outageRoom);
	p.outageTable.hidden = all.length === 0;
	p.lasting = null;
	p.outageRows.replaceChildren(...all.map((o) => {
		const length = element("td", { class: "length" }, span((o.to_ms ?? now()) - o.from_ms));
		if (o.to_ms === null)
			p.lasting = { length, from_ms: o.from_ms };
		return element("tr", { class: o.to_ms === null ? "lasts" : "" }, element("td", {}, moment(o.from_ms)),
			element("td", {}, o.to_ms === null ? "lasts" : moment(o.to_ms)), length, element("td", { class: "wide" }, because(o.reason)));
	}));
	p.noOutage.hidden = all.length > 0;
	setText(p.noOutage, p.kept === null ? "Looking …" : p.unheard ? UNKNOWN : p.kept ? "None is stored." : "None in memory.");
	p.moreOutages.hidden = !(p.kept && (p.nextOutages || p.outages.length > p.outageRoom));
}

function show(p) {
	showState(p);
	showTransitions(p);
	showOutages(p);
	p.pastNote.hidden = p.kept !== false;
	setText(p.old, p.kept && p.past ? oldness(p.past) : "");
	p.old.hidden = !p.old.textContent;
	p.legend.hidden = !p.kept || !p.past;
	setClass(p.barCard, "later", p.kept === false);
}

// --- reading

async function readDevice(p) {
	const path = `v1/devices/${encodeURIComponent(p.id)}`, asked = now();
	try {
		const d = await ask(path);
		p.device = d;
		p.gone = p.away = false;
		p.asked = now();
		gaps.add(p.gaps, d, asked, !p.blind);
		readFamily(p).catch(() => {}); // the page says above if the monitor is away
	} catch (error) {
		p.away = isAway(error) || error.status >= 500;
		p.gone = error.status === 404 || error.status === 400;
		if (p.gone)
			p.device = null;
	}
	if (isMine(p))
		showState(p);
}

async function readEvents(p) {
	try {
		const { transitions } = await ask(`v1/devices/${encodeURIComponent(p.id)}/events?limit=${MORE}`);
		learn(p, transitions.map(ofMonitor));
	} catch {
		// It is not known, or the monitor is away: that is said above.
	}
}

function forgetPast(p, error) {
	p.kept = error.status === 404 && error.message === "no such device";
	p.past = null;
	p.outages = [];
	p.next = p.nextOutages = null;
	p.unheard = isAway(error);
	setText(p.pastNote, p.kept ? "" : p.unheard ? UNKNOWN : `No history: ${error.message}. This page shows what the monitor has in memory; ` +
		"with heartwheel-history it shows 90 days as bars, and outages over years.");
	p.day.replaceChildren();
	p.quarter.replaceChildren();
	p.unknown.hidden = !p.kept;
}

// New ones in front of those that are here already; if there is a hole between, from the start.
async function readPast(p) {
	try {
		const path = `v1/history/devices/${encodeURIComponent(p.id)}?limit=${MORE}`;
		const [past, out] = await Promise.all([ask(path),
			ask(`v1/history/outages?${new URLSearchParams({ device: p.id, limit: MORE })}`)]);
		if (!isMine(p))
			return;
		if (!p.kept || !past.transitions.some((t) => p.transitions.has(t.seq))) {
			p.next = past.next ?? null;
			p.outages = [];
		}
		const known = new Set(out.outages.map((o) => o.from_ms)), older = p.outages.filter((o) => !known.has(o.from_ms));
		if (older.length === 0)
			p.nextOutages = out.next ?? null;
		p.outages = out.outages.concat(older);
		p.past = past;
		p.kept = true;
		p.unheard = false;
		p.unknown.hidden = true;
		learn(p, past.transitions.map(ofHistory));
		await bars.show(p.id, p.day, p.quarter, now(), !p.blind && !p.away, () => isMine(p));
	} catch (error) {
		if (isMine(p) && (!isAway(error) || p.kept === null))
			forgetPast(p, error);
	}
}

async function readTasks(p) {
	try {
		const [own, others] = await Promise.all([{}, { watched: 1 }].map((more) =>
			ask(`v1/tasks?${new URLSearchParams({ receiver: p.id, limit: MORE, ...more })}`)));
		const tasks = own.tasks.concat(others.tasks);
		p.taskCard.hidden = false;
		p.oldTasks.hidden = true;
		p.noTask.hidden = tasks.length > 0;
		p.taskTable.hidden = tasks.length === 0;
		p.taskRows.replaceChildren(...tasks.map((t) => element("tr", {}, element("td", {}, visible(t.action ?? t.topic ?? "–")),
			element("td", {}, `${t.state}`), element("td", {}, moment(t.at_ms ?? t.sent_ms ?? t.created_ms)),
			element("td", { class: "wide" }, visible(t.sender ?? "")))));
		setClass(p.taskCard, "old", false);
	} catch (error) {
		p.oldTasks.hidden = isAway(error); // which is said above
		setText(p.oldTasks, `${error.message}: this is the last answer.`);
		setClass(p.taskCard, "old", true);
	}
}

async function readAll(p) {
	await Promise.all([readDevice(p), readEvents(p), readPast(p), readTasks(p)]);
	if (isMine(p))
		show(p);
}

function soon(p) {
	clearTimeout(p.timer);
	p.timer = setTimeout(async () => {
		if (!isMine(p))
			return;
		if (!document.hidden)
			await readAll(p);
		if (isMine(p))
			soon(p);
	}, p.hurry ? SOON_MS : HISTORY_MS);
	p.hurry = false;
}

async function moreTransitions(p) {
	p.room += MORE;
	if (p.next && p.transitions.size < p.room) {
		const past = await ask(`v1/history/devices/${encodeURIComponent(p.id)}?limit=${MORE}&after=${p.next}`);
		learn(p, past.transitions.map(ofHistory));
		p.next = past.next ?? null;
	}
	showTransitions(p);
}

async function moreOutages(p) {
	p.outageRoom += MORE;
	if (p.nextOutages && p.outages.length < p.outageRoom) {
		const out = await ask(`v1/history/outages?${new URLSearchParams({ device: p.id, limit: MORE, after: p.nextOutages })}`);
		p.outages = p.outages.concat(out.outages);
		p.nextOutages = out.next ?? null;
	}
	showOutages(p);
}

// --- the page

export function card(title, ...children) {
	return element("section", { class: "card", "aria-label": title }, element("h2", {}, title), ...children);
}

export function table(rows, names) {
	return element("div", { class: "scroll" }, element("table", { class: "list" }, element("thead", {}, element("tr", {},
		...names.map(([name, kind]) => element("th", { scope: "col", class: kind ?? "" }, name)))), rows));
}

function make(id) {
	const p = { id, device: null, gone: false, away: false, blind: "", asked: 0, past: null, kept: null, unheard: false, transitions: new Map(), room: FIRST,
		next: null, outages: [], outageRoom: FIRST, nextOutages: null, lasting: null, timer: null, hurry: false };
	const part = (name, tag, options = {}) => { p[name] = element(tag, options); return p[name]; };
	const again = (f) => () => f(p).catch(() => {});
	part("state", "span", { class: "pill" });
	part("since", "p", { class: "note" });
	part("aside", "p", { hidden: true });
	part("facts", "dl", { class: "facts" });
	part("reported", "dl", { class: "facts" });
	part("nothing", "p", { class: "note" }).textContent = "Its heartbeats carry no values.";
	part("day", "div");
	part("quarter", "div");
	part("pastNote", "p", { class: "note", hidden: true });
	part("unknown", "p", { class: "note", hidden: true }).textContent = "heartwheel-history has nothing about this device yet.";
	part("old", "p", { class: "note warn", hidden: true });
	part("outageRows", "tbody");
	part("noOutage", "p", { class: "note" });
	part("list", "ol", { class: "lately" });
	part("none", "p", { class: "note" });
	part("taskRows", "tbody");
	part("noTask", "p", { class: "note" }).textContent = "No task waits for it.";
	part("oldTasks", "p", { class: "note warn", hidden: true });
	part("family", "div", { class: "family" });
	p.group = element("p", { class: "note" }, "Group ", element("a", { href: "#/" }));
	p.outageTable = table(p.outageRows, [["From"], ["To"], ["For"], ["Reason", "wide"]]);
	p.taskTable = table(p.taskRows, [["Action"], ["State"], ["For when"], ["From", "wide"]]);
	p.more = element("button", { type: "button", class: "plain", hidden: true, onclick: again(moreTransitions) }, "Earlier ones");
	p.moreOutages = element("button", { type: "button", class: "plain", hidden: true, onclick: again(moreOutages) }, "Earlier ones");
	p.legend = bars.legend();
	p.gaps = gaps.make();
	p.gapCard = card("Gaps between heartbeats", ...p.gaps.elements);
	p.nowCard = card("Now", p.facts, p.family, element("h3", {}, "What it reports"), p.reported, p.nothing);
	p.barCard = card("Online and offline", p.pastNote, p.old, p.unknown, p.day, p.quarter, p.legend,
		element("p", { class: "note" }, `Times are of ${Intl.DateTimeFormat().resolvedOptions().timeZone ?? "this browser"}.`));
	p.taskCard = card("Tasks", p.oldTasks, p.taskTable, p.noTask);
	p.taskCard.hidden = true; // until heartwheel-tasks has answered
	return p;
}

// Elements for the page of a device, which fill themselves and live until leave().
export function enter(id, blind) {
	const p = page = make(id);
	p.blind = blind;
	show(p);
	readAll(p).then(() => { if (isMine(p)) soon(p); });
	return [element("div", { class: "about" }, element("h2", { tabIndex: -1 }, visible(id)), p.state, p.group, p.since), p.aside,
		element("div", { class: "columns" },
			element("div", {}, p.barCard, p.gapCard, card("Outages", p.outageTable, p.noOutage, p.moreOutages), p.taskCard),
			element("div", {}, p.nowCard, card("Transitions", p.list, p.none, p.more)))];
}

export function leave() {
	clearTimeout(page?.timer);
	page = null;
}

// Transitions of any devices, as they happen.
export function change(transitions) {
	const mine = page ? transitions.filter((t) => t.id === page.id) : [];
	if (mine.length === 0)
		return;
	const p = page, last = mine[mine.length - 1];
	learn(p, mine.map(ofMonitor));
	if (last.state === "forgotten") {
		p.device = null;
		p.gone = true;
		p.past = { ...(p.past ?? {}), since_ms: last.since_ms, group: last.group };
	} else if (p.device)
		p.device = { ...p.device, ...last };
	show(p);
	readDevice(p);
	p.hurry = true;
	soon(p);
}

// The monitor's state; null: it does not answer.
export function status(s) {
	if (!page)
		return;
	page.away = !s;
	page.blind = doubt(s);
	if (s && !page.gone) // one that comes is told of
		readDevice(page);
	else
		showState(page);
}

// Each second.
export function tick() {
	if (!page)
		return;
	showState(page);
	if (page.lasting)
		setText(page.lasting.length, span(now() - page.lasting.from_ms));
}
