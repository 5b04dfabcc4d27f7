# SPDX-License-Identifier: MIT
"""The example ACLs of conf/, unchanged: they give the daemon enough rights and other clients too few. Also: how the daemon
reports a missing right."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

from hw_alert import Alert, Inbox, see, set_online
from hw_build import SRC
from hw_history import BUILT, History, Sqlite
from hw_mqtt import Beating
from hw_tasks import Device, Sender, Tasks
from hw_wait import throughout, wait_until

MOSQUITTO_ACL = (SRC / "conf" / "mosquitto-heartwheel.acl").read_text()
REDIS_ACL = (SRC / "conf" / "redis-heartwheel.acl").read_text()
DEVICES = ("pump-7", "pump-8")
# Its connection is made anew after half a second rather than five.
HASTY = {"barrier_timeout": "500ms", "barrier_slow": "100ms"}


def secret(env, text):
    path = env.dir / "password"
    path.write_text(text)
    os.chmod(path, 0o600)
    return path


def guarded_broker(env, acl=MOSQUITTO_ACL):
    """A broker with that ACL, and a client for each device that publishes with QoS 1."""
    users = {u: u for u in ("heartwheel", "dashboard", *DEVICES)}
    env.own_broker(users=users, acl=acl)
    env.root = "nodes"
    env.device_client = {d: env.client(username=d, password=d) for d in DEVICES}


def as_monitor(env, **more):
    return {"username": "heartwheel", "password_file": secret(env, "heartwheel"), **more}


def beat(env, device, payload=b"", by=None, last="heartbeat", retain=False):
    env.beaten[device] = time.monotonic()
    env.device_client[by or device].publish(env.topic(device, last), payload, qos=1, retain=retain)


def set_acl(env, text):
    (env.broker.dir / "acl").write_text(text)
    env.broker.signal(signal.SIGHUP)


def guarded_redis(env, more=""):
    """A Redis that reads the shipped ACL file, as redis.conf would. Only the password differs, and the text `more` is
    appended."""
    text = REDIS_ACL.replace("CHANGE-ME", "heartwheel").rstrip("\n") + more + "\n"
    assert text != REDIS_ACL
    path = env.dir / "redis-heartwheel.acl"
    path.write_text(text)
    os.chmod(path, 0o644)
    conf = env.dir / "redis.conf"
    conf.write_text("include %s\n" % path)
    start_redis(env, conf)


def start_redis(env, conf):
    env.own_redis(start=False)
    env.redis_server.options = []
    launch = env.redis_server.spawn
    # A configuration file has to come first.
    env.redis_server.spawn = lambda argv, env=None: launch([argv[0], conf, *argv[1:]], env)
    env.redis_server.start()
    env.prefix = "device:"


def main_job(env, d, observer):
    """A device comes online, goes offline, returns, sends a goodbye and is forgotten. Each step is in Redis, in the retained
    status and in the event stream."""
    start, edges = len(observer.messages), len(env.edges("pump-7"))
    beat(env, "pump-7", b'{"battery":87,"data":{"a":1}}')
    env.wait_status(observer, "pump-7", True, start)
    env.wait_store("pump-7", "online")
    env.wait_status(observer, "pump-7", False, start)
    env.wait_store("pump-7", "offline")
    start = len(observer.messages)
    beat(env, "pump-7")
    env.wait_status(observer, "pump-7", True, start)
    beat(env, "pump-7", b'{"online":false}', last="status", retain=True)
    env.wait_status(observer, "pump-7", False, start)
    wait_until(lambda: len(env.edges("pump-7")) >= edges + 4, what="the goodbye in the stream")
    assert env.edges("pump-7")[edges:] == [("online", "heartbeat"), ("offline", "timeout"), ("online", "heartbeat"),
                                   ("offline", "will")]
    wait_until(lambda: d.status()["owed"] == 0, 10, "nothing to be owed")
    wait_until(lambda: not env.redis.hlen(env.key("outbox")), 10, "the outbox to be empty")
    start = len(observer.messages)
    assert d.forget("pump-7").status == 204
    wait_until(lambda: [m for m in observer.on(env.status_topic("pump-7"), start) if m.payload == b""], 10,
               "the retained status to be cleared")
    env.wait_store("pump-7", None)
    wait_until(lambda: d.device("pump-7") is None, 10, "the device to be forgotten")


@pytest.mark.parametrize("protocol,qos,readers", [("5", 0, 1), ("3.1.1", 1, 2)])
def test_the_daemon_under_both_acls(env, protocol, qos, readers):
    guarded_broker(env)
    guarded_redis(env)
    observer = env.observer("nodes/+/status", "heartwheel/+/status", username="dashboard", password="dashboard")
    password = secret(env, "heartwheel")
    d = env.daemon(timeout="500ms", monitor={"log_level": "warning"},
                   mqtt=as_monitor(env, protocol=protocol, qos=qos, readers=readers),
                   redis={"username": "heartwheel", "password_file": password})
    main_job(env, d, observer)
    wait_until(lambda: [m.json()["blind"] for m in observer.on("heartwheel/%s/status" % env.node)][-1:] == [False],
               what="presence to say that it sees")
    d.kill()
    d.awaited = True
    wait_until(lambda: observer.on("heartwheel/%s/status" % env.node)[-1].json()["online"] is False, 10,
               "the monitor's last will")
    d.start()
    main_job(env, d, observer)
    assert not env.redis.execute_command("ACL", "LOG"), "Redis refused something"
    assert d.log() == "" or "blind" in d.log(), d.log()
    assert not [l for l in d.log().splitlines() if "blind" not in l], d.log()


def commands_of(text):
    """{"get", "script|load", ...}: what the user line allows."""
    line, = [l for l in text.splitlines() if l.startswith("user heartwheel ")]
    return {w[1:] for w in line.split() if w.startswith("+")}


def test_the_redis_acl_allows_nothing_that_is_not_used(env):
    """The ACL names each command that this run used and no other command: Redis' own statistics are compared with the file."""
    guarded_redis(env)
    env.redis_db = 1
    env._redis = None
    env.redis.hset("device:outbox", "gone", "")  # for HSCAN to find
    observer = env.observer()
    env.root = "t-acl"
    observer.subscribe("t-acl/+/status")
    env.redis_server.client(0).config_resetstat()
    d = env.daemon(timeout="500ms", redis={"username": "heartwheel", "db": 1,
                                           "password_file": secret(env, "heartwheel")})
    env.beat("x")
    env.wait_status(observer, "x", False)
    d.forget("x")
    wait_until(lambda: d.device("x") is None)
    env.beat("y", {"timeout": 3600})
    wait_until(lambda: env.redis.hget(env.key("state", "y"), "own_timeout"))
    d.stop()
    d.start()
    own = {"info", "config|resetstat", "config", "acl|log", "acl", "client|setname", "hello", "auth", "xrange", "zscore",
           "exec", "multi"}
    wanted = commands_of(REDIS_ACL) - {"xrange"}  # it is for clients that resume the event stream

    def used():
        stats = env.redis.info("commandstats")
        return {k[len("cmdstat_"):] for k in stats} - own
    # The monitor asks with PING when it has been quiet for 2 s; it never is, because of the mark.
    with env.beating(["x"], 0.1):  # until its second refresh, a light one
        wait_until(lambda: used() >= wanted - {"ping"}, 10,
                   "every command to be used; missing: %s" % (wanted - used()))
    assert used() - {"hgetall", "ping"} <= wanted
    assert not env.redis.execute_command("ACL", "LOG")


