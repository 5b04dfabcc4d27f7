// SPDX-License-Identifier: MIT
// To whom the daemon tells what happens ([notify]), and what became of its last messages.

import { card, table } from "./device.js";
import { UNKNOWN, ask, clock, count, element, isAway, moment, setClass, setText, visible } from "./text.js";

const EVERY_MS = 2000;
const KINDS = { exec: "the program", webhook: "the web server" };

const cell = (content, kind = "") => element("td", { class: kind }, content);

// "sent, status 200", "failed after 3 tries: the server answered with status 500".
function result(e) {
	const tries = e.tries > 1 || (e.result === "waiting" && e.tries) ? ` after ${e.tries} ${e.tries === 1 ? "try" : "tries"}` : "";
	return `${e.result}${e.error === null && e.http_status ? `, status ${e.http_status}` : ""}${tries}${e.error === null ? "" : `: ${visible(e.error)}`}`;
}

// The day only where there is room.
const when = (ms) => element("td", { class: "length", title: moment(ms) }, element("span", { class: "wide" }, `${moment(ms).split(" ")[0]} `), clock(ms));

const entry = (e) => element("tr", {}, when(e.time_ms), cell(e.channel, "length"), cell(visible(e.about), "any"), cell(result(e), e.error === null ? "" : "bad"));

const channel = (c) => element("tr", {}, cell(c.name, "length"), cell(visible(c.target), "any"), cell(c.template, "wide"), cell(count(c.sent)), cell(count(c.failed)), cell(count(c.waiting)));

function trouble(answer) {
	return answer.channels.filter((c) => c.failing).map((c) => {
		const last = answer.notifications.find((e) => e.channel === c.name && e.tries > 0);
		return `Nobody is told through ${c.name}: the last message to ${KINDS[c.name] ?? "it"} did not arrive${last?.error ? `, ${visible(last.error)}` : ""}.`;
	}).join(" ");
}

function howTo() {
	return [element("p", {}, "Nobody is told when devices go offline. In monitor.conf, for a mail, ntfy, Slack or a program of your own:"),
		element("pre", { tabIndex: 0, "aria-label": "Lines for monitor.conf" }, "[notify]\nwebhook          = https://ntfy.sh/a-topic-that-nobody-guesses\nwebhook_template = ntfy"),
		element("p", { class: "note" }, "Then heartwheelctl reload, and heartwheelctl notify --test sends one now. More: monitor.conf(5).")];
}

// The way to this page says on every page that somebody is not told.
export function mark(answer) {
	const link = document.querySelector('header nav a[href="#/notify"]'), bad = answer.channels.some((c) => c.failing);
	setClass(link, "bad", bad);
	setText(link, bad ? "Notifications fail" : "Notifications");
}

// Rows are made anew only if something is new, so that what is selected stays so.
function fill(p, answer) {
	const text = JSON.stringify(answer), bad = trouble(answer);
	if (text === p.said)
		return;
	p.said = text;
	mark(answer);
	p.aside.hidden = !bad;
	setText(p.aside, bad);
	p.empty.hidden = answer.channels.length > 0;
	p.channelCard.hidden = !p.empty.hidden;
	p.channels.replaceChildren(...answer.channels.map(channel));
	p.entries.replaceChildren(...answer.notifications.map(entry));
	setText(p.note, answer.notifications.length ? "The last 100 since the monitor was started." : "Nothing was sent since the monitor was started.");
}

async function follow(p) {
	while (p.isStill()) {
		try {
			const answer = document.hidden ? null : await ask("v1/notify");
			if (answer && p.isStill())
				fill(p, answer);
		} catch (error) {
			if (!isAway(error)) {
				p.aside.hidden = false;
				setText(p.aside, error.message);
				p.said = "again";
			} else if (p.said === "") // else what is shown is from before, as the page says above
				setText(p.note, UNKNOWN);
		}
		await new Promise((done) => setTimeout(done, EVERY_MS));
	}
}

// Elements for the page, which fill themselves while isStill().
export function notify(isStill) {
	const p = { isStill, said: "", channels: element("tbody"), entries: element("tbody"), note: element("p", { class: "note" }, "Looking …"),
		aside: element("p", { class: "trouble", role: "alert", hidden: true }) };
	p.empty = card("How to be told", ...howTo());
	p.empty.hidden = true;
	p.channelCard = card("Who is told", table(p.channels, [["Channel"], ["Where"], ["Template", "wide"], ["Sent"], ["Failed"], ["Waiting"]]),
		element("p", { class: "note" }, "heartwheelctl notify --test sends one now."));
	p.channelCard.hidden = true;
	p.told = card("What was told", table(p.entries, [["When"], ["Channel"], ["What"], ["Result"]]), p.note);
	p.told.classList.add("told");
	follow(p);
	return [element("div", { class: "about" }, element("h2", { tabIndex: -1 }, "Notifications"), p.aside), p.empty, p.channelCard,
		p.told];
}
