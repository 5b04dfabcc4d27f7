// SPDX-License-Identifier: MIT
// A group's months, and the devices that were away most or changed most in the last seven days: reports of
// heartwheel-history.

import { percent, times } from "./bars.js";
import { card, table } from "./device.js";
import { to } from "./route.js";
import { UNKNOWN, ask, count, element, isAway, isNotRunning, oldness, setText, span, visible } from "./text.js";

const MONTHS = 12, WORST = 15, RETRY_MS = 3000, NOW_MS = 3000, AGAIN_MS = 60000;
const seconds = (s) => (s === null ? "–" : span(s * 1000));
const deviceLink = (id) => element("a", { href: to("device", id) }, visible(id));
// Cells, each a text or an element, or one with a class; figures stay on one line.
const cells = (...all) => all.map((one) => (Array.isArray(one) ? one : [one, ""])).map(([c, kind]) =>
	element("td", { class: typeof c === "string" ? `length ${kind}` : kind }, c));
const away = (error) => (isAway(error) ? UNKNOWN
	: `No history: ${error.message}.${isNotRunning(error)
		? " heartwheel-history keeps the history, for years; systemctl enable --now heartwheel-history starts it." : ""}`);

// Fills a part of the page while isStill(), every `every` ms; where that fails, sooner, and why is told meanwhile.
async function persist(fill, tell, isStill, every) {
	while (isStill()) {
		let wait = document.hidden ? RETRY_MS : every;
		try {
			if (!document.hidden)
				await fill();
		} catch (error) {
			wait = RETRY_MS;
			tell(error);
		}
		await new Promise((done) => setTimeout(done, wait));
	}
}
const lost = (answer) => (answer.gaps ? [element("p", { class: "note warn" },
	`${answer.lost ? count(answer.lost) : "Some"} entries of the event stream were lost in this time: there may have been more outages.`)] : []);

// The months of UTC, this one first, as 2026-11.
const month = (i) => {
	const today = new Date();
	return new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - i, 1)).toISOString().slice(0, 7);
};

function monthRow(name, { all, gaps }) {
	return element("tr", {}, element("th", { scope: "row" }, name), ...cells(percent(all.uptime),
		[gaps ? `at least ${count(all.outages)}` : count(all.outages), "wide"], seconds(all.mtbf_s), seconds(all.mttr_s), [all.planned_s ? seconds(all.planned_s) : "–", "wide"], percent(all.seen), [count(all.devices), "wide"]));
}

// The worst first: whoever was down at all.
function worst(devices, heading) {
	const rows = element("tbody", {}, ...devices.map((d) => element("tr", {}, ...cells(deviceLink(d.id), count(d.outages), seconds(d.down_s),
		percent(d.uptime), [percent(d.seen), "wide"], [element("a", { href: to("group", d.group) }, visible(d.group)), "wide"]))));
	return [element("h3", {}, heading), table(rows, [["Device"], ["Outages"], ["Away"], ["Uptime"], ["Seen", "wide"], ["Group", "wide"]])];
}

// The first time all of them; then only this month changes.
async function fillMonths(name, rows, months, note, worstOnes, isStill) {
	let old = "";
	const first = month(0), isAnew = rows.dataset.first !== first;
	if (isAnew)
		rows.replaceChildren();
	for (let i = 0; i < (isAnew ? MONTHS : 1); i++) {
		const answer = await ask(`v1/history/uptime?${new URLSearchParams({ group: name, month: month(i), limit: i === 0 ? WORST : 1 })}`);
		if (!isStill())
			return;
		if (answer.all.devices === 0)
			break;
		months.hidden = false;
		if (isAnew)
			rows.append(monthRow(month(i), answer));
		else
			rows.firstChild.replaceWith(monthRow(first, answer));
		const bad = answer.devices.filter((d) => d.outages > 0 || d.down_s > 0);
		if (i === 0) {
			old = oldness(answer) && `${oldness(answer)} `;
			worstOnes.replaceChildren(...(bad.length ? worst(bad, "Longest time offline this month") : []));
		}
	}
	if (rows.children.length)
		rows.dataset.first = first;
	note.textContent = rows.children.length ? `${old}Months are in UTC; the current month is up to now. Uptime counts only time in which a monitor was watching.`
		: "heartwheel-history has no device of this group.";
}

