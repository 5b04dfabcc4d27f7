// SPDX-License-Identifier: MIT
// The tasks of heartwheel-tasks: what waits, what is held for whom, what others sent one another ([tasks] watch), and what ended
// badly in the last hour.

import { card, table } from "./device.js";
import { here, keep, to } from "./route.js";
import { UNKNOWN, ask, count, element, isAway, isNotRunning, moment, now, setClass, setText, span, visible } from "./text.js";
import { stream } from "./token.js";

const EVERY_MS = 3000, ROWS = 100, BAD_ROWS = 50, LATELY_MS = 3600000;
const STATES = ["scheduled", "held", "sent", "acked"], BAD = ["failed", "expired", "cancelled"];
const MEANS = { scheduled: "its time has not come", held: "the device is offline", sent: "not acknowledged yet", acked: "acknowledged by the device" };

const cell = (content, kind = "") => element("td", { class: kind }, content);
const receiver = (t) => (t.receiver ? element("a", { href: to("device", t.receiver) }, visible(t.receiver)) : visible(t.topic ?? "–"));

function row(t) {
	const ahead = (t.at_ms ?? t.created_ms) - now();
	return element("tr", {}, cell(receiver(t)), cell(visible(t.action ?? "a message")), cell(t.state), cell(ahead > 0 ? `in ${span(ahead)}` : `${span(-ahead)} ago`),
		cell(count(t.tries ?? 0), "wide"), cell(visible(t.sender ?? ""), "wide"));
}

function seen(t) {
	const ago = Math.max(0, now() - (t.sent_ms ?? t.created_ms));
	return element("tr", {}, cell(receiver(t)), cell(visible(t.action ?? "a message")), cell(t.state), cell(`${span(ago)} ago`),
		cell(visible(t.sender ?? "")));
}

function bad(e) {
	return element("tr", {}, cell(moment(e.time_ms)), cell(receiver(e)), cell(e.state), cell(visible(e.why ?? ""), "wide"), cell(visible(e.sender ?? ""), "wide"));
}

// The service counts now and then: where all that wait are here, they are counted here.
function countOf(name, s, all) {
	if (all)
		return count(all.filter((t) => t.state === name).length);
	return s.waiting === null ? "counting …" : count(s.states[name] ?? 0);
}

function facts(s, all) {
	return [...STATES.map((name) => [`${name} (${MEANS[name]})`, countOf(name, s, all)]),
		...(s.watched === undefined ? [] : [["Watched (between other clients)", s.watched === null ? "counting …" : count(s.watched)]]),
		["Sent again", `${s.retries_total === 1 ? "once" : `${count(s.retries_total)} times`} since the start`], ["Redis, broker", `${s.redis}, ${s.mqtt}`],
		...(s.clock_held ? [["Clock", "Redis' clock jumped: no task is sent or expires for now"]] : [])];
}

