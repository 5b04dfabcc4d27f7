# SPDX-License-Identifier: MIT
"""Wrong passwords, wrong certificates and unreachable servers: one clear log line each, and the daemon goes on trying."""
import os
import re

import pytest

from hw_servers import Tls
from hw_wait import throughout, wait_until


def secret(env, name, text):
    path = env.dir / name
    path.write_text(text)
    os.chmod(path, 0o600)
    return path


def lines(d, *patterns):
    """The log lines that match any of the patterns. The daemons here log warnings and errors only."""
    return [l for l in d.log().splitlines() if any(re.search(p, l, re.I) for p in patterns)]


QUIET = {"log_level": "warning"}


# --- MQTT


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_mqtt_password(env, protocol):
    env.own_broker(users={"hw": "se cret#1", "test": "test"})
    env._publisher = env.client(username="test", password="test")
    d = env.daemon(mqtt={"username": "hw", "password_file": secret(env, "pw", "se cret#1\n"), "protocol": protocol})
    env.beat("x")
    env.wait_store("x", "offline")
    assert "se cret" not in d.log()


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_wrong_mqtt_password_is_said_once_and_tried_again(env, protocol):
    env.own_broker(users={"hw": "right", "test": "test"})
    d = env.daemon(seeing=False, monitor=QUIET, mqtt={
        "username": "hw", "password_file": secret(env, "pw", "Wr0ngSecret"), "protocol": protocol})
    wait_until(lambda: lines(d, "password"), 5, "a line about the password")
    throughout(lambda: d.alive, 2.5)
    said = lines(d, "password", "authori[sz]", "credential")
    assert len(said) == 1, said
    assert "Wr0ngSecret" not in d.log()
    s = d.status()
    assert s["blind"] is True and s["blind_cause"] == "link" and s["mqtt"] != "up"
    assert len(env.broker.log().splitlines()) < 60, "it hammers the broker"
    env.broker.reload_users({"hw": "Wr0ngSecret", "test": "test"})
    d.wait_seeing(40)
    env._publisher = env.client(username="test", password="test")
    env.beat("x")
    env.wait_store("x", "offline")


def test_unreachable_broker_is_said_once_and_tried_again(env):
    env.own_broker(start=False)
    d = env.daemon(seeing=False, monitor=QUIET)
    wait_until(lambda: lines(d, r"\b%d\b" % env.broker.port), 5, "a line that names the broker's port")
    throughout(lambda: d.alive, 2.5)
    said = lines(d, r"\b%d\b" % env.broker.port)
    assert len(said) == 1, said
    assert "127.0.0.1" in said[0] and "refused" in said[0].lower(), said
    env.broker.start()
    d.wait_seeing(30)


def test_a_broker_name_that_nobody_knows(env):
    d = env.daemon(seeing=False, monitor=QUIET, mqtt={"host": "no-such-host.invalid"})
    wait_until(lambda: lines(d, "no-such-host.invalid"), 15, "a line that names the host")
    throughout(lambda: d.answers(), 2)
    assert len(lines(d, "no-such-host.invalid")) == 1, d.log()
    d.stop()


def test_a_broker_that_answers_nothing(env):
    """A port that accepts connections and sends nothing: the API answers, and the stop is not delayed."""
    import socket
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(16)
        d = env.daemon(seeing=False, mqtt={"port": deaf.getsockname()[1]}, monitor={"stop_timeout": "1s"})
        throughout(lambda: d.status()["blind"] is True, 1.5)
        d.stop(timeout=6)


def test_a_broker_that_is_none(env):
    """The port of Redis is configured as the broker's, by mistake."""
    d = env.daemon(seeing=False, mqtt={"port": env.redis_server.port})
    throughout(lambda: d.status()["blind"] is True, 2)


def test_mqtt_over_tls(env, tls):
    env.own_broker(tls=tls)
    env._publisher = env.client(tls=tls)
    env.daemon(mqtt={"tls_ca": tls.ca})
    env.beat("x")
    env.wait_store("x", "offline")