async function fillNow(name, note, isStill) {
	const g = (await ask("v1/groups")).groups.find((one) => one.name === name);
	if (isStill())
		note.textContent = g ? `${count(g.online)} online, ${count(g.offline)} offline, timeout ${span(g.timeout_ms)}${
			g.retired ? ", no longer in the configuration" : ""}${g.deaf ? "; no message arrives on one of its filters, its devices are not judged" : ""}${g.upstream ? `; ${g.upstream} says that its devices cannot be heard, they are not judged` : ""}`
			: "The monitor has no group with this name.";
}

export function group(name, isStill) {
	const rows = element("tbody"), note = element("p", { class: "note" }, "Looking …"), state = element("p", { class: "note" });
	const months = table(rows, [["Month"], ["Uptime"], ["Outages", "wide"], ["Between failures"], ["To repair"], ["Planned", "wide"], ["Seen"],
		["Devices", "wide"]]);
	const worstOnes = element("div");
	months.hidden = true;
	const forget = (error) => {
		if (isAway(error) && rows.dataset.first) // what is shown is from before, as the page says above
			return;
		months.hidden = true;
		delete rows.dataset.first;
		worstOnes.replaceChildren();
		setText(note, away(error));
	};
	persist(() => fillNow(name, state, isStill), (error) => { if (!isAway(error)) setText(state, error.message); }, isStill, NOW_MS);
	persist(() => fillMonths(name, rows, months, note, worstOnes, isStill), forget, isStill, AGAIN_MS);
	return [element("div", { class: "about" }, element("h2", { tabIndex: -1 }, `Group ${visible(name)}`), state,
		element("p", {}, element("a", { href: to("overview", "", { group: name, state: "all" }) }, "Its devices"))),
		card("Months", months, note, worstOnes)];
}

async function fillUnreliable(flapped, longest, isStill) {
	const [most, long] = await Promise.all(["outages", "down"].map((sort) => ask(`v1/history/uptime?since=7d&sort=${sort}&limit=${WORST}`)));
	if (!isStill())
		return;
	const nobody = () => [element("p", { class: "note" }, "None.")];
	const often = most.devices.filter((d) => d.outages > 1), away = long.devices.filter((d) => d.down_s > 0);
	flapped.replaceChildren(...(often.length ? worst(often, "Offline most often") : [element("h3", {}, "Offline most often"), ...nobody()]));
	longest.replaceChildren(...(away.length ? worst(away, "Offline longest") : [element("h3", {}, "Offline longest"), ...nobody()]),
		...lost(long), ...(oldness(long) ? [element("p", { class: "note warn" }, oldness(long))] : []), element("p", { class: "note" }, long.all.devices === 0 ? "heartwheel-history has no device yet." : `Of ${count(long.all.devices)} devices, ${times(long.all.outages)} together; a monitor saw ${
			percent(long.all.seen)} of the time. Time without a watching monitor counts neither as online nor as offline.`));
}

export function unreliable(isStill) {
	const flapped = element("div"), note = element("p", { class: "note" }, "Looking …"), longest = element("div", {}, note);
	const forget = (error) => {
		setText(note, away(error));
		if (!isAway(error)) { // else what is shown is from before, as the page says above
			flapped.replaceChildren();
			longest.replaceChildren(note);
		}
	};
	persist(() => fillUnreliable(flapped, longest, isStill), forget, isStill, AGAIN_MS);
	return [element("div", { class: "about" }, element("h2", { tabIndex: -1 }, "Unreliable devices")),
		card("The last 7 days", flapped, longest)];
}
