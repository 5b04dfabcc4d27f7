# SPDX-License-Identifier: MIT
"""The HTTP API as the manuals show it: each route with a request, its parameters, and from a real answer the text of the manual
and the schema of docs/openapi.json. test_api.py compares both with the daemons, and writes them with --write."""
import json
import re

from hw_build import SRC

API, HISTORY, ALERT = "man/heartwheel-api.7", "man/heartwheel-history.8", "man/heartwheel-alert.8"
TABLES = {"heartwheeld": "src/control/control.c", "heartwheel-tasks": "src/tasks/api/api.c",
          "heartwheel-history": "src/history/api.c", "heartwheel-alert": "src/alert/api/api.c"}
LAST = {"/v1/devices/": "ID", "/v1/tasks/": "TASK", "/v1/history/devices/": "ID", "/v1/history/badge/": "ID.svg", "/v1/inventory/": "ID", "/v1/incidents/": "ID",
        "/v1/silences/": "ID", "/v1/receivers/": "NAME"}
# Routes that are described at another one: a file of the page; the same answer in another place.
ALIASES = {("heartwheeld", "GET /web/"): None,
           ("heartwheel-tasks", "GET /v1/status"): ("heartwheel-tasks", "GET /v1/tasks/status"),
           ("heartwheel-tasks", "GET /v1/tasks/metrics"): ("heartwheel-tasks", "GET /metrics"),
           ("heartwheel-alert", "GET /v1/incidents/metrics"): ("heartwheel-alert", "GET /metrics"),
           ("heartwheel-history", "GET /metrics"): ("heartwheel-history", "GET /v1/history/metrics")}

PAGE = {"limit": ("1 to 1000; default 100", 1), "after": ("next of the page before", None)}
WINDOW = {"since": ("a moment: Unix ms, a day, or how long ago", "1h"), "until": ("a moment", "2099-01-01")}


class Route:
    """`path`: the request's path, with {names} that the test fills. `body`: the request's body. `query`: {parameter: (its
    meaning, a valid value, or None if that depends on an answer)}. `kind`: the body's type. `brief`: large parts are shown as `...`."""

    def __init__(self, daemon, name, summary, path=None, body=None, query=None, brief=False, kind="application/json"):
        self.daemon, self.name, self.summary, self.body, self.query = daemon, name, summary, body, query or {}
        self.method, self.pattern = name.split(" ")
        self.path, self.brief, self.kind = path or self.pattern, brief, kind
        self.key = daemon, name


