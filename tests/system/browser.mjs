// SPDX-License-Identifier: MIT
// A headless Chromium for hw_browser.py. Each line of stdin is a request about one page, as JSON; each line of stdout is
// {"value": ...} or {"error": ...}. Arguments: the directory whose node_modules has playwright-core, the path of Chromium.
//   {"page": N, "open": OPTIONS}   opens page N in a context of its own with these options
//   {"page": N, "body": TEXT}      runs TEXT as the body of an async function of (page, state)
//   {"page": N, "close": true}     closes the page and its context

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [modules, chromiumPath] = process.argv.slice(2);
globalThis.require = createRequire(`${modules}/`);
const { chromium } = require("playwright-core");
const AsyncFunction = (async () => {}).constructor;

const browser = await chromium.launch({
	executablePath: chromiumPath,
	headless: true,
	args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync"],
});
const pages = new Map();

async function open(number, options) {
	const page = await (await browser.newContext(options)).newPage();
	page.setDefaultTimeout(15000);
	// What a page must not do: complain, ask for anything elsewhere, open dialogs.
	const state = { complaints: [], requests: [], dialogs: [] };
	page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") state.complaints.push(m.text()); });
	page.on("pageerror", (e) => state.complaints.push(e.message));
	page.on("request", (r) => state.requests.push(r.url()));
	page.on("dialog", (d) => { state.dialogs.push(d.message()); d.dismiss(); });
	pages.set(number, { page, state });
}

async function answer(request) {
	if (request.open) return open(request.page, request.open);
	const { page, state } = pages.get(request.page);
	if (request.body !== undefined) return new AsyncFunction("page", "state", request.body)(page, state);
	pages.delete(request.page);
	return page.context().close();
}

console.log(JSON.stringify({ value: "ready" }));
for await (const line of createInterface({ input: process.stdin })) {
	let said;
	try {
		said = { value: (await answer(JSON.parse(line))) ?? null };
	} catch (error) {
		said = { error: `${error.message}` };
	}
	console.log(JSON.stringify(said));
}
await browser.close();
