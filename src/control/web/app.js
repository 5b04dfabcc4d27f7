// SPDX-License-Identifier: MIT
// The dashboard: asks for the whole now and then, and hears of each transition as it happens. After a restart of the
// monitor it goes on by itself.

import * as charts from "./charts.js";
import * as nodes from "./nodes.js";
import * as table from "./table.js";
import * as wheel from "./wheel.js";
import { stream } from "./token.js";
import { ago, ask, byId, clock, count, element, moment, now, setClass, setNow, setText, span } from "./text.js";

const FEED = 60;
const STATUS_MS = 2000, SAMPLES_MS = 10000, WHEEL_MS = 1000, AGES_MS = 1000, EVENTS_MS = 200;
let fresh = [], timer = null, lastId = "", down = false, standing = false, newest = null, oldest = null, offline = 0;

// --- the state of the monitor

function showSeeing(s) {
	const pill = byId("seeing");
	const text = s.blind ? `Blind: ${s.blind_cause}, for ${span(s.blind_for_ms)}; nobody is judged`
		: s.loading ? "Seeing; devices are still being loaded" : "Seeing";
	setText(pill, text);
	pill.className = `pill ${s.blind ? "bad" : s.loading ? "warn" : "good"}`;
	document.title = `${s.blind ? "BLIND " : s.offline ? `(${count(s.offline)}) ` : ""}heartwheel`;
}

function showLink(id, text, good) {
	const e = byId(id);
	setText(e, text);
	e.className = good ? "good" : "bad";
}

function showOwed(s) {
	const e = byId("owed");
	setText(e, s.owed === 0 ? "nothing" : `${count(s.owed)}, for ${span(s.owed_oldest_ms)}`);
	e.className = s.owed_oldest_ms > 10000 ? "bad" : s.owed_oldest_ms > 1000 ? "warn" : "";
}

function showOffline(s) {
	setText(byId("offline"), count(s.offline));
	setClass(byId("tile-offline"), "bad", s.offline > 0);
	setText(byId("online"), count(s.online));
	setText(byId("online-share"), s.devices ? `${(Math.floor(s.online / s.devices * 1000) / 10).toFixed(1)} % of ${count(s.devices)}`
		: "no device is known yet");
	offline = s.offline;
	if (offline === 0)
		newest = oldest = null;
	showSince();
}

function showSince() {
	const note = byId("offline-since");
	if (offline === 0)
		setText(note, "everybody is there");
	else if (newest && oldest)
		setText(note, offline === 1 ? `since ${ago(newest)}` : `latest ${ago(newest)}, longest ${span(now() - oldest)}`);
	else
		setText(note, "");
}

// One that stands by knows nothing of the fleet: nothing is shown rather than that there are no devices.
function showStandby(s) {
	standing = Boolean(s.cluster?.standing_by);
	byId("standby").hidden = !standing;
	document.querySelector("main").hidden = standing;
	if (!standing)
		return;
	const owner = s.cluster.owner, pill = byId("seeing");
	setText(byId("standby"), owner ? `This node stands by. ${owner} owns the fleet: its dashboard shows the devices.`
		: "This node stands by, and no node owns the fleet now.");
	setText(pill, "Standing by");
	pill.className = `pill ${owner ? "warn" : "bad"}`;
	document.title = "standby heartwheel";
}

function showStatus(s) {
	const stood = standing;
	setNow(s.now_ms);
	setText(byId("node"), `${s.node} · ${s.version} · up ${span(s.uptime_s * 1000)}`);
	quietly(() => nodes.show(s.cluster));
	showStandby(s);
	if (standing)
		return;
	if (stood)
		everything();
	showSeeing(s);
	showOffline(s);
	setText(byId("rate"), s.heartbeats_per_s >= 100 ? count(Math.round(s.heartbeats_per_s)) : `${s.heartbeats_per_s}`);
	setText(byId("beats"), `${count(s.heartbeats_total)} since the start`);
	showLink("mqtt", s.mqtt === "up" ? `up, ${s.barrier_ms.toFixed(1)} ms` : s.mqtt, s.mqtt === "up");
	showLink("redis", s.redis === "off" ? "not used" : s.redis, s.redis === "up" || s.redis === "off");
	showOwed(s);
}

function showTrouble(error) {
	const e = byId("trouble");
	e.hidden = !error;
	if (!error)
		return;
	setText(e, "The monitor does not answer; trying again. What is shown is from before.");
	const pill = byId("seeing");
	setText(pill, "No answer");
	pill.className = "pill bad";
	document.title = "? heartwheel";
}

async function status() {
	try {
		showStatus(await ask("v1/status"));
		if (down)
			everything();
		down = false;
		showTrouble(null);
	} catch (error) {
		down = true;
		showTrouble(error);
	}
}

// When the latest went, and since when the longest has been away.
async function extremes() {
	const one = async (sort) => (await ask(`v1/devices?state=offline&limit=1&sort=${sort}`)).devices[0]?.since_ms ?? null;
	[newest, oldest] = await Promise.all([one("newest"), one("oldest")]);
	showSince();
}

async function samples() {
	charts.show(await ask("v1/samples"));
	const delay = charts.recentDelay(60);
	setText(byId("delay"), delay ? delay[0].toFixed(1) : "–");
	setText(byId("delay-note"), delay ? `mean of the last hour; at most ${delay[1].toFixed(1)}`
		: "nobody fell silent in the last hour");
}

// --- what just happened

