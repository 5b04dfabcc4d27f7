// SPDX-License-Identifier: MIT
// The open incidents of heartwheel-alert, on top of the overview. A click on a sentence shows the incident's devices, each below
// its parent, and what each receiver was sent. Silenced and acknowledged incidents are grey and stand last; none is hidden.

import { to } from "./route.js";
import { announce, ask, byId, clock, count, element, isAway, middle, moment, now, setClass, setText, span, visible } from "./text.js";
import { stream } from "./token.js";

const SHOWN = 100, MEMBERS = 1000, BELOW = 200, SOON_MS = 300, AGAIN_MS = 3000, PATIENCE_MS = 15000, LOOK = "heartwheel-look";
const LENGTHS = [["1 hour", 3600e3], ["4 hours", 4 * 3600e3], ["1 day", 86400e3], ["1 week", 7 * 86400e3], ["until it is online", 0]];
const shown = new Map(); // id: the parts of an incident's element
let there = false, mayWrite = true, known = false, asOf = 0, asked = 0, timer = null, quit = null;

// --- the last look of this viewer

// `since`: the newest incident of the look before, or when that look ended; null: this is the first look. `newest`: of this look.
let since = null, newest = 0;

function beginLook() {
	newest = 0;
	try {
		since = Number(localStorage.getItem(LOOK)) || null;
	} catch {
		since = null; // the browser stores nothing for this page
	}
}

function endLook() {
	try {
		if (known)
			localStorage.setItem(LOOK, `${Math.max(since ?? 0, newest || Math.round(now()))}`);
	} catch {
		// as above
	}
}

// --- changes

const change = (method, path, body) => ask(path, PATIENCE_MS, { method, ...(body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }) });

// `f` is a request; its error stands at the incident.
async function attempt(p, f) {
	try {
		await f();
		p.form.replaceChildren();
		setText(p.error, "");
	} catch (error) {
		setText(p.error, error.message);
	}
	p.error.hidden = !p.error.textContent;
	await look();
}

// A term of a matcher. In a matcher a quote cannot be a part of the text: ? matches it.
function term(name, value) {
	const text = `${name}:${value.replace(/["\n]/g, "?")}`;
	return /[ \t]/.test(text) ? `"${text}"` : text;
}

const matcher = (i) => (i.kind === "device" && i.device ? term("id", i.device) : i.group ? term("group", i.group) : "");

function field(name, input) {
	return element("label", { class: "field" }, element("span", {}, name), " ", input);
}

function openForm(p, title, fields, send) {
	const cancel = element("button", { type: "button", class: "plain", onclick: () => p.form.replaceChildren() }, "Cancel");
	p.form.replaceChildren(...fields, element("button", { type: "submit", class: "plain" }, title), cancel);
	p.form.onsubmit = (event) => { event.preventDefault(); attempt(p, send); };
	fields[0].querySelector("input, select").focus();
}

const input = () => element("input", { type: "text", maxLength: 200, autocomplete: "off" });

function acknowledge(p) {
	const note = input();
	openForm(p, "Acknowledge", [field("Note", note)], () => change("POST", `v1/incidents/${p.id}/ack`, { note: note.value }));
}

function silence(p) {
	const length = element("select", {}, ...LENGTHS.map(([name, ms]) => element("option", { value: `${ms}` }, name))), reason = input();
	openForm(p, "Silence", [field("For", length), field("Reason", reason)], () => change("POST", "v1/silences", { match: matcher(p.last), reason: reason.value,
		...(Number(length.value) ? { until: Math.round(now() + Number(length.value)) } : { until_online: true }) }));
	p.form.append(element("p", { class: "note" }, `No new message about ${matcher(p.last)}${p.last.unreachable ? " and what is behind it" : ""}. The incident stays here.`));
}

// --- the devices of an incident

function branch(all, below, parents) {
	const some = all.slice(0, BELOW);
	return element("ul", { class: "tree" }, ...some.map((m) => element("li", {}, element("a", { href: to("device", m.id), class: m.class === "unreachable" || m.silenced ? "soft" : "" }, ...(m.name ? [`${visible(m.name)} (`, middle(visible(m.id)), ")"] : [middle(visible(m.id))])),
		element("span", { class: "note" }, ` ${m.class}${m.since_ms ? ` since ${clock(m.since_ms)}` : ""}${m.silenced ? ", silenced" : ""}`),
		...(below.has(m.id) && !parents.has(m.id) ? [branch(below.get(m.id), below, new Set([...parents, m.id]))] : []))),
	...(all.length > BELOW ? [element("li", { class: "note" }, `… and ${count(all.length - BELOW)} more`)] : []));
}

