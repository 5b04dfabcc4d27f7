// SPDX-License-Identifier: MIT
// Requests, with the token that an address with users wants. It is kept no longer than the tab, and asked for when the
// monitor says that it needs one. Nothing is asked of the monitor meanwhile: wrong tokens close an address.

const KEPT = "heartwheel-token";
const PATIENCE_MS = 15000;
let asking = null;

const byId = (id) => document.getElementById(id);
const withToken = (token, headers) => (token ? { ...headers, Authorization: `Bearer ${token}` } : headers);
const reason = async (answer) => (await answer.json().catch(() => ({}))).error ?? "an API token is needed";

// One request with it, before all others: too many wrong ones close an address.
async function isRight(token) {
	const answer = await fetch("v1/status", { cache: "no-store", headers: withToken(token) }).catch(() => null);
	const wrong = !answer ? "the monitor does not answer" : answer.status === 401 || answer.status === 429 ? await reason(answer) : "";
	byId("token-why").textContent = wrong ? `Access denied: ${wrong}.` : "";
	return !wrong;
}

function askFor(why) {
	asking ??= new Promise((resolve) => {
		const field = byId("token-field");
		byId("token-why").textContent = why;
		field.value = "";
		if (!byId("token").open)
			byId("token").showModal();
		byId("token").oncancel = (event) => event.preventDefault(); // there is nothing behind it
		byId("token-form").onsubmit = async (event) => {
			event.preventDefault();
			const token = field.value.trim();
			if (!token || !await isRight(token))
				return;
			sessionStorage.setItem(KEPT, token);
			byId("token").close();
			asking = null;
			resolve();
		};
	});
	return asking;
}

// As fetch(); waits for a token where one is needed, and asks again. With `keepToken` a refusal is an answer as others are: for
// a request that the page can do without.
export async function get(path, options = {}) {
	for (;;) {
		if (asking)
			await asking;
		const token = sessionStorage.getItem(KEPT);
		const signal = options.signal?.aborted ? AbortSignal.timeout(PATIENCE_MS) : options.signal;
		const answer = await fetch(path, { cache: "no-store", ...options, signal, headers: withToken(token, options.headers) });
		if (answer.status !== 401 || options.keepToken)
			return answer;
		const why = await reason(answer);
		if (token !== sessionStorage.getItem(KEPT))
			continue;
		sessionStorage.removeItem(KEPT);
		await askFor(token ? `Access denied: ${why}.` : "This monitor has users.");
	}
}

// Server-sent events, as EventSource takes them, which cannot send a token: `on` is called with an event's name, id and
// data; with "open" first. Ends when the connection does, or by `signal`.
export async function stream(path, lastId, on, signal) {
	const answer = await get(path, { headers: lastId ? { "Last-Event-ID": lastId } : {}, signal });
	if (!answer.ok)
		throw new Error(`the monitor answers ${answer.status}`);
	on("open", "", "");
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "", name = "message", id = "", data = [];
	for (;;) {
		const { done, value } = await reader.read();
		if (done)
			return;
		const lines = (rest + value).split("\n");
		rest = lines.pop();
		for (const line of lines) {
			const colon = line.indexOf(":"), field = line.slice(0, colon), text = line.slice(colon + 1).replace(/^ /, "");
			if (line === "") {
				if (data.length)
					on(name, id, data.join("\n"));
				name = "message";
				data = [];
			} else if (field === "event")
				name = text;
			else if (field === "id")
				id = text;
			else if (field === "data")
				data.push(text);
		}
	}
}
