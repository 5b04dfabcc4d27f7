// SPDX-License-Identifier: MIT
// The nodes that watch the fleet together, where there are several: who lives, who owns how much; and it is said plainly
// when one is lost. One that is alone shows nothing of this.

import { ago, ask, byId, count, element, middle, now, setClass, setText, span } from "./text.js";

// A handover leaves partitions without an owner for a moment: that is nothing to be told of.
let unownedSince = null;

const names = (nodes) => nodes.map((n) => n.node).join(", ");

function stateOf(n) {
	return n.state === "blind" && n.blind_cause ? `blind: ${n.blind_cause}` : n.state;
}

const kinds = { ready: "good", lost: "bad", blind: "bad" };

function item(n, all) {
	const share = all.partitions ? n.owns / all.partitions : 0;
	const facts = [`owns ${count(n.owns)} of ${count(all.partitions)}`, n.state === "lost" ? `lost ${ago(n.since_ms)}` : `for ${span(now() - n.since_ms)}`];
	if (n.owed)
		facts.push(`owes ${count(n.owed)}`);
	if (n.differs.length)
		facts.push(`another ${n.differs.join(", ")}`);
	const meter = element("meter", { max: 1, value: share, "aria-label": `share of ${n.node}` });
	return element("li", { class: n.state },
		element("div", { class: "who" }, element("b", {}, middle(n.node)), n.self ? element("small", {}, "this one") : "",
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
				: "the others watch the devices."}`);
	unownedSince = all.unowned ? unownedSince ?? Date.now() : null;
	if (all.unowned && Date.now() - unownedSince >= 2 * all.lease_ms)
		said.push(`${count(all.unowned)} of ${count(all.partitions)} partitions have no owner.`);
	if (!all.member)
		said.push(`This node is not a member of ${all.name}: what is shown may be old.`);
	else if (all.lapsed)
		said.push("This node could not renew its membership lately: what is shown may be old.");
	return said;
}

function showAll(all) {
	const said = troubles(all), e = byId("nodes-trouble");
	byId("node-list").replaceChildren(...all.nodes.map((n) => item(n, all)));
	setText(byId("nodes-note"), `${count(all.nodes.filter((n) => n.state === "ready").length)} ready`);
	e.hidden = said.length === 0;
	setText(e, said.join(" "));
	setClass(byId("nodes"), "bad", said.length > 0);
}

export async function show(cluster) {
	byId("nodes").hidden = !cluster;
	if (cluster)
		showAll(await ask("v1/nodes"));
}