def of_several():
    """The further rights that several nodes need, as the file names them."""
    rights, = re.findall(r"^# With \[cluster\] mode = mirror, put behind it: (.*)$", REDIS_ACL, re.M)
    return rights


def guarded_node(env, name):
    d = env.configure(node=name, timeout="1s", monitor={"node_id": name},
                      redis={"username": "heartwheel", "password_file": secret(env, "heartwheel")})
    d.rewrite(d.conf.read_text() + "[cluster]\nmode = mirror\nlease = 1s\n")
    return d.start(seeing=False)


def test_several_nodes_under_the_redis_acl(env):
    """A node joins, shares partitions, takes over from a killed node, passes a request on and leaves; each right of the ACL is
    used."""
    guarded_redis(env, " " + of_several())
    env.redis.config_resetstat()
    a, b = [guarded_node(env, env.node + "-" + name) for name in "ab"]

    def owned(d):
        return d.metrics().get("partitions_owned")

    wait_until(lambda: owned(a) and owned(b) and owned(a) + owned(b) == 256, 20)
    devices = ["d%d" % k for k in range(10)]
    for device in devices:
        env.beat(device, {"timeout": 3600})
    wait_until(lambda: all(d.device(device) for device in devices for d in (a, b)))
    other = wait_until(lambda: [x for x in devices if a.device(x)["node"] == b.node == b.device(x)["node"]])[0]
    assert a.forget(other).status == 204
    wait_until(lambda: not b.device(other) and not a.device(other))
    b.kill()
    b.awaited = True
    wait_until(lambda: owned(a) == 256, 20)
    b.start(seeing=False)
    wait_until(lambda: owned(a) + owned(b) == 256 and owned(b), 20)
    b.stop()
    wait_until(lambda: owned(a) == 256, 20)
    assert not env.redis.execute_command("ACL", "LOG"), env.redis.execute_command("ACL", "LOG")
    used = {k[len("cmdstat_"):] for k in env.redis.info("commandstats")}
    assert {w[1:] for w in of_several().split() if w.startswith("+")} <= used