def test_mqtt_over_tls_with_a_client_certificate(env, base, tmp_path):
    tls = Tls(env.own_dir("tls"))
    tls.require_client = True
    env.own_broker(tls=tls)
    env._publisher = env.client(tls=tls)
    env.daemon(mqtt={"tls_ca": tls.ca, "tls_cert": tls.client_cert, "tls_key": tls.client_key})
    env.beat("x")
    env.wait_store("x", "offline")


def test_a_broker_whose_certificate_nobody_vouches_for(env, tls, other_tls):
    env.own_broker(tls=tls)
    d = env.daemon(seeing=False, monitor=QUIET, mqtt={"tls_ca": other_tls.ca})
    wait_until(lambda: lines(d, "certificate", "tls"), 5, "a line about the certificate")
    throughout(lambda: d.status()["blind"] is True, 2.5)
    said = lines(d, "certificate", "tls")
    assert len(said) == 1, said


def test_a_ca_file_that_is_not_there(env, tls):
    env.own_broker(tls=tls)
    """Nothing is started without it. One that goes away later is named when it is needed."""
    ca = env.dir / "no-such-ca.crt"
    d = env.configure(monitor=QUIET, mqtt={"tls_ca": ca})
    d.start(seeing=False, ready=False)
    assert d.wait() == 2 and len(lines(d, "no-such-ca.crt")) == 1, d.log()
    ca.write_bytes(tls.ca.read_bytes())
    d.start()
    ca.unlink()
    env.broker.stop()
    env.broker.start()
    wait_until(lambda: len(lines(d, "no-such-ca.crt")) == 2, 10, "the file to be named")


def test_an_outbox_that_is_older_than_we_are(env):
    """Redis returns with an old outbox: a clearing of a device that exists, one of a device that does not, and, of an earlier
    version, a status. Each is published once more, then its entry is removed."""
    env.own_redis()
    d = env.daemon(timeout="1h")
    env.beat("x")
    env.beat("y")
    outbox = env.key("outbox")
    wait_until(lambda: env.redis.exists(env.key("state", "x"), env.key("state", "y")) == 2 and d.status()["owed"] == 0)
    env.redis.hset(outbox, mapping={"x": '{"online":false,"by":"%s","seq":1}' % env.node, "y": "", "forgotten": ""})
    env.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wait_until(lambda: env.redis.hlen(outbox) == 0, 10, "the outbox to be empty")
    wait_until(lambda: d.status()["devices"] == 2 and d.status()["owed"] == 0)
    for i in "xy":
        assert env.hash(i)["state"] == "online"
        status = env.retained_status(i)
        assert status["online"] and status["seq"] == int(env.hash(i)["seq"])


def test_a_status_that_may_not_be_published(env):
    """MQTT 5: a PUBACK with a reason code of 0x80 or more is a refusal. The status stays pending, and the log names the
    reason."""
    env.own_broker(users={"hw": "p", "test": "t"}, acl=(
        "user hw\ntopic read #\ntopic write heartwheel/#\nuser test\ntopic readwrite #\n"))
    env._publisher = env.client(username="test", password="t")
    d = env.daemon(timeout="1h", mqtt={"username": "hw", "password_file": secret(env, "pw", "p"), "protocol": "5"})
    env.beat("x")
    env.wait_store("x", "online")
    wait_until(lambda: lines(d, "not authori[sz]ed"), 10, "the refusal to be named")
    throughout(lambda: d.status()["owed"] >= 1, 1.0)
    assert d.state("x") == "online"


# --- Redis


def test_redis_password(env):
    env.own_redis(password="geheim 1")
    d = env.daemon(redis={"password_file": secret(env, "rpw", "geheim 1\n")})
    env.beat("x")
    env.wait_store("x", "offline")
    assert "geheim" not in d.log()