TASK = {"receiver": "pump-9", "action": "set", "payload": {"level": 3}, "msg_id": "m-1", "after": 3600}
ROUTES = [Route("heartwheeld", *args, **more) for args, more in (
    (("GET /v1/status", "The daemon and the fleet"), {}),
    (("GET /v1/devices", "A page of the devices", "/v1/devices?state=offline&limit=1"), {"query": {
        "state": ("online or offline", "offline"), "group": ("a group's name", "default"), "prefix": ("start of the id", "pump"),
        "search": ("part of the id, or of what the inventory says", "ump"), "label": ("NAME=GLOB", "site=nor*"), "parent": ("one of its parents", "gateway-7"), "sort": ("known, id, newest, oldest; or id-back, newest-back, oldest-back", "id"),
        "level": ("count by the first levels of the ids, 1 to 16", 1), **PAGE}}),
    (("GET /v1/devices/ID", "A device", "/v1/devices/pump-7"), {}),
    (("PUT /v1/inventory", "Imports a file of expected devices", "/v1/inventory?source=pumps.csv"), {
        "body": "id,name,label.site,timeout\npump-7,Pump 7,north,5m\npump-8,Pump 8,,\n", "kind": "text/csv", "query": {
            "source": ("the name of the import", None), "prune": ("1: remove the ids of this source that the file does not name", None),
            "force": ("1: also if these are many", None), "skip_bad": ("1: import the other rows if some are wrong", None),
            "dry_run": ("1: change nothing", None), "import": ("names an import in parts", None),
            "part": ("the number of the part, from 1", None), "last": ("1: the last part", None)}}),
    (("GET /v1/inventory", "The expected devices", "/v1/inventory?limit=1"), {"query": {
        "group": ("a group's name", "default"), "source": ("the name of an import", "pumps.csv"), "limit": PAGE["limit"],
        "after": ("Heartwheel-Next of the page before", 0)}}),
    (("PATCH /v1/devices/ID", "Changes what the inventory says about a device", "/v1/devices/pump-7"), {
        "body": {"note": "new seal in May", "labels": {"floor": "2"}}}),
    (("DELETE /v1/inventory/ID", "Removes a device from the inventory", "/v1/inventory/pump-8"), {}),
    (("GET /v1/devices/ID/events", "The transitions of a device, newest first", "/v1/devices/pump-9/events?limit=1"), {
        "query": {"limit": PAGE["limit"]}}),
    (("GET /v1/transitions", "The transitions of all devices, newest first", "/v1/transitions?limit=1"), {
        "query": {"limit": PAGE["limit"]}}),
    (("GET /v1/events", "Transitions as server-sent events", "/v1/events?after=0-0"), {
        "query": {"after": ("begin after this event; 0-0: from the start", None)}}),
    (("GET /v1/groups", "The groups"), {}),
    (("GET /v1/overview", "Status, groups and nodes as of one moment"), {"brief": True}),
    (("GET /v1/nodes", "The nodes that watch this fleet"), {}),
    (("GET /v1/wheel", "The timing wheel"), {"brief": True}),
    (("GET /v1/samples", "Numbers of the last hour"), {}),
    (("POST /v1/reload", "Reads the configuration again"), {}),
    (("GET /healthz", "Whether the daemon runs"), {}),
    (("GET /readyz", "Whether the daemon can do its work"), {}),
    (("GET /metrics", "Metrics for Prometheus"), {}),
    (("GET /", "The page"), {}))] + [
    Route("heartwheel-tasks", *args, **more) for args, more in (
    (("POST /v1/tasks", "Submits a task, or up to 1000 in an array"), {"body": TASK, "query": {
        "wait": ("seconds to wait for the end of the tasks, 0 to 50", None)}}),
    (("GET /v1/tasks", "The tasks that wait", "/v1/tasks?receiver=pump-9"), {"query": {
        "receiver": ("a receiver", "pump-9"), "state": ("a state", "scheduled"),
        "watched": ("1: tasks that others sent one another", 0), **PAGE}}),
    (("GET /v1/tasks/TASK", "A task", "/v1/tasks/{task}"), {}),
    (("GET /v1/tasks/events", "Transitions of tasks as server-sent events"), {}),
    (("GET /v1/tasks/status", "heartwheel-tasks and its tasks"), {}),
    (("DELETE /v1/tasks/TASK", "Cancels a task", "/v1/tasks/{task}"), {"query": {
        "force": ("1: also if it is acknowledged", None)}}),
    (("PUT /v1/devices/ID/will", "Sets the will that is published when the device goes offline", "/v1/devices/pump-9/will"), {
        "body": {"topic": "nodes/valve-2/set", "payload": {"open": False}, "qos": 1, "retain": False}}),
    (("GET /v1/devices/ID/will", "The will of a device", "/v1/devices/pump-9/will"), {}),
    (("GET /healthz", "Whether heartwheel-tasks runs"), {}),
    (("GET /readyz", "Whether heartwheel-tasks can do its work"), {}),
    (("GET /metrics", "Metrics for Prometheus"), {}),
    (("DELETE /v1/devices/ID/will", "Removes the will of a device", "/v1/devices/pump-9/will"), {}),
    (("POST /v1/call", "Publishes, and waits for the answer on another topic"), {
        "body": {"topic": "pumps/pump-7/get", "payload": {"what": "level"}, "reply": "pumps/pump-7/reply", "timeout": 5}}))] + [
    Route("heartwheel-history", *args, **more) for args, more in (
    (("GET /v1/history/status", "The database and what waits"), {}),
    (("GET /v1/history/devices/ID", "The transitions of a device, newest first", "/v1/history/devices/pump-9?limit=1"), {
        "query": {**WINDOW, **PAGE}}),
    (("GET /v1/history/outages", "Outages, latest first", "/v1/history/outages?device=pump-9"), {"query": {
        "device": ("an id", "pump-9"), "group": ("a group's name", "default"), "min": ("at least this long", "5m"),
        **WINDOW, **PAGE}}),
    (("GET /v1/history/incidents", "Incidents, newest first", "/v1/history/incidents?limit=1"), {"query": {
        "device": ("an id", "pump-8"), "group": ("a group's name", "default"), **WINDOW, **PAGE}}),
    (("GET /v1/history/uptime", "Uptime of devices", "/v1/history/uptime?device=pump-9"), {"query": {
        "device": ("an id", "pump-9"), "group": ("a group's name", "default"), "month": ("a month", "2026-11"),
        "sort": ("outages: most outages first", "outages"), "limit": PAGE["limit"], "offset": ("rows to skip", 0), **WINDOW}}),
    (("GET /v1/history/bars", "The time of a device in bars", "/v1/history/bars?device=pump-9&since=1d&step=1d"), {"query": {
        "device": ("an id", "pump-9"), "step": ("length of a bar", "1d"), "live": ("1: the monitor sees now", 1), **WINDOW}}),
    (("GET /v1/history/counts", "Devices online and offline at moments", "/v1/history/counts?since=2m&step=1m"), {"query": {
        "step": ("between two moments", "1m"), **WINDOW}}),
    (("GET /v1/history/badge/ID.svg", "A picture for a web page", "/v1/history/badge/pump-9.svg"), {"query": {
        "days": ("length of the time, 1 to 3660", 30)}}),
    (("GET /v1/history/events", "Transitions by their place in the stream", "/v1/history/events?after=0-0&limit=1"), {"query": {
        "after": ("an entry of the stream", "0-0"), "limit": PAGE["limit"]}}),
    (("GET /healthz", "Whether heartwheel-history runs"), {}),
    (("GET /readyz", "Whether SQL and Redis are there"), {}),
    (("GET /v1/history/metrics", "Metrics for Prometheus"), {}))] + [
    Route("heartwheel-alert", *args, **more) for args, more in (
    (("GET /v1/incidents", "Open or closed incidents, newest first"), {"query": {
        "state": ("open or closed", "open"), "group": ("a group's name", "default"), "kind": ("a kind of incident", "device"), **PAGE}}),
    (("GET /v1/incidents/ID", "An incident and a page of its members", "/v1/incidents/{incident}"), {}),
    (("POST /v1/incidents/ID/ack", "Acknowledges an incident", "/v1/incidents/{incident}/ack"), {
        "body": {"by": "ann", "note": "on my way"}}),
    (("DELETE /v1/incidents/ID/ack", "Takes an acknowledgement back", "/v1/incidents/{incident}/ack"), {}),
    (("GET /v1/incidents/events", "Changes of incidents as server-sent events"), {}),
    (("POST /v1/silences", "Begins a silence"), {"body": {"match": "group:pumps", "until_online": True, "reason": "new pumps"}}),
    (("GET /v1/silences", "The silences"), {}),
    (("DELETE /v1/silences/ID", "Ends a silence", "/v1/silences/{silence}"), {}),
    (("GET /v1/receivers", "The receivers and their last messages"), {}),
    (("POST /v1/receivers/NAME/test", "Sends a test message", "/v1/receivers/program/test"), {}),
    (("GET /v1/status", "heartwheel-alert"), {}),
    (("POST /v1/reload", "Reads the configuration again"), {}),
    (("GET /healthz", "Whether heartwheel-alert runs"), {}),
    (("GET /readyz", "Whether it holds the lease and follows the fleet"), {}),
    (("GET /metrics", "Metrics for Prometheus"), {}))] + [
    Route("heartwheeld", "DELETE /v1/devices/ID", "Forgets a device", "/v1/devices/pump-9")]


