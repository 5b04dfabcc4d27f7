// SPDX-License-Identifier: MIT
// The dashboard: asks for the whole now and then, and hears of each transition as it happens. After a restart of the
// monitor it goes on by itself.

import * as banner from "./banner.js";
import * as charts from "./charts.js";
import * as feed from "./feed.js";
import * as incidents from "./incidents.js";
import * as nodes from "./nodes.js";
import * as notify from "./notify.js";
import * as pages from "./pages.js";
import * as places from "./places.js";
import * as table from "./table.js";
import * as wheel from "./wheel.js";
import { follow, here } from "./route.js";
import { stream } from "./token.js";
import { ago, ask, byId, count, element, now, setClass, setNow, setText, span } from "./text.js";

const FEED = 1000;
const STATUS_MS = 2000, SAMPLES_MS = 10000, WHEEL_MS = 1000, AGES_MS = 1000, EVENTS_MS = 200, COUNT_MS = 1000, SLOW_LEVELS = 200000;
let fresh = [], timer = null, renewing = null, down = false, standing = false, newest = null, oldest = null, offline = null, last = {};

// --- the state of the monitor

// What is away is told in full above (banner.js).
function showLink(id, text, good) {
	const e = byId(id);
	setText(e, text);
	e.className = good ? "good" : "bad";
}

function showOwed(s) {
	const e = byId("owed");
	setText(e, s.owed === 0 ? "none" : `${count(s.owed)}, for ${span(s.owed_oldest_ms)}`);
	e.className = s.owed_oldest_ms > 10000 ? "bad" : s.owed_oldest_ms > 1000 ? "warn" : "";
}

function showOffline(s) {
	setText(byId("offline"), count(s.offline));
	setClass(byId("tile-offline"), "bad", s.offline > 0);
	setText(byId("online"), count(s.online));
	setText(byId("online-share"), s.devices ? `${(Math.floor(s.online / s.devices * 1000) / 10).toFixed(1)} % of ${count(s.devices)}`
		: "no device is known yet");
	const asks = offline !== s.offline && s.offline > 0 && (newest === null || offline === 0);
	offline = s.offline;
	if (offline === 0)
		newest = oldest = null;
	showSince(s);
	if (asks)
		quietly(extremes);
}

function showSince(s) {
	const note = byId("offline-since");
	if (offline === 0)
		setText(note, s.blind ? "as last heard" : s.devices ? "all devices are online" : "");
	else if (newest && oldest)
		setText(note, offline === 1 ? `since ${ago(newest)}` : `latest ${ago(newest)}, longest ${span(now() - oldest)}`);
	else
		setText(note, "since a moment ago");
}

// Nothing has ever reported: what would.
function showFirst(s, groups) {
	const is = s.devices === 0 && !s.loading && (!s.blind || s.judges_in_ms !== null), was = !byId("first").hidden;
	byId("first").hidden = !is;
	byId("devices").hidden = is;
	if (!is || was)
		return;
	const filters = groups.filter((g) => !g.retired).flatMap((g) => g.filters);
	setText(byId("first-broker"), `${s.broker}:${s.broker_port}`);
	byId("first-topics").replaceChildren(...filters.map((f) => element("li", {}, element("code", {}, f))));
	const topic = (filters[0] ?? "").replace("+", "my-device").replaceAll("+", "x").replace("#", "x");
	setText(byId("first-try"), `mosquitto_pub -h ${s.broker} -p ${s.broker_port} -t '${topic}' -m ''`);
}

// One that stands by knows nothing of the fleet: nothing is shown rather than that there are no devices.
function showStandby(s) {
	standing = Boolean(s.cluster?.standing_by);
	byId("standing").hidden = !standing;
	document.body.classList.toggle("standing", standing);
	if (standing)
		banner.standby(s);
}

// One answer of the monitor is of one moment: so tiles, list, groups and nodes never contradict one another.
function showAll({ status: s, groups, nodes: all, alert, may_write: mayWrite }) {
	const stood = standing;
	setNow(s.now_ms);
	setText(byId("node"), `${s.node} · ${s.version} · up ${span(s.uptime_s * 1000)}`);
	showStandby(s);
	nodes.show(s, all);
	if (standing)
		return;
	if (stood)
		everything();
	last = s;
	banner.status(s, pages.title());
	incidents.status(alert, mayWrite);
	notify.status(alert);
	showOffline(s);
	table.setCounts(s);
	table.setGroups(groups);
	places.showGroups(groups);
	charts.setPresent(s);
	showFirst(s, groups);
	const rate = s.mqtt === "up" ? s.heartbeats_per_s : 0; // which is a mean of the last seconds
	setText(byId("rate"), rate >= 100 ? count(Math.round(rate)) : `${rate}`);
	setText(byId("beats"), `${count(s.heartbeats_total)} since the start`);
	showLink("mqtt", s.mqtt === "up" ? `up, ${s.barrier_ms.toFixed(1)} ms` : "away", s.mqtt === "up");
	showLink("redis", s.redis === "off" ? "not used" : s.redis === "up" ? "up" : "away", s.redis === "up" || s.redis === "off");
	showOwed(s);
}