async function look(p) {
	const query = { limit: ROWS, ...(p.state.value && { state: p.state.value }) };
	const [s, { tasks }] = await Promise.all([ask("v1/tasks/status"), ask(`v1/tasks?${new URLSearchParams(query)}`)]);
	const others = s.watched === undefined ? [] : (await ask(`v1/tasks?${new URLSearchParams({ watched: 1, limit: ROWS })}`)).tasks;
	if (!p.isStill())
		return;
	p.aside.hidden = true;
	for (const one of p.cards)
		one.hidden = false;
	p.facts.replaceChildren(...facts(s, p.state.value || tasks.length === ROWS ? null : tasks).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
	p.rows.replaceChildren(...tasks.map(row));
	p.otherCard.hidden = s.watched === undefined;
	p.otherRows.replaceChildren(...others.map(seen));
	setText(p.otherNote, others.length === 0 ? "None." : others.length === ROWS ? `The first ${ROWS}; heartwheelctl task list --watched has all.` : "");
	setText(p.note, tasks.length === 0 ? "None waits." : tasks.length === ROWS ? `The first ${ROWS}; heartwheelctl task list has all.` : "");
	setOld(p, false);
}

// What is shown is from before: it has no colour.
function setOld(p, is) {
	for (const one of [...p.cards, p.otherCard])
		setClass(one, "old", is);
}

// Those that are older by now leave; of the others the newest.
function showBad(p, more = []) {
	const since = now() - LATELY_MS, ended = [...more, ...p.ended].filter((e) => e.time_ms >= since).slice(0, BAD_ROWS);
	if (more.length || ended.length !== p.badRows.children.length)
		p.badRows.replaceChildren(...ended.map(bad));
	p.ended = ended;
	if (p.heard)
		setText(p.badNote, ended.length === 0 ? "None in the last hour." : ended.length === BAD_ROWS ? `The last ${BAD_ROWS}.` : "");
}

// From an hour ago on, as they end.
async function listen(p) {
	const quit = new AbortController();
	p.quit = () => quit.abort();
	await stream("v1/tasks/events", `${Math.round(now() - LATELY_MS)}`, (name, id, data) => {
		if (name === "open") {
			p.heard = true;
			p.ended = []; // all of the hour come again
			showBad(p);
		}
		const e = data && name !== "reset" ? JSON.parse(data) : {};
		if (BAD.includes(e.state))
			showBad(p, [e]);
	}, quit.signal);
}

// Why there is nothing new; and that what there is is old.
function tell(p, error) {
	const had = !p.cards[0].hidden;
	p.aside.hidden = false;
	p.aside.className = isAway(error) || !had ? "note" : "trouble"; // one that is not used is no trouble
	setOld(p, had);
	if (isAway(error))
		setText(p.aside, had ? "The monitor does not answer: this is the last answer." : UNKNOWN);
	else if (error.status === 503)
		setText(p.aside, had ? `${error.message}: this is the last answer.` : `No tasks: ${error.message}.${
			isNotRunning(error) ? " heartwheel-tasks sends commands to devices; systemctl enable --now heartwheel-tasks starts it." : ""}`);
	else
		setText(p.aside, error.message);
}

async function follow(p) {
	let listens = false; // not of the loop, each round of which would have its own
	while (p.isStill()) {
		try {
			if (!document.hidden)
				await look(p);
			if (!listens)
				listen(p).catch(() => {}).finally(() => { listens = false; });
			listens = true;
		} catch (error) {
			tell(p, error);
		}
		showBad(p);
		await new Promise((done) => setTimeout(done, EVERY_MS));
	}
	p.quit?.();
}

// Elements for the page, which fill themselves while isStill().
export function tasks(isStill) {
	const p = { isStill, facts: element("dl", { class: "facts" }), rows: element("tbody"), note: element("p", { class: "note" }, "Looking …"),
		otherRows: element("tbody"), otherNote: element("p", { class: "note" }),
		badRows: element("tbody"), badNote: element("p", { class: "note" }, "Looking …"), ended: [], heard: false, aside: element("p", { class: "trouble", hidden: true }) };
	p.state = element("select", { onchange: () => { keep({ state: p.state.value }); look(p).catch(() => {}); } },
		...["", ...STATES].map((name) => element("option", { value: name }, name || "all")));
	p.state.value = here().query.get("state") ?? "";
	p.otherCard = card("Of others", table(p.otherRows, [["For"], ["Action"], ["State"], ["Sent"], ["From"]]), p.otherNote);
	p.otherCard.hidden = true;
	p.cards = [card("How many", p.facts),
		card("Waiting", element("label", {}, "State ", p.state), table(p.rows, [["For"], ["Action"], ["State"], ["When"], ["Tries", "wide"], ["From", "wide"]]), p.note),
		card("Failed in the last hour", table(p.badRows, [["When"], ["For"], ["State"], ["Why", "wide"], ["From", "wide"]]), p.badNote)];
	for (const one of p.cards) // until there is something to say in them
		one.hidden = true;
	follow(p);
	return [element("div", { class: "about" }, element("h2", { tabIndex: -1 }, "Tasks"), p.aside), p.cards[0], p.cards[1], p.otherCard, p.cards[2]];
}
