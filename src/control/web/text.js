// SPDX-License-Identifier: MIT
// Numbers, times and elements: what everything else on the page is made of. Nothing that a device said is ever HTML.

import { get } from "./token.js";

const counts = new Intl.NumberFormat("en");

export const count = (n) => counts.format(n);
export const byId = (id) => document.getElementById(id);

// The monitor's clock: a browser's may be wrong.
let skew = 0;
export const setNow = (ms) => { skew = ms - Date.now(); };
export const now = () => Date.now() + skew;

const units = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

// "350 ms", "13 s", "2 m 13 s", "5 d 3 h": the two largest units.
export function span(ms) {
	if (ms < 1000)
		return `${Math.max(0, Math.round(ms))} ms`;
	const s = Math.floor(ms / 1000);
	const i = units.findIndex(([size]) => s >= size);
	const rest = i < 3 ? Math.floor((s % units[i][0]) / units[i + 1][0]) : 0;
	return `${Math.floor(s / units[i][0])} ${units[i][1]}${rest ? ` ${rest} ${units[i + 1][1]}` : ""}`;
}

export const ago = (ms) => (now() - ms < 1000 ? "now" : `${span(Math.floor((now() - ms) / 1000) * 1000)} ago`);

export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

export const moment = (ms) => `${new Date(ms).toLocaleDateString("en-CA")} ${clock(ms)}`;

// Characters that make a text look like another one are written as heartwheelctl does: \u202e, \x07.
const UNSAFE = /[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const escaped = (c) => {
	const code = c.charCodeAt(0);
	return code < 0x80 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
};
export const visible = (text) => text.replace(UNSAFE, escaped);

export function element(name, options = {}, ...children) {
	const e = document.createElement(name);
	for (const [key, value] of Object.entries(options)) {
		if (key === "class")
			e.className = value;
		else if (key in e)
			e[key] = value;
		else
			e.setAttribute(key, value);
	}
	e.append(...children);
	return e;
}

const reasons = { heartbeat: "heard", timeout: "silent", will: "said goodbye", keyspace: "key", operator: "by an operator",
	forget_after: "offline for long",
	parent: "its parents are offline" };
export const because = (reason) => reasons[reason] ?? reason;

export function setText(e, text) {
	if (e.textContent !== text)
		e.textContent = text;
}

export function setClass(e, name, on) {
	e.classList.toggle(name, on);
}

// An id whose middle is left out where there is no room: the end tells ids apart that begin alike. Its text is whole.
const TAIL = 8;
export function middle(text) {
	const e = element("span", { class: "mid", title: text }, element("span"), element("span"));
	setMiddle(e, text);
	return e;
}
export function setMiddle(e, text) {
	if (e.dataset.text === text)
		return;
	const all = Array.from(text), at = all.length > TAIL ? all.length - TAIL : all.length;
	e.dataset.text = e.title = text;
	e.children[0].textContent = all.slice(0, at).join("");
	e.children[1].textContent = all.slice(at).join("");
}

// Its parts are boxes, of which a copy would make lines.
document.addEventListener("copy", (event) => {
	const selection = getSelection(), was = selection.toString();
	let text = was;
	for (const e of document.querySelectorAll(".mid")) {
		const [head, tail] = [...e.children].map((part) => part.textContent);
		if (tail && selection.containsNode(e, true))
			text = text.split(`${head}\n${tail}`).join(head + tail);
	}
	if (text === was)
		return;
	event.clipboardData.setData("text/plain", text);
	event.preventDefault();
});

// Said to who listens, rather than sees: once, when it becomes true.
export function announce(text) {
	setText(byId("announce"), text);
}

// Of an error that ask() threw: nobody answered, as the banner says; and what a page says of what it cannot show then.
export const isAway = (error) => error.status === undefined;
// That the daemon whose answers heartwheeld hands on is not there: what starts it is worth a word.
export const isNotRunning = (error) => error.message.endsWith(" is not running");
export const UNKNOWN = "Not known while the monitor does not answer.";

// What a page says above a report of heartwheel-history that lacks the latest; "": it has all.
const OLD_MS = 5000;
export const oldness = (answer) => (answer.as_of_ms && now() - answer.as_of_ms > OLD_MS
	? `The history is as of ${moment(answer.as_of_ms)} (${ago(answer.as_of_ms)}): heartwheel-history has not read later events.` : "");

const NOT_THERE = "The monitor does not answer: it was stopped, or the network is down";
const BEHIND = { "v1/tasks": "heartwheel-tasks", "v1/history": "heartwheel-history", "v1/incidents": "heartwheel-alert", "v1/silences": "heartwheel-alert", "v1/receivers": "heartwheel-alert" },
	ASIDE_MS = 3000;

// Why no answer has come: where it is one of the daemons behind the monitor that is silent, that answers for itself.
async function silence(path, error) {
	const name = BEHIND[/^v1\/\w+/.exec(path)?.[0]];
	const answers = name && error.name === "TimeoutError" && await get("v1/status", { signal: AbortSignal.timeout(ASIDE_MS) }).then(() => true, () => false);
	return answers ? Object.assign(new Error(`${name} does not answer`), { status: 503 }) : new Error(NOT_THERE);
}

// `options`: see get().
export async function ask(path, patience = 15000, options = {}) {
	const answer = await get(path, { ...options, signal: AbortSignal.timeout(patience) }).catch(async (error) => { throw await silence(path, error); });
	const body = answer.status === 204 ? {} : await answer.json().catch((error) => { if (answer.ok) throw error; return {}; }); // a proxy refuses in HTML
	if (!answer.ok)
		throw Object.assign(new Error(body.error ?? `the monitor answers ${answer.status}`), { status: answer.status });
	return body;
}