def test_redis_user(env):
    env.own_redis()
    env.redis.execute_command("ACL", "SETUSER", "hw", "on", ">pass", "~*", "&*", "+@all")
    d = env.daemon(redis={"username": "hw", "password_file": secret(env, "rpw", "pass")})
    env.beat("x")
    env.wait_store("x", "offline")
    users = {c["user"] for c in env.redis.client_list()}
    assert "hw" in users and d.status()["redis"] == "up"


def test_redis_unix_socket_and_db(env):
    path = env.dir / "redis.sock"
    env.own_redis(unix_socket=path)
    env.redis_db = 3
    env._redis = None
    d = env.daemon(redis={"unix_socket": path, "port": 1, "db": 3})
    env.beat("x")
    env.wait_store("x", "offline")
    assert env.redis_server.client(0).dbsize() == 0
    d.stop()
    d.start()
    wait_until(lambda: d.state("x") == "offline")


@pytest.mark.parametrize("kind", ["wrong", "missing", "needless"])
def test_wrong_redis_password_is_said_once_and_tried_again(env, kind):
    env.own_redis(password=None if kind == "needless" else "right")
    redis = {} if kind == "missing" else {"password_file": secret(env, "rpw", "Wr0ngSecret")}
    if kind == "needless":
        redis["username"] = "nobody-there"
    d = env.daemon(seeing=False, monitor=QUIET, redis=redis)
    wait_until(lambda: lines(d, "password", "auth"), 5, "a line about the password")
    throughout(lambda: d.alive, 2.5)
    said = lines(d, "password", "auth")
    assert len(said) == 1, said
    assert "Wr0ngSecret" not in d.log() and d.status()["redis"] != "up"
    wait_until(lambda: d.status()["mqtt"] == "up")
    if kind == "wrong":
        env.redis.config_set("requirepass", "Wr0ngSecret")
        env.redis_server.password = "Wr0ngSecret"
    elif kind == "missing":
        env.redis.config_set("requirepass", "")
        env.redis_server.password = None
    else:
        env.redis.execute_command("ACL", "SETUSER", "nobody-there", "on", ">Wr0ngSecret", "~*", "&*", "+@all")
    env._redis = None
    wait_until(lambda: d.status()["redis"] == "up", 40)
    env.beat("x")
    env.wait_store("x", "offline")


def test_unreachable_redis_is_said_once_and_tried_again(env):
    env.own_redis(start=False)
    d = env.daemon(seeing=False, monitor=QUIET)
    wait_until(lambda: lines(d, r"\b%d\b" % env.redis_server.port), 5, "a line that names the port of Redis")
    throughout(lambda: d.alive, 2.5)
    said = lines(d, r"\b%d\b" % env.redis_server.port)
    assert len(said) == 1 and "127.0.0.1" in said[0] and "refused" in said[0].lower(), said
    env.redis_server.start()
    wait_until(lambda: d.status()["redis"] == "up", 30)


def test_a_redis_socket_that_is_not_there(env):
    d = env.daemon(seeing=False, monitor=QUIET, redis={"unix_socket": env.dir / "no-such.sock"})
    wait_until(lambda: lines(d, "no-such.sock"), 5, "a line that names the socket")
    throughout(lambda: d.alive, 2)
    assert len(lines(d, "no-such.sock")) == 1, d.log()


def test_a_redis_name_that_nobody_knows(env):
    d = env.daemon(seeing=False, monitor=QUIET, redis={"host": "no-such-host.invalid"})
    wait_until(lambda: lines(d, "no-such-host.invalid"), 15, "a line that names the host")
    throughout(lambda: d.answers(), 2)
    assert len(lines(d, "no-such-host.invalid")) == 1, d.log()


def test_a_db_that_is_not_there(env):
    d = env.daemon(seeing=False, monitor=QUIET, redis={"db": 15000})
    wait_until(lambda: lines(d, "15000", r"\bdb\b"), 5, "a line about the db")
    throughout(lambda: d.alive, 2)
    assert len(lines(d, "15000", r"\bdb\b")) == 1, d.log()
    assert d.status()["redis"] != "up"