def test_heartwheel_tasks_under_its_redis_user(env):
    """A plain task, a task that waits for its device, a cancelled task, a call, a will, a follower, and tasks between nodes."""
    guarded_redis(env)
    tasks = Tasks(env, key_prefix="task:", ack_wait="1s", watch="yes", publish="%s/out/{sender}/#" % env.root,
                  redis={"username": "heartwheel-tasks", "password_file": secret(env, "heartwheel")}).start()
    alice, pump, dock = Sender(tasks), Device(tasks, "pump"), Device(tasks, "dock")
    alice.wait(alice.submit("pump"), "complete")
    tasks.set_online("dock", False)
    held = alice.submit("dock")
    tasks.wait_state(alice.task(held), "held")
    alice.wait(alice.ask("follow", {"prefix": "d"}), "complete")
    tasks.set_online("dock", True)
    alice.wait(held, "complete")
    wait_until(lambda: [m for m in alice.client.messages if m.topic.endswith("/pending")], what="a transition of dock")
    later = alice.task(alice.submit("pump", exp=int(time.time()) + 3600, time_s=0, msg_id=None))
    tasks.request("DELETE", "/v1/tasks/" + later)
    wait_until(lambda: env.redis.exists(tasks.key("wills")), what="the place of the wills")
    will = "%s/out/dock/dead" % env.root
    assert tasks.request("PUT", "/v1/devices/dock/will", {"topic": will, "payload": 1}).status == 204
    out = env.observer(will)
    tasks.set_online("dock", False)
    wait_until(lambda: out.on(will), what="the will")
    ask = "%s/out/heartwheel/ask" % env.root
    assert tasks.request("POST", "/v1/call", {"topic": ask, "reply": ask + "/reply", "timeout": 1}).status in (403, 504)
    assert tasks.get("/v1/tasks").status == 200
    # Between nodes.
    bob = Sender(tasks, "bob")
    bob.client.publish("%s/carl/pending/bob" % env.root, {"msg_id": "w1", "action": "set", "time": 0, "payload": 1}, qos=1)
    wait_until(lambda: b"w1" in tasks.get("/v1/tasks?watched=1").body or env.redis.zcard(tasks.key("watched")), 10)
    tasks.stop()
    tasks.start()
    tasks.stop()
    assert not env.redis.execute_command("ACL", "LOG"), env.redis.execute_command("ACL", "LOG")


@pytest.mark.skipif(not BUILT, reason="built without SQLite")
def test_heartwheel_tasks_under_the_mosquitto_acl(env):
    """With the commented lines of its block and nothing more, a device receives a command from another device and answers
    it."""
    begin = MOSQUITTO_ACL.index("# heartwheel-tasks connects")
    monitors, more = MOSQUITTO_ACL[:begin], MOSQUITTO_ACL[begin:]
    topics, rest = more.split("\n\n", 1)
    at = rest.index("# For heartwheel-tasks: a device")
    acl = monitors + re.sub(r"^#(topic)", r"\1", topics, flags=re.M) + "\n\n" + rest[:at] + re.sub(
        r"^#(pattern)", r"\1", rest[at:], flags=re.M)
    assert acl.count("\ntopic") >= MOSQUITTO_ACL.count("\ntopic") + 12 and acl.count("\npattern") >= 7
    guarded_broker(env, acl)
    Tasks(env, root="nodes", key_prefix="task:", watch="yes", mqtt=as_monitor(env)).start()
    pump, app = env.observer("nodes/pump-7/+", username="pump-7", password="pump-7"), env.observer(
        "nodes/pump-8/+", username="pump-8", password="pump-8")
    env.device_client["pump-8"].publish("nodes/heartwheel/pending/pump-8", json.dumps(
        {"msg_id": "m", "action": "deliver", "time": 0, "payload": {"receiver": "pump-7", "action": "set"}}), qos=1)
    command = wait_until(lambda: pump.on("nodes/pump-7/pending"), 10, "the command")[0].json()
    for last, more in (("ack", {}), ("complete", {"value": 7})):
        env.device_client["pump-7"].publish("nodes/heartwheel/%s/pump-7" % last, json.dumps(
            {"msg_id": command["msg_id"], **more}), qos=1)
    wait_until(lambda: [m for m in app.on("nodes/pump-8/complete") if m.json()["msg_id"] == "m"], 10, "the answer")


