// SPDX-License-Identifier: MIT
// To whom the daemon tells what happens ([notify]), and what became of its last messages; the same of heartwheel-tasks, which
// may not run, or stand still: nothing of the daemon's own waits for that.

import { card, table } from "./device.js";
import { UNKNOWN, ask, clock, count, element, isAway, isNotRunning, moment, setClass, setText, visible } from "./text.js";

const EVERY_MS = 2000, TASKS_PATIENCE = 5000, TASKS_AGAIN_MS = 15000;
const CHANNELS = [["Channel"], ["Where"], ["Template", "wide"], ["Sent"], ["Failed"], ["Waiting"]], ENTRIES = [["When"], ["Channel"], ["What"], ["Result"]];
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

function trouble(answer, of = "") {
	return answer.channels.filter((c) => c.failing).map((c) => {
		const last = answer.notifications.find((e) => e.channel === c.name && e.tries > 0);
		return `Notifications${of} do not arrive through ${c.name}: the last message to ${KINDS[c.name] ?? "it"} did not arrive${last?.error ? `, ${visible(last.error)}` : ""}.`;
	}).join(" ");
}

function howTo() {
	return [element("p", {}, "No notification is sent when devices go offline. Add lines to monitor.conf for mail, ntfy, Slack or your own program:"),
		element("pre", { tabIndex: 0, "aria-label": "Lines for monitor.conf" }, "[notify]\nwebhook          = https://ntfy.sh/a-topic-that-is-hard-to-guess\nwebhook_template = ntfy"),
		element("p", { class: "note" }, "Then heartwheelctl reload, and heartwheelctl notify --test sends one now. More: monitor.conf(5).")];
}

const failing = { own: false, tasks: false };

// The way to this page says on every page that somebody is not told.
function markOf(whose, answer) {
	failing[whose] = answer.channels.some((c) => c.failing);
	const link = document.querySelector('header nav a[href="#/notify"]'), bad = failing.own || failing.tasks;
	setClass(link, "bad", bad);
	setText(link, bad ? "Notifications fail" : "Notifications");
}

export const mark = (answer) => markOf("own", answer);

// What heartwheel-tasks has told. Null where there is none, which is not asked for again at once.
let tasksAgain = 0, tasksThere = false;
async function askTasks() {
	if (performance.now() < tasksAgain)
		return null;
	const answer = await ask("v1/tasks/notify", TASKS_PATIENCE).catch((error) => {
		if (isAway(error) || (error.status === 503 && !isNotRunning(error)))
			throw error;
		tasksAgain = performance.now() + TASKS_AGAIN_MS;
		return null;
	});
	tasksThere = answer !== null;
	markOf("tasks", answer ?? { channels: [] });
	return answer;
}

// From other pages only while it was there: a browser complains of each answer that is none.
export const askTasksAgain = async () => (tasksThere ? askTasks() : null);

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
	setText(p.note, answer.notifications.length ? "The last 100 since the monitor was started." : "No message was sent since the monitor was started.");
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

// Not before it has told something: most have no tasks of others to tell of.
function fillTasks(p, answer) {
	const text = JSON.stringify(answer);
	tellTasks(p, trouble(answer, " of tasks"), false);
	if (text === p.taskSaid)
		return;
	p.taskSaid = text;
	p.taskCard.hidden = answer.notifications.length === 0;
	p.taskChannels.replaceChildren(...answer.channels.map(channel));
	p.taskEntries.replaceChildren(...answer.notifications.map(entry));
}

// `old`: what is shown is from before.
function tellTasks(p, text, old) {
	p.taskAside.hidden = !text;
	setText(p.taskAside, text);
	setClass(p.taskCard, "old", old);
}

async function followTasks(p) {
	while (p.isStill()) {
		try {
			const answer = document.hidden ? null : await askTasks();
			if (answer && p.isStill())
				fillTasks(p, answer);
			else if (!answer && !tasksThere && p.taskSaid)
				tellTasks(p, p.taskCard.hidden ? "" : "heartwheel-tasks is not running: what it sent before is shown.", true);
		} catch (error) {
			if (!isAway(error))
				tellTasks(p, `${error.message}: later messages are not shown.`, true);
			// else it is from before, as the page says above
		}
		await new Promise((done) => setTimeout(done, EVERY_MS));
	}
}

// Elements for the page, which fill themselves while isStill().
export function notify(isStill) {
	const p = { isStill, said: "", channels: element("tbody"), entries: element("tbody"), note: element("p", { class: "note" }, "Looking …"),
		aside: element("p", { class: "trouble", role: "alert", hidden: true }), taskSaid: "", taskChannels: element("tbody"),
		taskEntries: element("tbody"), taskAside: element("p", { class: "trouble", role: "alert", hidden: true }) };
	p.empty = card("How to get notifications", ...howTo());
	p.empty.hidden = true;
	p.channelCard = card("Channels", table(p.channels, CHANNELS),
		element("p", { class: "note" }, "heartwheelctl notify --test sends one now."));
	p.channelCard.hidden = true;
	p.told = card("Notifications sent", table(p.entries, ENTRIES), p.note);
	p.told.classList.add("told");
	const taskTold = table(p.taskEntries, ENTRIES);
	taskTold.classList.add("told");
	p.taskCard = card("By heartwheel-tasks", table(p.taskChannels, CHANNELS), taskTold,
		element("p", { class: "note" }, "Watched tasks that failed: the last 100 messages since heartwheel-tasks was started."));
	p.taskCard.hidden = true;
	follow(p);
	followTasks(p);
	return [element("div", { class: "about" }, element("h2", { tabIndex: -1 }, "Notifications"), p.aside, p.taskAside), p.empty, p.channelCard,
		p.told, p.taskCard];
}
