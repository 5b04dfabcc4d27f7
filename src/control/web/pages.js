// SPDX-License-Identifier: MIT
// The pages beside the overview, each at an address of its own (route.js): a device, a group, the unreliable devices. Of the
// overview and these one is shown; the overview stays where it was left.

import * as device from "./device.js";
import * as groups from "./groups.js";
import { notify } from "./notify.js";
import { follow, go, to } from "./route.js";
import { tasks } from "./tasks.js";
import { byId, element, middle, visible } from "./text.js";

const AGES_MS = 1000;
const STANDING = ["diagnostics"]; // in the page already, and filled by others
let view = "overview", shown = 0, blind = "", about = "";
let left = null; // the overview's place and focus, while another page is shown

export const open = (id) => go(to("device", id));

function name(where) {
	if (STANDING.includes(where.view))
		return byId(where.view).querySelector("h2").textContent;
	return where.view === "device" ? visible(where.name) : where.view === "group" ? `Group ${visible(where.name)}` : where.view === "tasks" ? "Tasks" : where.view === "notify" ? "Notifications" : "Unreliable devices";
}

function content(where) {
	const mine = shown, isStill = () => mine === shown;
	return where.view === "device" ? device.enter(where.name, blind)
		: where.view === "group" ? groups.group(where.name, isStill) : where.view === "tasks" ? tasks(isStill) : where.view === "notify" ? notify(isStill) : groups.unreliable(isStill);
}

function back() {
	byId("page").replaceChildren();
	dispatchEvent(new Event("resize")); // the table had no height
	scrollTo(0, left?.at ?? 0);
	left?.focus?.focus({ preventScroll: true });
	left = null;
}

function show(where) {
	const first = view === "overview" && where.view !== "overview", last = view !== "overview" && where.view === "overview";
	if (first)
		left = { at: scrollTop, focus: document.activeElement === document.body ? null : document.activeElement };
	device.leave();
	shown++;
	view = where.view;
	about = view === "overview" ? "" : `${name(where)} · `;
	document.title = `${about}heartwheel`;
	document.body.dataset.view = view;
	if (last)
		back();
	if (view === "overview")
		return;
	if (STANDING.includes(view)) {
		byId("page").replaceChildren();
		scrollTo(0, 0);
		byId(view).querySelector("h2").focus({ preventScroll: true });
		return;
	}
	byId("page").replaceChildren(element("nav", { class: "crumbs", "aria-label": "Location" }, element("a", { href: to("overview") }, "Devices"),
		element("span", { "aria-hidden": "true" }, "›"), element("span", { class: "place", "aria-current": "page" }, middle(name(where)))), ...content(where));
	scrollTo(0, 0);
	byId("page").querySelector("h2").focus({ preventScroll: true });
}

// Where the overview has been scrolled to: the browser scrolls before it says that the address is another one.
let scrollTop = 0;

export function start() {
	addEventListener("scroll", () => { if (view === "overview") scrollTop = scrollY; }, { passive: true });
	follow(show);
	setInterval(() => { if (!document.hidden) device.tick(); }, AGES_MS);
}

// What the window's title begins with: what the page is about.
export const title = () => about;

// Transitions, oldest first.
export const change = device.change;

// The monitor's state as /v1/status has it; null: it does not answer.
export function status(s) {
	blind = device.doubt(s);
	device.status(s);
}