def test_heartwheel_history_under_its_redis_user(env):
    guarded_redis(env)
    d = env.daemon(timeout="500ms", redis={"username": "heartwheel", "password_file": secret(env, "heartwheel")})
    history = History(env, Sqlite(env.own_dir("db")),
                      redis={"username": "heartwheel-history", "password_file": secret(env, "heartwheel")}).start()
    env.beat("x")
    wait_until(lambda: d.state("x") == "offline")
    wait_until(lambda: history.database.rows("SELECT COUNT(*) FROM transition")[0][0] >= 2, what="both transitions")
    history.stop()
    assert not env.redis.execute_command("ACL", "LOG"), env.redis.execute_command("ACL", "LOG")


def test_heartwheel_alert_under_its_redis_user(env):
    """A device goes offline and returns; an acknowledgement, a silence, lists, a restart."""
    guarded_redis(env)
    env.check_events = False
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()},
              redis={"username": "heartwheel-alert", "password_file": secret(env, "heartwheel")})
    a.sections = [(n, {"key_prefix": "task:"} if n == "tasks" else keys) for n, keys in a.sections]
    a.write()
    see(env)
    a.start()
    set_online(env, "pump-7", False)
    inbox.wait(("opened", "pump-7"))
    incident = a.incidents()[0]["id"]
    assert a.request("POST", "/v1/incidents/%s/ack" % incident, {"by": "ann"}).status == 204
    assert a.request("POST", "/v1/silences", {"match": "id:x", "until_online": True}).status == 201
    a.stop()
    a.start()
    assert a.json("/v1/incidents/" + incident)["by"] == "ann"
    set_online(env, "pump-7", True)
    wait_until(lambda: ("closed", "pump-7") in inbox.news(), what="the end")
    assert len(a.incidents("?state=closed")) == 1
    assert a.incidents("?state=closed&after=" + incident) == []
    wait_until(lambda: a.metrics().get("alert_commits_total") > 0)
    a.stop()
    assert not env.redis.execute_command("ACL", "LOG"), env.redis.execute_command("ACL", "LOG")


