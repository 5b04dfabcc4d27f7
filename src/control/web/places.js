// SPDX-License-Identifier: MIT
// Where devices are: the groups with their counts, and counts by a level of the ids, one level further with each click.
// Whoever is counted can be shown: a name leads to all of them, a number to those.

import { to } from "./route.js";
import { ask, byId, count, element, middle, setText, visible } from "./text.js";

const SHOWN = 40, DEEP = 16, TRIES = 4;
let filters = { group: "", prefix: "" }, asked = 0;

function row(name, hrefs, one, more = "") {
	return element("tr", {}, element("th", { scope: "row" }, hrefs.all ? element("a", { href: hrefs.all }, middle(name)) : name, more),
		...["offline", "online"].map((state) => element("td", { class: one[state] ? state : "" },
			hrefs[state] && one[state] ? element("a", { href: hrefs[state], "aria-label": `${count(one[state])} ${state} in ${name}` }, count(one[state]))
				: count(one[state]))));
}

const hrefs = (query) => Object.fromEntries(["all", "offline", "online"].map((state) => [state, to("overview", "", { ...query, state })]));

function fill(id, rows) {
	const body = byId(id).tBodies[0], held = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
	body.replaceChildren(...rows);
	if (held)
		[...body.querySelectorAll("a")].find((a) => a.getAttribute("href") === held)?.focus({ preventScroll: true });
}

let groupsShown = "";
export function showGroups(groups) {
	const says = JSON.stringify(groups.map((g) => [g.name, g.offline, g.online, g.deaf, g.upstream, g.retired]));
	if (says === groupsShown)
		return;
	groupsShown = says;
	fill("groups", groups.map((g) => row(visible(g.name), hrefs({ group: g.name }), g,
		g.deaf || g.upstream ? element("small", { class: "warn" }, " cannot be heard") : g.retired ? element("small", {}, " no longer configured") : "")));
}

const depth = (prefix) => (prefix.match(/[/.:_-]/g) ?? []).length;

// The first level that tells devices apart.
async function look(mine) {
	let level = depth(filters.prefix) + 1, answer;
	for (let i = 0; i < TRIES && level <= DEEP; i++, level++) {
		answer = await ask(`v1/devices?${new URLSearchParams({ level, group: filters.group, prefix: filters.prefix })}`);
		if (mine !== asked || answer.levels.length !== 1 || answer.rest.online + answer.rest.offline > 0)
			break;
	}
	return answer;
}

export async function levels() {
	const mine = ++asked, answer = await look(mine);
	if (mine !== asked || !answer)
		return;
	const some = answer.levels.slice(0, SHOWN), rest = { ...answer.rest };
	for (const l of answer.levels.slice(SHOWN)) {
		rest.online += l.online;
		rest.offline += l.offline;
	}
	const up = filters.prefix ? [element("tr", {}, element("th", { scope: "row", colSpan: 3, class: "up" },
		element("a", { href: to("overview", "", { group: filters.group, prefix: filters.prefix.replace(/[^/.:_-]*[/.:_-]$/, ""), state: "all" }) }, "‹ one level up")))] : [];
	fill("levels", [...up, ...some.map((l) => row(visible(l.prefix), hrefs({ group: filters.group, prefix: l.prefix }), l)),
		...(rest.online + rest.offline ? [row(some.length ? "others" : "all", {}, rest)] : [])]);
	byId("by-level").hidden = byId("levels").tBodies[0].rows.length === 0;
	setText(byId("levels-note"), some.length || rest.online + rest.offline === 0 ? "" : "A level of an id ends at / . : _ or -.");
}

export function setFilters(query) {
	const is = { group: query.get("group") ?? "", prefix: query.get("prefix") ?? "" };
	if (is.group === filters.group && is.prefix === filters.prefix)
		return;
	filters = is;
	levels().catch(() => {});
}
