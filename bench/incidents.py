#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Incidents. The engine in virtual time: how much is sent of what happens, and what an entry costs. The core: devices behind
gateways. heartwheel-alert as it runs: from a transition to the POST, how far behind it is after a mass death, what it sends of
gateways that fail with their children beside an Alertmanager that gets an alert of each device, and detection with it and
without it, in turns.

`--full`: the sizes for a machine that does nothing else; without it they are short.
"""
import collections
import heapq
import json
import random
import statistics
import sys
import threading
import time
import urllib.request

import detection
import measure

TARGET = "incidents"
GOAL_POST_MS, GOAL_BEHIND_MS = 100, 2000
INTERVAL_MS = 200  # so that no message has more than its 100 news


def sizes(o, smoke, short, full):
    return smoke if o.smoke else full if o.full else short


def count(label, value, goal=0):
    measure.figure(TARGET, "incidents: " + label, value, "", None if goal is None else ("<=", goal), None, goal is not None)


# --- the engine


def engine(o):
    n, children = sizes(o, (50, 20), (1000, 100), (1000, 100))
    measure.conditions("the engine in virtual time: %s gateways with %d children each fail once, in any order of deadlines; "
                       "mass = 0" % (format(n, ",d"), children))
    result = measure.relay(o, "incidents", "gateways", n, children)
    count("openings too many or too few", abs(result["opened"] - n))
    count("ends too many or too few", abs(result["closed"] - n))
    count("news of children", result["children"])
    measure.figure(TARGET, "incidents: an entry, with its changes", result["entry_ns"] / 1e3, "µs")
    n, hours = sizes(o, (100, 1), (1000, 4), (1000, 4))
    measure.conditions("the engine: %s devices with a transition each 30 s for %d h; mass = 0" % (format(n, ",d"), hours))
    result = measure.relay(o, "incidents", "flapping", n, hours)
    measure.figure(TARGET, "incidents: news, flapping devices", 100 * result["news"] / result["entries"],
                   "% of the transitions", ("<=", 5), None, True)
    n = sizes(o, 50000, 1000000, 1000000)
    measure.conditions("the engine: %s devices of a group go offline and return" % format(n, ",d"))
    result = measure.relay(o, "incidents", "mass", n)
    measure.figure(TARGET, "incidents: an entry of a mass death, with its changes", result["entry_ns"] / 1e3, "µs")
    measure.figure(TARGET, "incidents: memory, a member", result["bytes"], "bytes")
    measure.figure(TARGET, "incidents: longest turn after 1,000 entries of a mass death", result["longest_ms"], "ms")


def parents(o):
    n = sizes(o, 20000, 1000000, 1000000)
    for children in 100, n:
        measure.conditions("the core: %s devices, %s behind each gateway; all gateways send a goodbye at once, parent_death = take" %
                           (format(n, ",d"), format(children, ",d")))
        result = measure.relay(o, "parents", n, children)
        count("children that did not go offline with their parents", n - result["taken"])
        measure.figure(TARGET, "incidents: a heartbeat with parents, beyond one without", result["beat_with"] - result["beat_without"], "ns",
                       ("<=", 20))
        measure.figure(TARGET, "incidents: memory of the index of parents, a child", result["bytes"], "bytes", ("<=", 40), None, True)
        measure.figure(TARGET, "incidents: all children go offline with their parents", result["take_s"], "s", ("<=", 12), None, True)
        measure.figure(TARGET, "incidents: longest turn meanwhile", result["turn_ms"], "ms", ("<=", 10), None, True)
    measure.figure(TARGET, "incidents: longest turn with a scan of all children of a parent", result["scan_ms"], "ms", ("<=", 10), None, True)


# --- from a transition to the POST, and detection with and without


class Hook:
    """A web server that notes each news with the time of its POST."""

    def __init__(self):
        from hw_send import Web
        self.news, self.messages = [], 0
        self.server = Web(self.answer)

    def answer(self, request, _n):
        now = time.time() * 1000
        m = json.loads(request["body"])
        self.messages += 1
        self.news += [(now, n["what"], n["incident"]) for n in m.get("news", [])]
        return 200

    def receiver(self, **more):
        return {"type": "webhook", "url": self.server.url("/x"), "interval": "%dms" % INTERVAL_MS, **more}


def in_turns(o):
    from hw_alert import Alert
    sizes_ = sizes(o, (200, 1000, 1500, 40, 6), (2000, 1000, 1500, 300, 12), (50000, 10000, 12000, 1500, 38))
    devices, interval_ms = sizes_[:2]
    seen, posts = {False: [], True: []}, []
    for turn in range(sizes(o, 2, 4, 8)):
        beside = turn % 2 == (turn // 2) % 2  # with, without, without, with
        with measure.world(settings=detection.BROKER) as (env, _):
            env.check_events = False
            hook = Hook()
            if beside:
                Alert(env, receivers={"hook": hook.receiver()}, mass=0, flap_start=0, log_level="notice").start()
            seen[beside].append(detection.watch(o, env, (), *sizes_, strict=False))
            if beside:
                posts += late_posts(env, hook)
            hook.server.close()
    measure.conditions(detection.conditions(*sizes_))
    for beside in (False, True):
        name = "with heartwheel-alert" if beside else "without heartwheel-alert"
        each = statistics.median(s["core"] / 100 * interval_ms * 1000 / devices for s in seen[beside])
        measure.figure(TARGET, "incidents: timeout to the PUBLISH, p99, " + name,
                       statistics.median(s["status_p99"] for s in seen[beside]), "ms")
        measure.figure(TARGET, "incidents: CPU of heartwheeld, a heartbeat, " + name, each, "us", note="all it does meanwhile")
    measure.conditions(detection.conditions(*sizes_) + "; mass = 0, interval %d ms" % INTERVAL_MS)
    measure.figure(TARGET, "incidents: transition to the POST beyond the interval, p50", measure.percentile(posts, 50), "ms")
    measure.figure(TARGET, "incidents: transition to the POST beyond the interval, p99", measure.percentile(posts, 99), "ms",
                   ("<=", GOAL_POST_MS))


def late_posts(env, hook):
    """Of each opening: how long after its transition and the receiver's interval it was posted, in ms. On a busy machine a
    device may be back before the interval is over; then no message is sent."""
    from hw_wait import wait_until
    last = {e["id"]: e["state"] for e in env.events()}
    stopped = {d for d, state in last.items() if state == "offline"}
    wait_until(lambda: stopped <= {i["device"] for _, what, i in list(hook.news) if what == "opened"}, 30, "the news of each device")
    return [now - i["since_ms"] - INTERVAL_MS for now, what, i in list(hook.news) if what == "opened"]


# --- a mass death


def mass_death(o):
    from hw_alert import Alert
    from hw_process import Process
    from hw_wait import wait_until
    n, interval_ms = sizes(o, (1000, 500), (20000, 2000), (100000, 10000))
    timeout_ms = interval_ms * 3 // 2
    with measure.world(settings=detection.BROKER) as (env, _):
        env.check_events = False
        hooks = {"10s": Hook(), "%dms" % INTERVAL_MS: Hook()}  # 10 s is the default
        a = Alert(env, receivers={"hook-" + i: hook.receiver(interval=i) for i, hook in hooks.items()}, log_level="notice").start()
        d = env.daemon(timeout="%dms" % timeout_ms, monitor={"log_level": "notice"})
        fleet = Process(env.own_dir("fleet"))
        fleet.spawn([o.build / "tests" / "system" / "fleet", "--port", env.broker.port, "--devices", n, "--interval-ms", interval_ms,
                     "--heartbeat", env.root + "/{id}/heartbeat", "--status", env.root + "/{id}/status"])
        wait_until(lambda: d.status()["online"] == n, 60, "all to be online", 0.1)
        fleet.kill()  # all at once: each timeout ends within an interval
        wait_until(lambda: sum(i["down"] for i in a.incidents()) == n, 60, "all to be members", 0.02)
        now = a.env.redis.time()
        last = int(env.redis.xrevrange(env.key("events"), count=1)[0][0].split("-")[0])
        behind = now[0] * 1000 + now[1] / 1000 - last
        wait_until(lambda: all("mass" in {i["kind"] for _, _, i in list(hook.news)} for hook in hooks.values()), 30, "the messages")
        measure.conditions("%s devices stop at once, timeout %g s" % (format(n, ",d"), timeout_ms / 1000))
        measure.figure(TARGET, "incidents: behind the last transition of a mass death", behind, "ms", ("<=", GOAL_BEHIND_MS), None, True)
        for interval, hook in hooks.items():
            # Until a share of the group is offline, each message is about single devices.
            count("messages of a mass death, interval " + interval, hook.messages, 2 if interval == "10s" else None)
            hook.server.close()


# --- gateways, beside an Alertmanager

GATEWAY_S, EVERY_S, SILENCE_S = 3, 0.75, 22  # Prometheus and Alertmanager as they are shipped, 20 times as fast: 60 s, 15 s, 7 min
CONFIG = """
route: {receiver: hook, group_by: [gateway], group_wait: 1500ms, group_interval: 15s, repeat_interval: 12m}
inhibit_rules: [{source_matchers: [alertname="GatewayOffline"], target_matchers: [alertname="DeviceOffline"], equal: [gateway]}]
receivers: [{name: hook, webhook_configs: [{url: '%s', send_resolved: true}]}]
"""


def post(url, body):
    r = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(r, timeout=20) as answer:
        return answer.read()


def utc(at):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + ".%03dZ" % (at % 1 * 1000)


class Rules:
    """An alert of each device that is offline, posted again at each evaluation, as a rule of Prometheus over
    heartwheel's state of each device does."""

    def __init__(self, am):
        self.am, self.firing, self.ended, self.lock, self.stopping = am, {}, {}, threading.Lock(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def set(self, device, gateway, offline):
        with self.lock:
            if offline:
                self.firing[device] = (gateway, time.time())
            elif device in self.firing:
                self.ended[device] = (*self.firing.pop(device), time.time())

    def run(self):
        while not self.stopping.wait(EVERY_S):
            with self.lock:
                now, alerts = time.time(), []
                for device, (gateway, since) in self.firing.items():
                    alerts.append(self.alert(device, gateway, since, now + 4 * EVERY_S))
                for device, (gateway, since, end) in self.ended.items():
                    alerts.append(self.alert(device, gateway, since, end))
                self.ended = {d: e for d, e in self.ended.items() if now - e[2] < 45}  # 15 min
            for k in range(0, len(alerts), 5000):
                post(self.am.url + "/api/v2/alerts", alerts[k:k + 5000])

    @staticmethod
    def alert(device, gateway, since, end):
        return {"labels": {"alertname": "GatewayOffline" if device == gateway else "DeviceOffline", "device": device,
                           "gateway": gateway}, "startsAt": utc(since), "endsAt": utc(end)}


def plan(n, children, spread_s, outage_s, rng):
    """[(seconds, what, device, gateway, wait_ms)] in order. Every second gateway is silenced before it returns, until after."""
    events = []
    for g in range(n):
        gateway, fails = "g%d" % g, rng.uniform(0, spread_s)
        deadline, returns = fails + GATEWAY_S, fails + outage_s
        events += [(deadline, "offline", gateway, gateway, None), (returns, "online", gateway, gateway, None)]
        if g % 2:
            events.append((returns - 5, "silence", gateway, gateway, None))
        for c in range(children):
            at, device = fails + rng.uniform(0.5, 2 * GATEWAY_S), "%s-c%d" % (gateway, c)
            wait_ms = int((deadline - at) * 1000) if at < deadline else None
            events += [(at, "offline", device, gateway, wait_ms), (returns + rng.uniform(0, 2), "online", device, gateway, None)]
    heapq.heapify(events)
    return [heapq.heappop(events) for _ in range(len(events))]


def silence(a, am, gateway):
    until = time.time() + SILENCE_S
    assert a.request("POST", "/v1/silences", {"match": "id:" + gateway, "until": int(until * 1000), "reason": "work", "by": "me"}
                     ).status == 201
    post(am.url + "/api/v2/silences", {"matchers": [{"name": "gateway", "value": gateway, "isRegex": False}], "startsAt": utc(time.time()),
                                       "endsAt": utc(until), "createdBy": "me", "comment": "work"})


def beside_alertmanager(o):
    from hw_alert import Alert, see, set_online
    from hw_send import Alertmanager, Web
    if not Alertmanager.program:
        print("prometheus-alertmanager is not installed", file=sys.stderr)
        return
    n, children = sizes(o, (6, 5), (40, 25), (1000, 100))
    spread, outage_s, rest_s = max(5, n * children * 2 / 1000), *sizes(o, (10, 5), (20, 50), (20, 50))
    with measure.world() as (env, _):
        env.check_events = False
        hook, sink = Hook(), Web()
        am = Alertmanager(env.own_dir("am"), "")
        am.start(CONFIG % sink.url())
        env.servers.append(am)
        see(env)
        a = Alert(env, receivers={"hook": hook.receiver()}, mass=0, flap_start=0, log_level="notice").start()
        rules, began, last, late = Rules(am), time.monotonic(), 0, 0
        for at, what, device, gateway, wait_ms in plan(n, children, spread, outage_s, random.Random(28)):
            late = max(late, time.monotonic() - began - at)
            while time.monotonic() - began < at:
                time.sleep(0.005)
            if time.monotonic() - last > 0.5:
                last = time.monotonic()
                see(env)
            if what == "silence":
                silence(a, am, gateway)
                continue
            set_online(env, device, what == "online", "gates" if device == gateway else "pumps", wait_ms=wait_ms,
                       parent=None if device == gateway else gateway, timeout_ms=GATEWAY_S * 1000)
            rules.set(device, gateway, what == "offline")
        pass_until = time.monotonic() + rest_s  # three times Alertmanager's group_interval
        while time.monotonic() < pass_until:
            see(env)
            time.sleep(0.5)
        rules.stopping.set()
        rules.thread.join()
        of = collections.Counter(what for _, what, _ in hook.news)
        measure.conditions("%s gateways with %d children each fail once within %.0f s; every second one returns during a silence; "
                           "Alertmanager with inhibition by gateway; all its times, and those of Prometheus, 20 times as fast; the plan "
                           "was at most %.1f s late" % (format(n, ",d"), children, spread, late))
        count("heartwheel-alert: openings too many or too few", abs(of["opened"] - n))
        count("heartwheel-alert: ends too many or too few", abs(of["closed"] - n))
        count("heartwheel-alert: news of children", sum(i["group"] == "pumps" for _, _, i in hook.news))
        count("heartwheel-alert: open incidents that are over", len(a.incidents()))
        count("heartwheel-alert: messages", hook.messages, None)
        alertmanager(am, sink)
        hook.server.close()
        sink.close()


def alertmanager(am, sink):
    """What it sent: an alert is fired or resolved by each message that names it so."""
    messages = [json.loads(r["body"]) for r in list(sink.requests)]
    fired, resolved = set(), set()
    for m in messages:
        for x in m["alerts"]:
            (fired if x["status"] == "firing" else resolved).add((x["labels"]["device"], x["labels"]["alertname"]))
    count("Alertmanager: messages", len(messages), None)
    count("Alertmanager: alerts of children that were sent", sum(name == "DeviceOffline" for _, name in fired), None)
    count("Alertmanager: gateways whose end was never sent", sum(d == "GatewayOffline" for _, d in fired - resolved), None)
    count("Alertmanager: alerts of children whose end was never sent", sum(d == "DeviceOffline" for _, d in fired - resolved), None)
    count("Alertmanager: alerts that are over and still active", len(am.alerts()), None)


def main():
    o = measure.options(__doc__)
    engine(o)
    parents(o)
    in_turns(o)
    mass_death(o)
    beside_alertmanager(o)


if __name__ == "__main__":
    main()