def test_the_walk_of_security_md_gives_each_daemon_its_redis_user(env):
    """The commands of docs/security.md "Redis" run below a directory; only paths differ, and chown and systemctl do nothing. A
    real Redis reads the result, and each daemon works with its own file."""
    import redis
    walk = (SRC / "docs" / "security.md").read_text().split("\n## Redis\n")[1].split("\n## ")[0]
    first, second = re.findall(r"^```sh\n(.*?)^```", walk, re.M | re.S)
    keys, = re.findall(r"^```ini\n(.*?)^```", walk, re.M | re.S)
    root = env.own_dir("root")
    etc = root / "etc" / "heartwheel"
    etc.mkdir(parents=True)
    (root / "etc" / "redis").mkdir()

    def moved(text):
        return text.replace("/etc/", "%s/etc/" % root).replace("/usr/share/doc/heartwheel/examples/", "%s/conf/" % SRC)

    def type_in(commands):
        subprocess.run(["bash", "-euc", "chown() { :; }; systemctl() { :; }\n" + moved(commands)], check=True)

    users = [l.split()[1] for l in REDIS_ACL.splitlines() if l.startswith("user ")]
    type_in(first)
    start_redis(env, root / "etc" / "redis" / "redis.conf")
    assert sorted(l.split()[1] for l in env.redis.execute_command("ACL", "LIST")) == sorted(users + ["default"])
    for user in users:
        client = redis.Redis("127.0.0.1", env.redis_server.port, username=user, password="CHANGE-ME")
        with pytest.raises(redis.exceptions.ResponseError, match="WRONGPASS"):
            client.ping()
    env.redis.execute_command("ACL", "LOG", "RESET")
    daemons = {"heartwheeld": env.configure(timeout="500ms"), "heartwheel-alert": Alert(env),
               "heartwheel-tasks": Tasks(env, key_prefix="task:")}
    if BUILT:
        daemons["heartwheel-history"] = History(env, Sqlite(env.own_dir("db")))
    for name, daemon in daemons.items():
        user = "heartwheel" if name == "heartwheeld" else name
        text = daemon.conf.read_text().replace("t%d:task:" % env.number, "task:")
        assert text.count("[redis]\n") == 1
        (etc / "monitor.conf").write_text(text.replace("[redis]\n", moved(keys)))
        type_in(second)
        daemon.conf.write_text((etc / ("monitor.conf" if name == "heartwheeld" else name + ".conf")).read_text())
        daemon.start()
        wait_until(lambda: user in {c["user"] for c in env.redis.client_list()}, what="a connection of " + user)
        if user != "heartwheel":
            unit = (SRC / "conf" / (name + ".service")).read_text()
            command, = re.findall(r"^ExecStart=.*", unit, re.M)
            drop_in = root / "etc" / "systemd" / "system" / (name + ".service.d") / "redis-user.conf"
            assert drop_in.read_text() == "[Service]\nExecStart=\n%s\n" % moved(command.replace("monitor", name))
    env.beat("pump-7")
    daemons["heartwheel-alert"].wait_open()
    assert {c["user"] for c in env.redis.client_list()} == {"default", *users} - ({"heartwheel-history"} if not BUILT else set())
    assert not env.redis.execute_command("ACL", "LOG"), env.redis.execute_command("ACL", "LOG")


@pytest.mark.parametrize("key", ["device:other", "device:state", "other", "device:eventsx"])
def test_the_redis_user_sees_no_other_key(env, key):
    import redis
    guarded_redis(env)
    env.redis.set(key, "secret")
    user = redis.Redis("127.0.0.1", env.redis_server.port, username="heartwheel", password="heartwheel")
    for command in (("GET", key), ("SET", key, "x"), ("DEL", key)):
        with pytest.raises(redis.exceptions.NoPermissionError):
            user.execute_command(*command)
    for command in (("FLUSHALL",), ("CONFIG", "GET", "*"), ("KEYS", "*"), ("EVAL", "return 1", "0"), ("SCRIPT", "FLUSH"),
                    ("PUBLISH", "a", "b"), ("ACL", "WHOAMI")):
        with pytest.raises(redis.exceptions.NoPermissionError):
            user.execute_command(*command)


def test_a_device_cannot_speak_for_another(env):
    guarded_broker(env)
    observer = env.observer("nodes/+/status", "heartwheel/+/status", username="dashboard", password="dashboard")
    d = env.daemon(timeout="1h", store={"type": "memory"}, mqtt=as_monitor(env))
    beat(env, "pump-7", by="pump-8")
    beat(env, "pump-7", b'{"online":true}', by="pump-8", last="status", retain=True)
    beat(env, "pump-8")
    wait_until(lambda: d.state("pump-8") == "online")
    assert d.device("pump-7") is None, "pump-8 spoke for pump-7"
    beat(env, "pump-7")
    wait_until(lambda: d.state("pump-7") == "online")
    env.wait_status(observer, "pump-7", True)
    start = len(observer.messages)
    beat(env, "pump-7", b'{"online":false}', by="pump-8", last="status", retain=True)
    for topic in ("heartwheel/%s/status" % env.node, "heartwheel/%s/barrier" % env.node):
        env.device_client["pump-8"].publish(topic, b'{"online":false}', qos=1, retain=True)
    beat(env, "pump-8", b'{"online":false}', last="status")
    env.wait_status(observer, "pump-8", False, start)
    assert d.state("pump-7") == "online"
    assert not observer.on("nodes/pump-7/status", start)
    assert all(m.json()["online"] for m in observer.on("heartwheel/%s/status" % env.node))
    d.wait_seeing()
    # Nor does it hear anything.
    spy = env.device_client["pump-8"]
    for f in ("nodes/#", "heartwheel/#", "#"):
        spy.client.subscribe(f)
    beat(env, "pump-7", b'{"online":false}', last="status")
    env.wait_status(observer, "pump-7", False, start)
    assert not [m for m in spy.messages if not m.topic.startswith("nodes/pump-8/")]


