// SPDX-License-Identifier: MIT
// A headless Chromium for test_dashboard.py: each line of stdin is the body of an async function of (page, state), as a
// JSON string; each line of stdout is {"value": ...} or {"error": ...}. Arguments: the directory whose node_modules has
// playwright-core, the path of Chromium, and a JSON object of options of the browser's context.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [modules, chromiumPath, options] = process.argv.slice(2);
globalThis.require = createRequire(`${modules}/`);
const { chromium } = require("playwright-core");
const AsyncFunction = (async () => {}).constructor;

const browser = await chromium.launch({
	executablePath: chromiumPath,
	headless: true,
	args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync"],
});
const page = await (await browser.newContext(JSON.parse(options))).newPage();
page.setDefaultTimeout(15000);

// What a page must not do: complain, ask for anything elsewhere, open dialogs.
const state = { complaints: [], requests: [], dialogs: [] };
page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") state.complaints.push(m.text()); });
page.on("pageerror", (e) => state.complaints.push(e.message));
page.on("request", (r) => state.requests.push(r.url()));
page.on("dialog", (d) => { state.dialogs.push(d.message()); d.dismiss(); });

console.log(JSON.stringify({ value: "ready" }));
for await (const line of createInterface({ input: process.stdin })) {
	let answer;
	try {
		answer = { value: (await new AsyncFunction("page", "state", JSON.parse(line))(page, state)) ?? null };
	} catch (error) {
		answer = { error: `${error.message}` };
	}
	console.log(JSON.stringify(answer));
}
await browser.close();
