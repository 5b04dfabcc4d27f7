// SPDX-License-Identifier: MIT
// The part of the last hour before the monitor's first sample, from heartwheel-history. That may be away, be slow, refuse, or
// know only some of it: a count that it does not know stays null, and explain() says why. Nothing else on the page waits.

import { ask, clock, isAway } from "./text.js";

const HOUR_MS = 3600000, STEP_MS = 10000, AGAIN_MS = 60000;
let first = null; // the monitor's first sample; null: it has the whole hour
let counts = [], asked = false, failed = "", readTo = null, nextAt = 0;

export const known = () => counts;

const hasAny = () => counts.some((c) => c.online !== null);

// One line below the charts; "": nothing is missing.
export function explain() {
	if (first === null)
		return "";
	if (failed)
		return `From ${clock(first)} on: ${failed}.`;
	if (!asked)
		return `From ${clock(first)} on; the time before is being loaded from heartwheel-history.`;
	if (!hasAny())
		return `From ${clock(first)} on: heartwheel-history has no counts for the time before.`;
	const late = readTo === null ? "" : `, which has read as far as ${clock(readTo)}`;
	return `Until ${clock(first)} from heartwheel-history${late}.`;
}

const refusal = (error) => ([401, 403].includes(error.status) ? `no right to ask heartwheel-history (${error.status})`
	: isAway(error) ? "heartwheel-history's answer is malformed"
	: error.message.startsWith("heartwheel-history") ? error.message : `heartwheel-history: ${error.message}`);

async function read(until) {
	const wanted = new URLSearchParams({ since: until - HOUR_MS, until, step: `${STEP_MS}ms` });
	const answer = await ask(`v1/history/counts?${wanted}`, 15000, { keepToken: true });
	if (first !== until)
		return;
	const last = answer.counts[answer.counts.length - 1].time_ms;
	counts = answer.counts;
	asked = true;
	failed = "";
	readTo = answer.as_of_ms !== null && answer.as_of_ms >= last ? null : answer.as_of_ms ?? until - HOUR_MS;
	// Of the time right before, another node may still tell that it saw.
	nextAt = readTo !== null ? 0 : counts.every((c) => c.online !== null) ? Infinity : performance.now() + AGAIN_MS;
}

// With each answer of samples: `ms` is the first one, or null if none is missing before it; `isThere`: heartwheel-history has a
// socket. `changed` is called when there is something new.
export async function renew(ms, isThere, changed) {
	if (ms !== first) { // another run of the monitor
		first = ms;
		counts = [];
		asked = false;
		failed = "";
		nextAt = 0;
	}
	if (first === null || nextAt > performance.now())
		return;
	if (!isThere) {
		if (!asked)
			failed = "the monitor keeps no earlier counts, and heartwheel-history is not running";
		return;
	}
	nextAt = Infinity; // one request at a time
	await read(ms).catch((error) => {
		if (first !== ms)
			return;
		nextAt = performance.now() + AGAIN_MS;
		if (!asked)
			failed = refusal(error);
	});
	changed();
}