RIGHTS = "topic readwrite heartwheel/+/barrier"


@pytest.mark.parametrize("left,protocol,qos,missing", [
    ("read", "5", 0, r"refused by the broker; .* to write \(and to read\) that topic"),
    ("write", "5", 0, r"accepted by the broker .* to read that topic"),
    (None, "5", 1, r"refused by the broker; .* to write \(and to read\) that topic"),
    ("write", "3.1.1", 1, "to write and to read that topic"),  # this broker says nothing of it
    ("read", "3.1.1", 0, "to write and to read that topic"),
])
def test_a_barrier_without_its_rights(env, left, protocol, qos, missing):
    """The monitor is blind, one log line names the topic and the right, the attempts become rarer, and the monitor sees once
    the right is given."""
    assert MOSQUITTO_ACL.count(RIGHTS) == 1
    denied = MOSQUITTO_ACL.replace(RIGHTS, "topic %s heartwheel/+/barrier" % left if left else "")
    guarded_broker(env, denied)
    d = env.daemon(seeing=False, timeout="1s", monitor={"log_level": "warning"}, store={"type": "memory"},
                   mqtt=as_monitor(env, protocol=protocol, qos=qos, **HASTY))
    wait_until(lambda: d.status()["blind_cause"] == "barrier", 10, "blind: barrier")
    topic = re.escape("heartwheel/%s/barrier" % env.node)

    def said():
        return [l for l in d.log().splitlines() if re.search(topic, l)]
    wait_until(said, 5, "a line that names the topic")
    reconnects = d.metrics().get("reconnects_total")
    wait_until(lambda: d.metrics().get("reconnects_total") >= reconnects + 2, 10, "it to try again")
    throughout(lambda: d.status()["blind_cause"] == "barrier", 2, "blind: barrier")
    assert len(said()) == 1, d.log()
    assert re.search(missing, said()[0]), said()
    assert d.metrics().get("reconnects_total") <= reconnects + 6, "it hammers the broker"
    beat(env, "pump-7")
    set_acl(env, MOSQUITTO_ACL)
    d.wait_seeing(30)
    beat(env, "pump-7")
    wait_until(lambda: d.state("pump-7") == "online")


@pytest.mark.parametrize("right, what", [
    ("topic write nodes/+/status\n", "status on nodes/+/status"), ("topic write heartwheel/+/status\n", "status on heartwheel/NODE/status"),
    ("#topic write homeassistant/binary_sensor/+/config\n", "message for Home Assistant on homeassistant/binary_sensor/+/config")])
def test_a_retained_message_without_its_right(env, right, what):
    """The log names the topic once, and the right that is missing."""
    assert MOSQUITTO_ACL.count(right) == 1
    guarded_broker(env, MOSQUITTO_ACL.replace(right, ""))
    d = env.daemon(mqtt={"homeassistant": "yes" if "Assistant" in what else "no", **as_monitor(env)})
    for device in DEVICES:
        beat(env, device)
    line = "refused a retained %s: Not authorized: give heartwheel the right to write that topic" % what.replace("NODE", env.node)
    wait_until(lambda: line in d.log(), 10, "a line that names the topic")
    throughout(lambda: d.log().count(line) == 1, 1)


def test_rights_that_are_taken_away_and_given_back(env):
    """The rights are taken away and given back while the daemon runs: no device is called offline for that."""
    guarded_broker(env)
    d = env.daemon(timeout="1s", store={"type": "memory"}, mqtt=as_monitor(env, **HASTY))
    with Beating(env.device_client["pump-7"], ["nodes/pump-7/heartbeat"]):
        wait_until(lambda: d.state("pump-7") == "online")
        set_acl(env, MOSQUITTO_ACL.replace(RIGHTS, ""))
        wait_until(lambda: d.status()["blind_cause"] == "barrier", 30, "blind: barrier")
        throughout(lambda: d.state("pump-7") == "online", 2)
        set_acl(env, MOSQUITTO_ACL)
        d.wait_seeing(30)
        throughout(lambda: d.state("pump-7") == "online", 1.5)