// An answer that a later one has overtaken says what was.
let asked = 0, shown = 0;

async function status() {
	const turn = ++asked;
	try {
		const all = await ask("v1/overview"), s = all.status;
		if (turn < shown)
			return;
		shown = turn;
		if (banner.isBrief(s)) {
			s.blind = false;
			setTimeout(() => quietly(status), 1000);
		}
		showAll(all);
		pages.status(s);
		if (down)
			everything();
		down = false;
	} catch {
		down = true;
		pages.status(null);
		banner.silent(last.now_ms ?? null);
		nodes.silent();
		incidents.silent();
	}
}

// When the latest went, and since when the longest has been away.
async function extremes() {
	const one = async (sort) => (await ask(`v1/devices?state=offline&limit=1&sort=${sort}`)).devices[0]?.since_ms ?? null;
	[newest, oldest] = await Promise.all([one("newest"), one("oldest")]);
	showSince(last);
}

async function samples() {
	charts.show(await ask("v1/samples"));
	const delay = charts.recentDelay(60);
	setText(byId("delay"), delay ? delay[0].toFixed(1) : "–");
	const when = charts.reach();
	setText(byId("delay-note"), delay ? `mean ${when ? `since ${when}` : "of the last hour"}; at most ${delay[1].toFixed(1)}`
		: `no device went offline ${when ? `since ${when}` : "in the last hour"}`);
}

// --- what just happened

// Bursts are shown a few times a second, as one.
function takeEvents() {
	timer = null;
	const { fresh: some, isPast } = feed.add(fresh);
	fresh = [];
	if (isPast)
		renewing ??= setTimeout(() => { renewing = null; everything(); }, 1000);
	if (some.length === 0)
		return;
	table.change(some);
	pages.change(some);
	countSoon();
	for (const d of some)
		if (d.state === "offline")
			newest = Math.max(newest ?? 0, d.since_ms);
	if (oldest === null || some.some((d) => d.since_ms === oldest || d.state !== "offline"))
		quietly(extremes);
	status();
}

function takeEvent(name, data) {
	// What happened before it was open is asked for: a mass death is one answer, and what never got a place is in it.
	if (name === "reset" || name === "open") {
		status();
		everything();
	} else if (name === "sight") {
		status();
	} else if (name === "transition" || name === "pending") {
		fresh.push(JSON.parse(data));
		timer ??= setTimeout(takeEvents, EVENTS_MS);
	}
}

// Ends with the connection, or is refused: then again.
function listen() {
	stream("v1/events", "", (name, id, data) => takeEvent(name, data)).catch(() => {}).finally(() => setTimeout(listen, 3000));
}

// --- all of it

const quietly = (f) => f().catch(() => {});

const told = () => notify.askAgain();

function everything() {
	if (standing)
		return;
	for (const f of [() => feed.renew(FEED), extremes, samples, places.levels, told, incidents.look])
		quietly(f);
	table.refresh(true);
}

// Not while nobody looks.
const every = (ms, f) => setInterval(() => { if (!document.hidden && (!standing || f === status)) quietly(async () => f()); }, ms);

// Counts by level follow transitions at once, and at most once a second.
let counting = null, countedAt = 0;
function countSoon() {
	counting ??= setTimeout(() => {
		counting = null;
		countedAt = performance.now();
		if (last.devices < SLOW_LEVELS)
			quietly(places.levels);
	}, Math.max(0, countedAt + COUNT_MS - performance.now()));
}

let rounds = 0;
async function levels() {
	if (last.devices < SLOW_LEVELS || rounds++ % 6 === 0)
		await places.levels();
}

const turnWheel = async () => { if (here().view === "diagnostics") wheel.show(await ask("v1/wheel")); };

charts.start();
wheel.start();
feed.start(pages.open);
table.start(pages.open);
pages.start();
incidents.start();
follow((where) => {
	if (where.view === "overview") {
		table.setFilters(where.query);
		places.setFilters(where.query);
	}
	for (const a of document.querySelectorAll("header nav a"))
		if (a.hash === (where.view === "overview" ? "#/" : `#/${where.view}`))
			a.setAttribute("aria-current", "page");
		else
			a.removeAttribute("aria-current");
	quietly(turnWheel);
	if (where.view === "diagnostics")
		charts.resize();
});
status();
listen();
every(STATUS_MS, status);
every(SAMPLES_MS, samples);
every(SAMPLES_MS, extremes);
every(SAMPLES_MS, levels);
every(SAMPLES_MS, told);
every(SAMPLES_MS, incidents.look);
every(WHEEL_MS, turnWheel);
every(AGES_MS, table.draw);
every(AGES_MS, incidents.ages);
document.addEventListener("visibilitychange", () => { if (!document.hidden) status().then(everything); });
