// SPDX-License-Identifier: MIT
// The receivers of heartwheel-alert, and their last messages with the results. heartwheel-alert may not run, or stand still:
// the rest of the page does not wait for it.

import { card, table } from "./device.js";
import { UNKNOWN, ask, clock, count, element, isAway, isNotRunning, moment, setClass, setText, visible } from "./text.js";

const EVERY_MS = 2000, AGAIN_MS = 15000, PATIENCE = 5000;
const RECEIVERS = [["Receiver"], ["Where"], ["Type", "wide"], ["Sent"], ["Given up"], ["Waiting"]], ENTRIES = [["When"], ["Receiver"], ["What"], ["Result"]];

const cell = (content, kind = "") => element("td", { class: kind }, content);

// "sent, status 200", "given up, status 404: no such topic"; the exit status of a program is in the words.
function result(e) {
	const tries = e.tries > 1 || (e.result === "waiting" && e.tries) ? ` after ${e.tries} ${e.tries === 1 ? "try" : "tries"}` : "";
	return `${e.result === "given_up" ? "given up" : e.result}${e.code >= 100 ? `, status ${e.code}` : ""}${tries}${e.words ? `: ${visible(e.words)}` : ""}`;
}

// The day only where there is room.
const when = (ms) => element("td", { class: "length", title: moment(ms) }, element("span", { class: "wide" }, `${moment(ms).split(" ")[0]} `), clock(ms));

const entry = ({ name, e }) => element("tr", {}, when(e.time_ms), cell(name, "length"), cell(visible(e.about), "any"), cell(result(e), e.result === "sent" ? "" : "bad"));

const receiver = (r) => element("tr", {}, cell(r.name, "length"), cell(visible(r.target), "any"), cell(r.type, "wide"), cell(count(r.sent)), cell(count(r.given_up)), cell(count(r.waiting)));

// The last messages of all receivers, the newest first.
const entries = (answer) => answer.receivers.flatMap((r) => r.messages.map((e) => ({ name: r.name, e }))).sort((a, b) => b.e.time_ms - a.e.time_ms);

const trouble = (answer) => answer.receivers.filter((r) => r.failing)
	.map((r) => `Notifications do not arrive at receiver ${r.name}${r.words ? `: ${visible(r.words)}` : ""}.`).join(" ");

function howTo() {
	return [element("p", {}, "No notification is sent when devices go offline. Add lines to monitor.conf for mail, ntfy, Slack or your own program:"),
		element("pre", { tabIndex: 0, "aria-label": "Lines for monitor.conf" }, "[receiver phones]\ntype = ntfy\nurl  = https://ntfy.sh/a-topic-that-is-hard-to-guess"),
		element("p", { class: "note" }, "Then start or reload heartwheel-alert, and heartwheelctl notify --test sends a message now. More: monitor.conf(5).")];
}

// The link to this page shows on every page that notifications fail.
function mark(answer) {
	const link = document.querySelector('header nav a[href="#/notify"]'), bad = answer.receivers.some((r) => r.failing);
	setClass(link, "bad", bad);
	setText(link, bad ? "Notifications fail" : "Notifications");
}

// Null where heartwheel-alert does not run; then it is not asked for a while, because a browser logs each refused request.
let again = 0, there = false;
async function askReceivers() {
	if (performance.now() < again)
		return null;
	const answer = await ask("v1/receivers", PATIENCE).catch((error) => {
		if (!isNotRunning(error))
			throw error;
		again = performance.now() + AGAIN_MS;
		return null;
	});
	there = answer !== null;
	mark(answer ?? { receivers: [] });
	return answer;
}

// `alert`: heartwheeld reaches heartwheel-alert.
export const status = (alert) => { there ||= alert; };
// From other pages only while heartwheel-alert is there.
export const askAgain = async () => (there ? askReceivers() : null);

function tell(p, text, old) {
	p.aside.hidden = !text;
	setText(p.aside, text);
	setClass(p.sent, "old", old);
}

// Rows are made again only if something is new, so that a selection stays.
function fill(p, answer) {
	const text = JSON.stringify(answer);
	tell(p, trouble(answer), false);
	if (text === p.said)
		return;
	p.said = text;
	const list = entries(answer);
	p.empty.hidden = answer.receivers.length > 0;
	p.receiverCard.hidden = !p.empty.hidden;
	p.sent.hidden = false;
	p.receivers.replaceChildren(...answer.receivers.map(receiver));
	p.entries.replaceChildren(...list.map(entry));
	setText(p.note, list.length ? "The last 100 of each receiver since heartwheel-alert was started." : "No message was sent since heartwheel-alert was started.");
}

function fillNone(p) {
	tell(p, p.said ? "heartwheel-alert is not running: no notification is sent, and earlier ones are shown." : "heartwheel-alert is not running: no notification is sent.", true);
	if (p.said)
		return;
	p.empty.hidden = false;
	p.sent.hidden = true;
}

async function follow(p) {
	while (p.isStill()) {
		try {
			const answer = document.hidden ? null : await askReceivers();
			if (answer && p.isStill())
				fill(p, answer);
			else if (!document.hidden && !answer && p.isStill())
				fillNone(p);
		} catch (error) {
			if (!isAway(error))
				tell(p, `${error.message}: later messages are not shown.`, true);
			else if (p.said === "") // else the rows are from before, as the page says above
				setText(p.note, UNKNOWN);
		}
		await new Promise((done) => setTimeout(done, EVERY_MS));
	}
}

// Elements for the page, which fill themselves while isStill().
export function notify(isStill) {
	const p = { isStill, said: "", receivers: element("tbody"), entries: element("tbody"), note: element("p", { class: "note" }, "Looking …"),
		aside: element("p", { class: "trouble", role: "alert", hidden: true }) };
	again = 0;
	p.empty = card("How to get notifications", ...howTo());
	p.empty.hidden = true;
	p.receiverCard = card("Receivers", table(p.receivers, RECEIVERS), element("p", { class: "note" }, "heartwheelctl notify --test sends a message now."));
	p.receiverCard.hidden = true;
	p.sent = card("Notifications sent", table(p.entries, ENTRIES), p.note);
	p.sent.classList.add("told");
	follow(p);
	return [element("div", { class: "about" }, element("h2", { tabIndex: -1 }, "Notifications"), p.aside), p.empty, p.receiverCard, p.sent];
}