def test_a_redis_user_without_rights(env):
    """NOPERM: the log names it, and everything is written once the user has the rights."""
    env.own_redis()
    env.redis.execute_command("ACL", "SETUSER", "hw", "on", ">pass", "~nothing", "+ping", "+auth", "+select", "+hello")
    d = env.daemon(seeing=False, monitor=QUIET, timeout="1h",
                   redis={"username": "hw", "password_file": secret(env, "rpw", "pass")})
    env.beat("x")
    wait_until(lambda: lines(d, "NOPERM", "permission"), 10, "a line that names the missing rights")
    throughout(lambda: d.alive, 2)
    env.redis.execute_command("ACL", "SETUSER", "hw", "~*", "&*", "+@all")
    env.beat("x")
    env.wait_store("x", "online", 40)


def test_a_redis_that_is_full(env):
    """OOM: transitions stay pending, the log reports it once, and everything is written when there is room."""
    env.own_redis()
    d = env.daemon(timeout="1h", monitor=QUIET)
    env.beat("before")
    env.wait_store("before", "online")
    env.redis.config_set("maxmemory", "1")
    for k in range(50):
        env.beat("x%d" % k)
    wait_until(lambda: lines(d, "OOM", "maxmemory"), 10, "a line about the full Redis")
    observer = env.observer()
    for k in range(50):
        env.wait_status(observer, "x%d" % k, True)
    # Of the history and of what heartwheel-alert reads it says so as well.
    said = [l for l in lines(d, "OOM", "maxmemory") if ":device:sight " not in l and "parent_heard" not in l]
    assert len(said) == 1, said
    env.redis.config_set("maxmemory", "0")
    for k in range(50):
        env.wait_store("x%d" % k, "online", 30)
    assert len(env.events()) == 51
    wait_until(lambda: d.status()["owed"] == 0)


def test_a_redis_that_is_full_for_long(env):
    """OOM for longer than a connected key lives without a refresh, which is 10 s at least: the keys of devices that beat
    remain, also of devices that came just before; each death meanwhile is reported once, afterwards."""
    env.own_redis()
    d = env.daemon(timeout="2s", monitor=QUIET)
    with env.beating(["old"]):
        env.wait_store("old", "online")
        with env.beating(["new"]):
            env.beat("dies")
            for device in "new", "dies":
                env.wait_store(device, "online")
            env.redis.config_set("maxmemory", "1")
            wait_until(lambda: lines(d, "OOM", "maxmemory"), 10, "a line about the full Redis")
            throughout(lambda: env.redis.exists(env.key("connected", "old"), env.key("connected", "new")) == 2, 12)
            assert env.hash("dies")["state"] == "online" and env.edges("dies") == [("online", "heartbeat")]
            wait_until(lambda: not env.redis.exists(env.key("connected", "dies")))
            env.redis.config_set("maxmemory", "0")
            env.wait_store("dies", "offline")
            assert env.edges("dies") == [("online", "heartbeat"), ("offline", "timeout")]
            for device in "old", "new":
                assert env.edges(device) == [("online", "heartbeat")]
            wait_until(lambda: d.status()["owed"] == 0)


def test_a_redis_that_lost_its_scripts(env):
    env.own_redis()
    env.daemon(timeout="500ms")
    env.beat("x")
    env.wait_store("x", "online")
    env.redis.script_flush()
    env.wait_store("x", "offline")
    assert env.edges("x") == [("online", "heartbeat"), ("offline", "timeout")]


def test_a_redis_that_closes_its_connections(env):
    env.own_redis()
    d = env.daemon(timeout="500ms")
    for k in range(8):
        env.beat("x%d" % k)
        env.redis.client_kill_filter(_type="normal", skipme=True)
    for k in range(8):
        env.wait_store("x%d" % k, "offline", 20)
        assert env.edges("x%d" % k) == [("online", "heartbeat"), ("offline", "timeout")]
    assert d.metrics().get("reconnects_total") >= 1
