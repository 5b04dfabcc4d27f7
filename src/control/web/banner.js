// SPDX-License-Identifier: MIT
// How the monitor itself is: over the full width, in plain words, with since when; in the title and the icon; and said once
// to who listens. While what is shown may be old its numbers are dimmed (body.dim).

import { ago, announce, byId, clock, count, now, setText, span } from "./text.js";

const causes = {
	stall: "the monitor stood still", standstill: "nothing arrives from the broker", suspend: "the machine was asleep",
	loss: "the broker drops messages for this monitor", barrier: "the monitor's own messages do not come back from the broker",
};
let said = "", silentSince = null, redisSince = null, redisSeen = false;

const seconds = (ms) => span(Math.ceil(ms / 1000) * 1000);

// A standstill that is over before anybody could act: no banner, no colour.
const BRIEF_MS = 1000;
export const isBrief = (s) => s.blind && !s.starting && s.judges_in_ms === null && s.blind_for_ms < BRIEF_MS &&
	["stall", "standstill"].includes(s.blind_cause);

function blindness(s) {
	const left = s.judges_in_ms === null ? "" : seconds(s.judges_in_ms), lasts = span(Math.floor(s.blind_for_ms / 1000) * 1000);
	if (left && s.starting)
		return `Starting: devices have ${left} to report; no device is judged until then.`;
	const since = `since ${clock(now() - s.blind_for_ms)}`, why = s.mqtt === "up" ? "" : ` (${s.mqtt})`;
	if (s.blind_cause === "deaf")
		return `Cannot hear some devices, ${since}: no message arrives on a group's topics; its devices are not judged.`;
	if (s.blind_cause === "upstream")
		return `Cannot hear some devices, ${since}: the bridge or gateway of a group is away; its devices are not judged.`;
	if (left)
		return `Heartbeats arrive again: devices have ${left} to report; no device has been judged ${since}.`;
	if (s.blind_cause === "link")
		return s.starting ? `Cannot hear devices: no broker connection since the start, ${lasts} ago; no device is judged.${why}`
			: `Cannot hear devices: broker connection lost ${lasts} ago (${since}); no device is judged.${why}`;
	return `Cannot hear devices: ${causes[s.blind_cause] ?? s.blind_cause}, for ${lasts} (${since}); no device is judged.`;
}

// The kind is said, not each second of it.
function say(kind, text) {
	if (said !== kind && !(said === "" && kind === "watching"))
		announce(text);
	said = kind;
}

function put(id, text, kind) {
	const e = byId(id);
	e.hidden = !text;
	setText(e, text);
	e.className = `banner ${kind}`;
}

function pill(text, kind) {
	const e = byId("watching");
	setText(e, text);
	e.className = `pill ${kind}`;
}

function icon(name) {
	const href = `web/${name}.svg`, e = byId("icon");
	if (e.getAttribute("href") !== href)
		e.setAttribute("href", href);
}

// `gone`: what is shown of the monitor itself may be old as well.
function dim(on, gone = false) {
	document.body.classList.toggle("dim", on);
	document.body.classList.toggle("gone", gone);
}

// Since when is known to a page that was open then.
function showRedis(s) {
	const away = s.redis !== "up" && s.redis !== "off";
	if (!away)
		redisSeen = true;
	redisSince = !away ? null : redisSince ?? (redisSeen ? now() : null);
	put("redis-banner", away ? `Redis is away${redisSince === null ? "" : ` since ${clock(redisSince)}`}: ${count(s.owed)} ${s.owed === 1 ? "write is" : "writes are"} pending. The page shows the monitor's own data. (${s.redis})` : "",
		"warn");
}

// `about`: what the title says of the page.
export function status(s, about) {
	silentSince = null;
	byId("trouble").hidden = true;
	showRedis(s);
	const text = s.blind ? blindness(s) : "";
	const hears = s.blind && s.judges_in_ms !== null && s.blind_cause !== "deaf" && s.blind_cause !== "upstream", warns = hears && s.starting;
	put("banner", text, hears ? "warn" : "bad");
	dim(s.blind);
	if (s.blind)
		pill(warns ? "Starting" : hears ? "Hears again" : "Cannot hear devices", hears ? "warn" : "bad");
	else
		pill(s.loading ? "Watching; devices are still being loaded" : "Watching", s.loading ? "warn" : "good");
	say(s.blind ? `${s.blind_cause}${s.judges_in_ms === null}` : "watching", text || "Watching: heartbeats arrive.");
	document.title = `${s.blind ? warns ? "… " : "BLIND " : s.offline ? `(${count(s.offline)}) ` : ""}${about}heartwheel`;
	icon(s.blind ? "icon-blind" : s.offline ? "icon-offline" : "icon");
}

export function standby(s) {
	const { owner, owner_state, state } = s.cluster, deaf = owner_state === "blind", able = state !== "blind";
	silentSince = null;
	byId("trouble").hidden = true;
	put("banner", able ? "" : "No barrier comes back from the broker: this node cannot take over.", "bad");
	showRedis(s);
	setText(byId("standby"), !owner ? "This node stands by, and no node is known to own the fleet now."
		: deaf ? `This node stands by. ${owner} owns the fleet but receives no heartbeats.`
			: `This node stands by. ${owner} owns the fleet: its dashboard shows the devices.`);
	pill("Standing by", owner && !deaf && able ? "warn" : "bad");
	dim(false);
	document.title = "standby heartwheel";
	icon("icon");
}

// `heard`: the monitor's time when it answered last; null: it never did.
export function silent(heard) {
	silentSince ??= now();
	for (const id of heard ? ["offline-since", "online-share", "beats"] : [])
		setText(byId(id), `as of ${clock(heard)}, ${ago(heard)}`);
	put("trouble", `The monitor has not answered since ${clock(silentSince)}: it was stopped, or the network is down. This page is from then, and tries again every two seconds.`,
		"bad");
	byId("banner").hidden = byId("redis-banner").hidden = true;
	pill("No answer", "bad");
	dim(true, true);
	say("silent", "The monitor does not answer.");
	document.title = "? heartwheel";
	icon("icon-blind");
}