// Each member below its parent. The parent may be a member of a page that is not read, or of another incident.
function tree(i) {
	const byId = new Map(i.members.map((m) => [m.id, m])), below = new Map(), top = [];
	for (const m of i.members) {
		if (m.parent && !byId.has(m.parent))
			byId.set(m.parent, { id: m.parent, class: "offline" });
		if (m.parent)
			below.set(m.parent, [...(below.get(m.parent) ?? []), m]);
	}
	for (const m of byId.values())
		if (!m.parent)
			top.push(m);
	const order = (a, b) => below.has(b.id) - below.has(a.id) || (a.id < b.id ? -1 : 1);
	for (const all of below.values())
		all.sort(order);
	return branch(top.sort(order), below, new Set());
}

async function readMembers(p) {
	const i = await ask(`v1/incidents/${p.id}?limit=${MEMBERS}`), text = JSON.stringify(i);
	if (text === p.read)
		return;
	p.read = text;
	p.inside.replaceChildren(element("p", { class: "note" }, `Opened ${moment(i.opened_ms)}.${i.sent.length ? ` Sent: ${i.sent.map((s) => `${s.last} to ${s.receiver} at ${clock(s.at_ms)}`).join(", ")}.` : " No message was sent yet."}`),
		tree(i), ...(mayWrite ? [] : [element("p", { class: "note" }, `This page may only read. heartwheelctl ack ${p.id} acknowledges the incident.`)]), ...(i.next ? [element("p", { class: "note" }, `The first ${count(i.members.length)} of ${count(i.down + i.unreachable)}; GET /v1/incidents/ID has all.`)] : []));
}

const members = (p) => readMembers(p).catch((error) => { if (!isAway(error) && !p.read) p.inside.replaceChildren(element("p", { class: "note" }, error.message)); });

function toggle(p) {
	p.inside.hidden = !p.inside.hidden;
	p.sentence.setAttribute("aria-expanded", `${!p.inside.hidden}`);
	if (!p.inside.hidden)
		members(p);
}

// --- the list

const isQuiet = (i) => "by" in i || (i.silenced > 0 && i.silenced >= i.down);

function badges(i) {
	const all = [];
	if (since !== null && i.opened_ms > since)
		all.push(["new", "new"]);
	if (i.flapping)
		all.push(["flapping", "flapping"]);
	if ("by" in i)
		all.push(["", `acknowledged${i.by ? ` by ${visible(i.by)}` : ""}${i.note ? `: ${visible(i.note)}` : ""}`]);
	if (i.silenced)
		all.push(["", i.silenced >= i.down ? "silenced" : `${count(i.silenced)} of ${count(i.down)} silenced`]);
	return all;
}

function make(i) {
	const p = { id: i.id, read: "", said: "", inside: element("div", { class: "inside", hidden: true }), form: element("form", { class: "acts" }), badges: element("span", { class: "badges" }),
		error: element("p", { class: "trouble", role: "alert", hidden: true }), age: element("span", { class: "note" }) };
	const button = (text, f) => element("button", { type: "button", class: "plain", onclick: () => f(p) }, text);
	p.sentence = element("button", { type: "button", class: "link", "aria-expanded": "false", onclick: () => toggle(p) });
	p.ack = button("Acknowledge", acknowledge);
	p.unack = button("Take back", () => attempt(p, () => change("DELETE", `v1/incidents/${p.id}/ack`)));
	p.silence = button("Silence", silence);
	p.item = element("li", {}, element("div", { class: "line" }, element("span", { class: "dot" }), element("div", { class: "badges" }, p.sentence, p.badges, p.age), element("span", { class: "acts" }, p.ack, p.unack, p.silence)),
		p.error, p.form, p.inside);
	return p;
}

function fill(p, i) {
	const marks = badges(i), said = JSON.stringify(marks);
	p.last = i;
	setText(p.sentence, visible(i.sentence));
	if (said !== p.said)
		p.badges.replaceChildren(...marks.map(([kind, text]) => element("span", { class: `badge ${kind}` }, text)));
	p.said = said;
	p.item.className = `${i.kind}${isQuiet(i) ? " quiet" : ""}`;
	p.ack.hidden = !mayWrite || "by" in i;
	p.unack.hidden = !mayWrite || !("by" in i);
	p.silence.hidden = !mayWrite || !matcher(i) || isQuiet(i);
	if (!p.inside.hidden)
		members(p);
}

export function ages() {
	for (const p of shown.values())
		setText(p.age, `for ${span(Math.max(0, Math.floor((now() - p.last.since_ms) / 1000) * 1000))}`);
}