def in_source():
    """{(daemon, "METHOD /path")} of the tables in the source, without the routes that heartwheeld passes on to the other
    daemons."""
    found = set()
    for daemon, path in TABLES.items():
        for method, start, rest in re.findall(r'\{EVHTTP_REQ_(\w+), "([^"]+)", ("[^"]*"|NULL),', (SRC / path).read_text()):
            if rest != "NULL" and not (daemon == "heartwheeld" and start == "/v1/call"):
                found.add((daemon, "%s %s%s%s" % (method, start, LAST.get(start, ""), rest.strip('"'))))
    return found


# --- the manual


def brief(v, depth=0, small=False):
    """`v` with the first element of each list; `small`: large parts below the first level become `...`."""
    if isinstance(v, dict):
        if small and depth > 1 and len(v) > 4:
            return dict(list((k, brief(x, depth + 1, small)) for k, x in list(v.items())[:3]), **{"...": "..."})
        return {k: brief(x, depth + 1, small) for k, x in v.items()}
    return [brief(x, depth + 1, small) for x in v[:1]] + (["..."] if len(v) > 1 else []) if isinstance(v, list) else v


def wrapped(text, width=76):
    """Compact JSON, in lines that end with a comma."""
    parts = re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^",])+,?', text)
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append(" ")
        lines[-1] += part
    return lines


