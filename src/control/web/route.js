// SPDX-License-Identifier: MIT
// What the page shows is in its address, after the #: `#/?state=offline&search=pump` is the overview with its filters,
// `#/device/ID`, `#/group/NAME`, `#/unreliable`, `#/tasks`, `#/notify` and `#/diagnostics` are pages of their own. Any of them can be sent, and Back works. Ids and
// names may have any characters: each that means something in an address, or cannot be seen, is written as %XX.

const VIEWS = ["device", "group", "unreliable", "tasks", "notify", "diagnostics"];
let overview = { view: "overview", name: "", query: new URLSearchParams() }; // as it was last

function decoded(text) {
	try {
		return decodeURIComponent(text);
	} catch {
		return text; // a % that somebody typed
	}
}

// {view, name, query} of an address' part after the #. An anchor, such as #grid, is in the overview, as that was last.
export function parse(hash) {
	if (hash !== "" && hash !== "#" && !hash.startsWith("#/"))
		return overview;
	const [path, ...rest] = hash.slice(2).split("?");
	const [view, ...name] = path.split("/");
	const known = VIEWS.includes(view);
	return { view: known ? view : "overview", name: known ? decoded(name.join("/")) : "", query: new URLSearchParams(rest.join("?")) };
}

// Where the page is: the view, the id or name it is about, and a URLSearchParams.
export function here() {
	const where = parse(location.hash);
	if (where.view === "overview")
		overview = where;
	return where;
}

// For an href: to("device", id), to("group", name), to("unreliable"), to("overview", "", {state: "offline"}). What is empty in
// the query is left out.
export function to(view, name = "", query = {}) {
	const some = new URLSearchParams([...new URLSearchParams(query)].filter(([, value]) => value !== "")).toString();
	const path = view === "overview" ? "#/" : `#/${view}${name === "" ? "" : `/${encodeURIComponent(name)}`}`;
	return some ? `${path}?${some}` : path;
}

// As if a link had been followed: Back leads to where the page is now.
export function go(href) {
	if (href !== location.hash)
		location.hash = href;
}

// Puts a view's state, such as its filters, into the address where it stands; nobody is told, and Back does not undo it.
export function keep(query) {
	const { view, name } = here();
	history.replaceState(history.state, "", to(view, name, query));
}

// Calls `f` with here() now, and whenever the address becomes another one by a link, go() or Back.
export function follow(f) {
	addEventListener("hashchange", () => f(here()));
	f(here());
}