// Elements stay, so that an open one stays open and a form keeps its text.
function showList(incidents) {
	const list = byId("incident-list"), ids = new Set(incidents.map((i) => i.id)), fresh = [];
	for (const [id, p] of shown)
		if (!ids.has(id)) {
			p.item.remove();
			shown.delete(id);
		}
	for (const i of incidents) {
		if (!shown.has(i.id)) {
			shown.set(i.id, make(i));
			fresh.push(i);
		}
		newest = Math.max(newest, i.opened_ms);
		fill(shown.get(i.id), i);
	}
	const items = [...incidents].sort((a, b) => isQuiet(a) - isQuiet(b)).map((i) => shown.get(i.id).item);
	if (items.some((item, k) => item !== list.children[k])) {
		const focus = document.activeElement;
		list.append(...items);
		if (list.contains(focus))
			focus.focus({ preventScroll: true });
	}
	if (known && fresh.length)
		announce(`${visible(fresh[0].sentence)}${fresh.length > 1 ? `, and ${count(fresh.length - 1)} more` : ""}`);
	ages();
}

function ends(s) {
	return [s.until_ms ? `until ${moment(s.until_ms)}` : "", s.until_online ? "until the devices are online" : "", s.file ? "of monitor.conf" : ""].filter((t) => t).join(", ");
}

function showSilences(silences) {
	const box = byId("silences"), some = silences.filter((s) => s.in_force), said = JSON.stringify([some, mayWrite]);
	box.hidden = some.length === 0;
	if (box.dataset.said === said)
		return;
	box.dataset.said = said;
	setText(box.firstElementChild, some.length === 1 ? "1 silence" : `${count(some.length)} silences`);
	box.lastElementChild.replaceChildren(...some.map((s) => element("li", {}, element("span", {}, `${visible(s.match)}, ${ends(s)}${s.by ? `, by ${visible(s.by)}` : ""}${s.reason ? `: ${visible(s.reason)}` : ""} `),
		...(mayWrite && !s.file ? [element("button", { type: "button", class: "plain", onclick: () => change("DELETE", `v1/silences/${s.id}`).catch(tell).finally(look) }, "End")] : []))));
}

// --- what is known

// `text`: the one line about what is wrong; "": the incidents are up to date.
function say(text) {
	const old = text !== "" && shown.size > 0;
	setText(byId("incidents-note"), text ? `${old ? `As of ${clock(asOf)}: ` : ""}${text}.` : shown.size === 0 ? "None." : "");
	setClass(byId("incidents-note"), "warn", old);
	setClass(byId("incidents"), "old", text !== "");
	byId("incidents").hidden = false;
}

function tell(error) {
	if (isAway(error)) // the banner says it
		setClass(byId("incidents"), "old", true);
	else
		say(shown.size ? visible(error.message) : `Not known: ${visible(error.message)}`);
}

export async function look() {
	if (!there || document.hidden)
		return;
	const turn = ++asked;
	try {
		const [{ incidents, next }, { silences }] = await Promise.all([ask(`v1/incidents?limit=${SHOWN}`), ask("v1/silences")]);
		if (turn !== asked)
			return;
		showList(incidents);
		showSilences(silences);
		asOf = now();
		known = true;
		since ??= newest || Math.round(now());
		say("");
		if (next)
			setText(byId("incidents-note"), `The newest ${SHOWN}; heartwheelctl incidents lists all.`);
	} catch (error) {
		if (turn === asked)
			tell(error);
	}
}

function soon() {
	timer ??= setTimeout(() => { timer = null; look(); }, SOON_MS);
}

// Of the overview: whether heartwheel-alert has a socket, and whether this user's role allows changes.
export function status(alert, may) {
	const comes = alert && !there, differs = may !== mayWrite;
	there = alert;
	mayWrite = may;
	if (!alert)
		say("heartwheel-alert is not running");
	else if (comes || differs)
		look();
	if (comes)
		listen();
}

export const silent = () => setClass(byId("incidents"), "old", true);

// A hidden page holds no connection: a browser has few of them for all pages of one server.
let listening = false;
async function listen() {
	if (listening)
		return;
	listening = true;
	while (there) {
		quit = new AbortController();
		if (!document.hidden)
			await stream("v1/incidents/events", "", soon, quit.signal).catch(() => {});
		await new Promise((done) => setTimeout(done, AGAIN_MS));
	}
	listening = false;
}

export function start() {
	beginLook();
	addEventListener("pagehide", endLook);
	document.addEventListener("visibilitychange", () => {
		if (document.hidden) {
			endLook();
			quit?.abort();
		} else {
			beginLook();
			look();
		}
	});
}