def shown(route, answer):
    """The lines of the manual for a request and its answer."""
    lines = ["%s %s" % (route.method, answer.path)]
    if isinstance(route.body, str):
        lines += route.body.splitlines()
    elif route.body is not None:
        lines += wrapped(json.dumps(route.body, separators=(",", ":")))
    lines.append("")
    kind = answer.kind.split(";")[0]
    lines.append("%d %s" % (answer.status, kind) if answer.body else str(answer.status))
    if kind in ("application/json", "application/x-ndjson"):
        text = json.dumps(brief(json.loads(answer.body), small=route.brief), separators=(",", ":"), ensure_ascii=False)
        text = re.sub(r'sqlite:[^"]*', "sqlite:/var/lib/heartwheel/history.db", re.sub(r'(?<="broker_port":)\d+', "1883", text))
        lines += wrapped(text.replace('"...":"..."', "...").replace('"..."', "..."))
    elif answer.body and kind == "text/event-stream":
        for line in answer.body.decode().splitlines():
            lines += wrapped(line) if line.startswith("data:") else [line]
    elif answer.body and kind.startswith("text/plain"):
        lines += answer.body.decode().splitlines()[:3]
        if len(answer.body.decode().splitlines()) > 3:
            lines.append("...")
    return lines


def skeleton(lines):
    """The part of an answer that is the same at each run: no values, no line ends."""
    text = "".join(line.strip() for line in lines)
    head, _, rest = text.partition("{") if "{" in text else (text, "", "")
    rest = re.sub(r'(?<=[:\[,])("(?:[^"\\]|\\.)*"|-?[\d.e+-]+|true|false|null)(?=[,}\]])(?!:)', "_", rest)
    return re.sub(r"[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|\b0m[a-z\d]{10}(?=200|204|/|$)|\d{6,}(-\d+)?|heartwheel_build_info.*", "N", head) + _ + re.sub(r"id: [\d-]+", "id: N", rest)


def roff(lines):
    return "".join(("\\&" if line[:1] in (".", "'") else "") + line.replace("\\", "\\e") + "\n" for line in lines)


def unroff(text):
    return [line.removeprefix("\\&").replace("\\e", "\\") for line in text.splitlines()]


BLOCK = re.compile(r'^\.\\" pair (\S+) (\S+ \S+)\n(?:\.Bd -literal -offset indent\n(.*?)^\.Ed\n)?', re.M | re.S)


def pairs(manual):
    """{(daemon, route): the lines of its request and answer} of a manual; a mark without them has none."""
    return {(daemon, name): unroff(text) for daemon, name, text in BLOCK.findall((SRC / manual).read_text())}


def write_pairs(manual, made):
    """Writes the pairs that differ by more than their values."""
    def written(m):
        lines = made[m[1], m[2]]
        if m[3] and skeleton(unroff(m[3])) == skeleton(lines):
            return m[0]
        return '.\\" pair %s %s\n.Bd -literal -offset indent\n%s.Ed\n' % (m[1], m[2], roff(lines))
    text = BLOCK.sub(written, (SRC / manual).read_text())
    (SRC / manual).write_text(text)


# --- docs/openapi.json

