// SPDX-License-Identifier: MIT
// The nodes that watch the fleet together, where there are several: who lives, who owns how much; and it is said plainly
// when one is lost. A node that cannot show the fleet names those that can, with links to their pages. One that is alone
// shows nothing of this.

import { ago, byId, count, element, middle, now, setClass, setText, span } from "./text.js";

// A handover leaves partitions without an owner for a moment: that is nothing to be told of.
let unownedSince = null;

const names = (nodes) => nodes.map((n) => n.node).join(", ");

function stateOf(n) {
	return n.state === "blind" && n.blind_cause ? `blind: ${n.blind_cause}` : n.state;
}

const kinds = { ready: "good", lost: "bad", blind: "bad", lapsed: "bad" };

function item(n, all) {
	const share = all.partitions ? n.owns / all.partitions : 0;
	const facts = [`owns ${count(n.owns)} of ${count(all.partitions)}`, n.state === "lost" ? `lost ${ago(n.since_ms)}` : `for ${span(now() - n.since_ms)}`];
	if (n.owed)
		facts.push(`${count(n.owed)} pending`);
	if (n.differs.length)
		facts.push(`different ${n.differs.join(", ")}`);
	const meter = element("meter", { max: 1, value: share, "aria-label": `share of ${n.node}` });
	const href = n.self ? null : pageOf(n), name = element("b", {}, middle(n.node));
	return element("li", { class: n.state },
		element("div", { class: "who" }, href ? element("a", { href, rel: "noreferrer" }, name) : name, n.self ? element("small", {}, "this one") : "",
			element("span", { class: `pill ${kinds[n.state] ?? "warn"}` }, stateOf(n))),
		meter, element("p", { class: n.differs.length ? "note warn" : "note" }, facts.join(" · ")));
}

// What is wrong, as sentences.
function troubles(all) {
	const lost = all.nodes.filter((n) => n.state === "lost"), said = [];
	const waiting = lost.reduce((sum, n) => sum + n.owns, 0);
	if (lost.length)
		said.push(`${lost.length === 1 ? "Node" : "Nodes"} ${names(lost)} ${lost.length === 1 ? "is" : "are"} lost: ${
			waiting ? `${count(waiting)} of ${count(all.partitions)} partitions wait to be taken over.`
				: "the other nodes watch their devices."}`);
	unownedSince = all.unowned ? unownedSince ?? Date.now() : null;
	if (all.unowned && Date.now() - unownedSince >= 2 * all.lease_ms)
		said.push(`${count(all.unowned)} of ${count(all.partitions)} partitions have no owner.`);
	if (!all.member)
		said.push(`This node is not a member of ${all.name}: this page may be old.`);
	else if (all.lapsed)
		said.push(`This node last reached Redis ${ago(all.as_of_ms)}: this page may be old.`);
	return said;
}

// --- where else to look

let known = []; // as they were told last

const isLoopback = (host) => host === "localhost" || host === "[::1]" || host.startsWith("127.");

// The page of a node, at the same view; null: its address is not known, or is none for this browser. Nodes' entries in Redis
// may be anybody's.
export function pageOf(n, from = location) {
	let url;
	try {
		url = new URL(n.url);
	} catch {
		return null;
	}
	if (!["http:", "https:"].includes(url.protocol) || url.username || url.password || (isLoopback(url.hostname) && !isLoopback(from.hostname)))
		return null;
	url.hash = from.hash;
	return url.href;
}

const link = (n, text) => {
	const href = pageOf(n);
	return href ? element("a", { href, rel: "noreferrer" }, text) : text;
};

// `why`: in what way this node is of no use now; "": it is.
function showElsewhere(why) {
	const ready = known.filter((n) => n.state === "ready" && !n.self), e = byId("elsewhere");
	const text = !why || ready.length === 0 ? "" : `${why} ${ready.map((n) => `${n.node} ${pageOf(n) ?? ""}`).join()}`;
	e.hidden = !text;
	if (e.dataset.says === text)
		return;
	e.dataset.says = text;
	const parts = ready.slice(0, 3).flatMap((n, i) => [i ? ", " : "", link(n, n.node)]);
	e.replaceChildren(...(text ? [`${why} ${ready.length === 1 ? "Node" : "Nodes"} `, ...parts, ready.length === 1 ? " is ready" : " are ready",
		ready.some((n) => pageOf(n)) ? "." : "; its address is not known: see [http] names in monitor.conf."] : []));
}

// The monitor does not answer: the nodes are as it said last.
export function silent() {
	showElsewhere("Another node may show the fleet.");
}

function whyNot(s, self) {
	if (s.cluster?.standing_by)
		return "The owner's page shows the devices.";
	if (s.blind && s.judges_in_ms === null)
		return "This node cannot hear devices.";
	return self && self.state !== "ready" ? `This node is ${self.state}.` : "";
}

function showAll(all) {
	const said = troubles(all), e = byId("nodes-trouble");
	byId("node-list").replaceChildren(...all.nodes.map((n) => item(n, all)));
	setText(byId("nodes-note"), `${count(all.nodes.filter((n) => n.state === "ready").length)} ready`);
	e.hidden = said.length === 0;
	setText(e, said.join(" "));
	setClass(byId("nodes"), "bad", said.length > 0);
}

// What /v1/overview says of the monitor, and of all nodes.
export function show(s, all) {
	const several = all.mode !== "off", self = all.nodes.find((n) => n.self);
	byId("nodes").hidden = !several;
	known = all.nodes;
	if (s.cluster?.standing_by) // it alone knows the fleet
		known = all.nodes.filter((n) => n.node === s.cluster.owner);
	if (several)
		showAll(all);
	showElsewhere(several ? whyNot(s, self) : "");
}