const reasons = { heartbeat: "heard", timeout: "silent", will: "said goodbye", keyspace: "key", operator: "by an operator",
	forget_after: "gone for long" };

function feedItem(d, isNew) {
	return element("li", { class: `${d.state}${isNew ? " new" : ""}` },
		element("span", { class: "dot" }), element("time", { title: moment(d.since_ms) }, clock(d.since_ms)),
		element("button", { class: "link", type: "button", onclick: () => open(d.id), title: d.id }, d.id),
		element("span", { class: "what" }, element("span", { class: "state" }, d.state), ` ${reasons[d.reason] ?? d.reason}`));
}

function showFeed(transitions, isNew) {
	const feed = byId("feed");
	feed.prepend(...transitions.slice(-FEED).reverse().map((d) => feedItem(d, isNew)));
	while (feed.children.length > FEED)
		feed.lastChild.remove();
	byId("feed-note").hidden = feed.children.length > 0;
}

// Bursts are shown a few times a second, as one.
function takeEvents() {
	timer = null;
	const some = fresh;
	fresh = [];
	showFeed(some, true);
	table.change(some);
	for (const d of some)
		if (d.state === "offline")
			newest = Math.max(newest ?? 0, d.since_ms);
	if (oldest === null || some.some((d) => d.since_ms === oldest || d.state !== "offline"))
		quietly(extremes);
	status();
}

function takeEvent(name, id, data) {
	lastId = id;
	if (name === "reset") {
		everything();
	} else if (name === "transition") {
		fresh.push(JSON.parse(data));
		timer ??= setTimeout(takeEvents, EVENTS_MS);
	}
}

// Ends with the connection, or is refused: then again.
function listen() {
	stream("v1/events", lastId, takeEvent).catch(() => {}).finally(() => setTimeout(listen, 3000));
}

// --- one device

function facts(d) {
	const all = [["State", `${d.state} for ${span(now() - d.since_ms)}`], ["Reason", d.reason], ["Since", moment(d.since_ms)],
		["Last seen", d.last_seen_ms ? `${moment(d.last_seen_ms)}, ${ago(d.last_seen_ms)}` : "never"],
		["Timeout", span(d.timeout_ms)], ["Group", d.group]];
	if (d.due_in_ms !== null)
		all.push([d.state === "online" ? "Offline in" : "Forgotten in", d.due_in_ms > 0 ? span(d.due_in_ms) : "overdue"]);
	all.push(["Wheel", d.level === null ? "not in it: waiting to be judged"
		: `level ${d.level}, slot ${d.slot}${d.rounds ? `, ${d.rounds} rounds` : ""}`]);
	if ("node" in d)
		all.push(["Owner", d.node ?? "nobody"]);
	for (const [key, name, unit] of [["battery", "Battery", " %"], ["rssi", "RSSI", " dBm"], ["ip", "IP", ""], ["version", "Version", ""]])
		if (key in d)
			all.push([name, `${d[key]}${unit}`]);
	if ("uptime" in d)
		all.push(["Uptime", span(d.uptime * 1000)]);
	if ("data" in d)
		all.push(["Data", JSON.stringify(d.data)]);
	return all;
}

async function open(id) {
	const path = `v1/devices/${encodeURIComponent(id)}`, dialog = byId("detail");
	setText(byId("detail-title"), id);
	byId("facts").replaceChildren();
	byId("detail-feed").replaceChildren();
	dialog.showModal();
	try {
		const events = await ask(`${path}/events?limit=10`);
		byId("detail-feed").replaceChildren(...(events.transitions.length ? events.transitions.map((t) =>
			element("li", { class: t.state }, element("span", { class: "dot" }), element("time", {}, moment(t.since_ms)),
				element("span", { class: "state" }, t.state), element("span", { class: "what" }, reasons[t.reason] ?? t.reason)))
			: [element("li", { class: "note" }, "Nothing that is remembered.")]));
		const list = facts(await ask(path));
		byId("facts").replaceChildren(...list.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
	} catch (error) {
		byId("facts").replaceChildren(element("dt", {}, "Sorry"), element("dd", {}, error.message));
	}
}

// --- all of it

const quietly = (f) => f().catch(() => {});

async function groups() {
	table.setGroups((await ask("v1/groups")).groups);
}

function everything() {
	if (standing)
		return;
	quietly(async () => {
		const { transitions } = await ask(`v1/transitions?limit=${FEED}`);
		byId("feed").replaceChildren();
		showFeed(transitions.reverse(), false);
	});
	for (const f of [extremes, samples, groups])
		quietly(f);
	table.refresh(true);
}

// Not while nobody looks.
const every = (ms, f) => setInterval(() => { if (!document.hidden && (!standing || f === status)) quietly(async () => f()); }, ms);

charts.start();
wheel.start();
table.start(open);
byId("close").addEventListener("click", () => byId("detail").close());
byId("detail").addEventListener("click", (event) => { if (event.target === byId("detail")) byId("detail").close(); });
status().then(everything);
listen();
every(STATUS_MS, status);
every(SAMPLES_MS, samples);
every(SAMPLES_MS, extremes);
every(SAMPLES_MS, groups);
every(WHEEL_MS, async () => wheel.show(await ask("v1/wheel")));
every(AGES_MS, table.draw);
quietly(async () => wheel.show(await ask("v1/wheel")));
document.addEventListener("visibilitychange", () => { if (!document.hidden) status().then(everything); });
