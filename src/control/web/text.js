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

export function setText(e, text) {
	if (e.textContent !== text)
		e.textContent = text;
}

export function setClass(e, name, on) {
	e.classList.toggle(name, on);
}

export async function ask(path) {
	const answer = await get(path, { signal: AbortSignal.timeout(15000) });
	const body = await answer.json();
	if (!answer.ok)
		throw new Error(body.error ?? `the monitor answers ${answer.status}`);
	return body;
}
