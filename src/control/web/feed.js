// SPDX-License-Identifier: MIT
// What just happened. Transitions that belong together (the same change, of the same group, within a second of one another)
// are one entry that opens. The list is one stop of the tab key; arrows go through it.

import { ask, because, byId, clock, count, element, middle, moment, visible } from "./text.js";

const ENTRIES = 60, KEPT = 5000, TOGETHER_MS = 1000, LATE_MS = 5000, BUNDLE = 4, OPENED = 200;
const feed = byId("feed");
let all = [], known = new Set(), opened = new Set(), cut = false, onOpen; // `all`: the newest first; `cut`: there were older ones
const renewals = new Set(); // of each that is under way: what has come since it began

const key = (d) => `${d.seq} ${d.id}`;

// An entry for each transition, or for those that belong together.
function entries() {
	const out = [], last = new Map();
	for (const d of all) {
		const kind = `${d.state} ${d.reason} ${d.group}`, e = last.get(kind);
		if (e && e.all[e.all.length - 1].since_ms - d.since_ms <= TOGETHER_MS) {
			e.all.push(d);
			continue;
		}
		if (out.length > ENTRIES)
			break;
		const made = { all: [d] };
		last.set(kind, made);
		out.push(made);
	}
	return out.slice(0, ENTRIES).flatMap((e) => (e.all.length >= BUNDLE ? [e] : e.all.map((d) => ({ all: [d] }))));
}

function device(d, fresh) {
	return element("li", { class: `${d.state}${fresh.has(key(d)) ? " new" : ""}` },
		element("span", { class: "dot" }), element("time", { title: moment(d.since_ms) }, clock(d.since_ms)),
		element("button", { class: "link", type: "button", tabIndex: -1, "data-key": key(d), onclick: () => onOpen(d.id) }, middle(visible(d.id))),
		element("span", { class: "what" }, element("span", { class: "state" }, d.state), ` ${because(d.reason)}`));
}

// Whether what was left out may belong to the entry that this one is the oldest of.
const isCut = (oldest) => cut && oldest.since_ms - all[all.length - 1].since_ms <= TOGETHER_MS;

function within(ms) {
	return ms < 1000 ? "within 1 s" : `within ${Math.ceil(ms / 1000)} s`;
}

function bundle(e, fresh) {
	const d = e.all[0], oldest = e.all[e.all.length - 1], id = `bundle ${key(oldest)}`, isOpen = opened.has(id);
	const toggle = () => {
		if (!opened.delete(id))
			opened.add(id);
		draw(new Set());
	};
	const head = element("li", { class: `${d.state} bundle${fresh.has(key(d)) ? " new" : ""}` },
		element("span", { class: "dot" }), element("time", { title: moment(oldest.since_ms) }, clock(d.since_ms)),
		element("button", { class: "link", type: "button", tabIndex: -1, "data-key": id, "aria-expanded": isOpen, onclick: toggle },
			middle(`${count(e.all.length)}${isCut(oldest) ? " or more" : ""} of ${visible(d.group)}`)),
		element("span", { class: "what" }, element("span", { class: "state" }, d.state), ` ${within(d.since_ms - oldest.since_ms)}, ${because(d.reason)}`));
	if (!isOpen)
		return [head];
	const rest = e.all.length - OPENED;
	return [head, ...e.all.slice(0, OPENED).map((one) => device(one, fresh)), ...(rest > 0 ? [element("li", { class: "note" },
		`… and ${count(rest)} more; the table has all`)] : [])];
}

function buttons() {
	return [...feed.querySelectorAll("button")];
}

function rove(to) {
	for (const b of buttons())
		b.tabIndex = b === to ? 0 : -1;
}

function draw(fresh) {
	const at = feed.contains(document.activeElement) ? document.activeElement.dataset.key : null, top = feed.scrollTop;
	feed.replaceChildren(...entries().flatMap((e) => (e.all.length > 1 ? bundle(e, fresh) : [device(e.all[0], fresh)])));
	feed.scrollTop = top;
	const again = at === null ? null : buttons().find((b) => b.dataset.key === at);
	rove(again ?? buttons()[0]);
	again?.focus({ preventScroll: true });
	byId("feed-note").hidden = feed.children.length > 0;
}

// Transitions, oldest first. What is known is passed over: each comes twice while Redis is late, before it has a place in
// the stream and with it, and both may come at once. What is older than all that is here, where older ones were left out, may
// be one of those, and what is much older than the newest came late: then `isPast`, and what is here is to be renewed.
// `fresh`: those that are new.
export function add(transitions) {
	const oldest = cut && all.length > 0 ? all[all.length - 1].since_ms : -Infinity, fresh = [];
	const newest = all.length > 0 ? all[0].since_ms : -Infinity;
	let isPast = false;
	for (const d of transitions) {
		const isKnown = known.has(key(d)), isOld = d.since_ms < oldest;
		isPast ||= !isKnown && (isOld || d.since_ms < newest - LATE_MS);
		if (isKnown || isOld)
			continue;
		known.add(key(d));
		fresh.push(d);
	}
	for (const one of renewals)
		for (const d of fresh) // one by one: so many are too many for a call
			one.push(d);
	all = fresh.slice().reverse().concat(all);
	cut ||= all.length > KEPT;
	for (const d of all.splice(KEPT))
		known.delete(key(d));
	if (fresh.length)
		draw(new Set(fresh.map(key)));
	return { fresh, isPast };
}

// All anew, newest first, at most `limit`; what happens while it is read stays.
export async function renew(limit) {
	const meanwhile = [];
	renewals.add(meanwhile);
	try {
		const { transitions, complete } = await ask(`v1/transitions?limit=${limit}`);
		cut = !complete;
		all = transitions.slice(0, KEPT);
		known = new Set(all.map(key));
		draw(new Set());
	} finally {
		renewals.delete(meanwhile);
	}
	add(meanwhile);
}

export function start(open) {
	onOpen = open;
	feed.addEventListener("keydown", (event) => {
		const some = buttons(), i = some.indexOf(document.activeElement);
		const to = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: some.length - 1 }[event.key];
		if (i < 0 || to === undefined || !some[to])
			return;
		event.preventDefault();
		rove(some[to]);
		some[to].focus();
	});
}