FLOATS = re.compile(r"_per_s$|^barrier_ms$|^battery$|^rssi$|^uptime$|^seen$|_s$|_mean_ms$|^delay_")
NULL = {"blind_cause": "string", "blind_for_ms": "integer", "judges_in_ms": "integer", "barrier_ms": "number",
        "redis_writable": "boolean", "owed_oldest_ms": "integer", "pending_oldest_ms": "integer", "node": "string",
        "upstream": "string", "upstream_unknown": "string", "as_of_ms": "integer", "wheel": "string", "level": "integer", "slot": "integer",
        "rounds": "integer", "due_in_ms": "integer", "event_id": "string", "timeout_ms": "integer", "source": "string",
        "error": "string", "exit_status": "integer", "http_status": "integer", "ended_ms": "integer", "lease_ms": "integer",
        "stream_lag_ms": "integer", "name": "string", "sentinels": "integer", "sentinels_confirm": "integer",
        "partitions": "integer", "owned": "integer", "unowned": "integer", "delay_mean_ms": "number", "delay_max_ms": "number",
        "uptime": "number", "mtbf_s": "number", "mttr_s": "number", "to_ms": "integer", "online": "integer",
        "offline": "integer", "lag_entries": "integer", "lag_s": "number", "seen": "number", "known_s": "number",
        "from_ms": "integer", "blind_from_ms": "integer", "last_seen_ms": "integer", "reason": "string", "from": "string",
        "n": "integer", "counted_ago_s": "number", "sql": "string", "at": "string", "battery": "number", "rssi": "number",
        "ip": "string", "version": "string", "data": "object", "reload": "string", "member": "boolean", "lapsed": "boolean",
        "detected": "integer", "time_ms": "integer", "cursor_tick": "integer",
        "gone_ms": "integer", "words": "string", "closed_ms": "integer", "acked_ms": "integer", "acked_by": "string"}


def schema(v, name=""):
    """The schema of a value in an answer. A member that may be null needs its type in NULL."""
    if v is None or (name in NULL and not isinstance(v, (dict, list))):
        if name not in NULL:
            raise AssertionError("'%s' is null: name its type in hw_api.NULL" % name)
        return {"type": [NULL[name], "null"]}
    if isinstance(v, dict):
        return {"type": "object", "properties": {k: schema(x, k) for k, x in v.items()}}
    if isinstance(v, list):
        return {"type": "array", "items": schema(v[0], name) if v else {"type": "object" if name == "gaps" else "string"}}
    if isinstance(v, bool):
        return {"type": "boolean"}
    if isinstance(v, (int, float)):
        return {"type": "number" if isinstance(v, float) or FLOATS.search(name) else "integer"}
    return {"type": "string"}


def operation(route, answer):
    kind = answer.kind.split(";")[0]
    good = {"description": "OK"}
    if answer.body:
        inner = {"type": "string"}
        if kind in ("application/json", "application/x-ndjson"):
            inner = schema(json.loads(answer.body))
        good["content"] = {kind: {"schema": inner}}
    op = {"operationId": re.sub(r"\W+", "_", route.name.replace("/v1/", "").lower()).strip("_"), "summary": route.summary,
          "tags": [route.daemon],
          "parameters": [{"name": p, "in": "path", "required": True, "schema": {"type": "string"}}
                         for p in re.findall(r"\b(ID|TASK|NAME)\b", route.pattern)] +
                        [{"name": q, "in": "query", "description": what, "schema": {"type": "string"}}
                         for q, (what, _) in route.query.items()],
          "responses": {str(answer.status): good, "default": {"$ref": "#/components/responses/Error"}}}
    if route.body is not None:
        op["requestBody"] = {"required": True, "content": {route.kind: {
            "schema": {"type": "string" if isinstance(route.body, str) else "object"}, "example": route.body}}}
    return op


def openapi(answers):
    """{route: answer} as the text of docs/openapi.json."""
    paths = {}
    for route, answer in answers.items():
        at = paths.setdefault(re.sub(r"\b(ID|TASK|NAME)\b", r"{\1}", route.pattern), {})
        at.setdefault(route.method.lower(), operation(route, answer))
    version = re.search(r"^AC_INIT\(\[heartwheel\], \[(.*?)\]\)", (SRC / "configure.ac").read_text(), re.M)[1]
    return json.dumps({
        "openapi": "3.1.0",
        "info": {"title": "heartwheel", "version": version, "license": {"name": "MIT", "identifier": "MIT"},
                 "description": "The API of heartwheeld, heartwheel-tasks and heartwheel-history; see heartwheel-api(7). heartwheeld"
                                " hands on requests below /v1/tasks, /v1/call and /v1/history. Further members may be added."},
        "servers": [{"url": "http://127.0.0.1:8731"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {"Error": {"description": "A refusal", "content": {"application/json": {"schema": {
                "type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}}}}}}}, indent=1) + "\n"
