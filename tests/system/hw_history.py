# SPDX-License-Identifier: MIT
"""heartwheel-history, the databases that it writes, and streams as the monitor writes them."""
import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
from pathlib import Path

from hw_build import BUILD
from hw_daemon import render
from hw_process import Server
from hw_program import Program
from hw_wait import PATIENCE, now_ms, wait_until

HEARTWHEEL_HISTORY = BUILD / "heartwheel-history"
BUILT = HEARTWHEEL_HISTORY.exists()
MARIADBD = next((p for p in ("/usr/sbin/mariadbd", "/usr/sbin/mysqld") if os.path.exists(p)), None)


class Sqlite:
    """A file of the test's own."""

    mysql = False

    def __init__(self, directory):
        self.path = Path(directory) / "history.db"
        self.address = "sqlite:%s" % self.path

    def rows(self, query):
        db = sqlite3.connect("file:%s?mode=ro" % self.path, uri=True, timeout=20)
        try:
            return db.execute(query).fetchall()
        finally:
            db.close()

    def change(self, query):
        """Changes the database, as another program would."""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None, timeout=20)) as db:
            return db.execute(query).rowcount


class MariaDB(Server):
    """A private mariadbd with its data in the test's directory. `address`: user and address of the worker; root's by
    default."""

    name = "mariadbd"
    mysql = True
    patience = 60

    def __init__(self, directory, options=()):
        super().__init__(directory)
        self.options, self.base, self.socket = options, "history", self.dir / "s"
        self.address = "mysql://root@[%s]/%s" % (self.socket, self.base)

    def launch(self):
        data = self.dir / "data"
        user = ["--user=root"] if os.getuid() == 0 else []
        if not data.exists():
            subprocess.run(["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal",
                            "--skip-test-db", "--datadir=%s" % data, *user], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        self.spawn([MARIADBD, "--no-defaults", "--datadir=%s" % data, "--socket=%s" % self.socket, "--port=%d" % self.port,
                    "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0",
                    "--innodb-log-file-size=8M", "--pid-file=%s" % (self.dir / "pid"), *self.options, *user])

    def query(self, text, base="", user="root"):
        return subprocess.run(["mariadb", "--no-defaults", "--skip-ssl-verify-server-cert", "-u" + user, "-S", str(self.socket),
                               "-N", "-B", "-e", text, base], capture_output=True, text=True)

    def answers(self):
        return self.query("CREATE DATABASE IF NOT EXISTS history").returncode == 0

    def rows(self, query):
        done = self.query(query, self.base)
        assert done.returncode == 0, done.stderr
        def value(text):
            return None if text == "NULL" else int(text) if text.lstrip("-").isdigit() else text
        return [tuple(value(v) for v in line.split("\t")) for line in done.stdout.splitlines()]

    def change(self, query):
        done = self.query(query + "; SELECT ROW_COUNT()", self.base)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)


class History(Program):
    """One worker on a database."""

    name = "heartwheel-history"

    def __init__(self, env, database, **options):
        super().__init__(env.own_dir("hh"))
        self.database, self.socket = database, self.dir / "h.sock"
        redis = {"host": "127.0.0.1", "port": env.redis_server.port, "key_prefix": env.prefix}
        self.conf.write_text(render([
            ("redis", {**redis, **options.pop("redis", {})}),
            ("history", {"database": database.address, "socket": self.socket, "pid_file": self.pid_file, "user": "",
                         "log": "stderr", **options})]))
        env.daemons.append(self)

    def start(self, ready=True, args=("-f",)):
        assert not self.alive
        self.spawn([HEARTWHEEL_HISTORY, *args, "-c", self.conf])
        if ready:
            wait_until(lambda: not self.alive or self.answers(), what="heartwheel-history to answer")
            assert self.alive, self.log()[-3000:]
        return self

    def status(self):
        return self.get("/v1/history/status").json()

    def place(self):
        """How many events the database has read; -1: none yet."""
        try:
            return (self.database.rows("SELECT n FROM position WHERE stream = 'device:events'") or [(-1,)])[0][0]
        except (sqlite3.OperationalError, AssertionError):
            return -1


class Scribe:
    """Writes transitions into Redis as the monitor does, the stream's entry and the hash together, and remembers them all."""

    def __init__(self, env, seed=None, devices=50, start_ms=None, groups=2):
        self.env, self.random = env, random.Random(seed)
        self.stream, self.sight, self.tasks = env.key("events"), env.key("sight"), "task:events"
        self.incidents = env.key("incident_events")
        self.devices = ["d%d" % i for i in range(devices)]
        self.group = {d: "g%d" % (i % groups) for i, d in enumerate(self.devices)}
        self.now, self.state, self.seq = start_ms or now_ms() - 40 * 86_400_000, {}, {}
        self.written = {}  # {stream id: entry}

    def entry(self, device, state, at_ms, reason=None):
        self.seq[device] = max(self.seq.get(device, 0) + 1, at_ms)
        self.state[device] = state
        reason = reason or {"online": "heartbeat", "offline": "timeout", "forgotten": "operator", "unseen": "never_seen"}[state]
        return {"id": device, "state": state, "reason": reason, "time_ms": str(at_ms), "last_seen_ms": str(at_ms - 5),
                "group": self.group.get(device, "default"), "node": "n", "seq": str(self.seq[device])}

    def next(self):
        """The next transition of a random device."""
        device = self.random.choice(self.devices)
        self.now += self.random.randrange(1, 2000)
        state = "online" if self.state.get(device) != "online" else "offline"
        return self.entry(device, state, self.now)

    def write(self, entries, maxlen=None):
        p = self.env.redis.pipeline(transaction=True)
        for e in entries:
            p.xadd(self.stream, e, maxlen=maxlen, approximate=False)
            if e["state"] == "forgotten":
                p.delete(self.env.key("state", e["id"]))
            else:
                p.hset(self.env.key("state", e["id"]),
                       mapping={"state": e["state"], "since": e["time_ms"], "last_seen": e["last_seen_ms"],
                                "reason": e["reason"], "group": e["group"], "node": e["node"], "seq": e["seq"]})
        ids = [r for r in p.execute() if isinstance(r, str)]
        assert len(ids) == len(entries)
        self.written.update(zip(ids, entries))
        return ids

    def some(self, n, batch=200, **options):
        while n > 0:
            self.write([self.next() for _ in range(min(n, batch))], **options)
            n -= batch

    def saw(self, state, from_ms, to_ms, cause="", node="n"):
        self.env.redis.xadd(self.sight, {"node": node, "state": state, "cause": cause, "from_ms": from_ms, "to_ms": to_ms})

    def plan(self, device, from_ms, to_ms, silence="wash"):
        """An outage that a planned silence covered, as heartwheel-alert writes it."""
        self.env.redis.xadd(self.incidents, {"what": "planned", "device": device, "from_ms": from_ms, "to_ms": to_ms, "silence": silence})


FIELDS = "id", "seq", "time_ms", "state", "reason", "last_seen_ms", "group", "node"


def in_sql(db):
    """{id in the stream: entry} of the transitions in SQL."""
    out = {}
    for row in db.rows("SELECT d.id, t.seq, t.at_ms, t.state, t.reason, t.last_seen_ms, t.grp, t.node, t.entry "
                       "FROM transition t JOIN device d ON d.dev = t.dev WHERE t.found = 0"):
        at = "%d-%d" % (row[8] >> 21, row[8] & ((1 << 21) - 1))
        assert at not in out
        out[at] = {k: str(v) for k, v in zip(FIELDS, row)}
    return out


def gaps(db):
    return db.rows("SELECT stream, `after`, `before`, lost FROM gap ORDER BY found_ms")


def wait_read(h, env, stream="device:events", timeout=None):
    """Waits until the worker has read the stream to its end."""
    key = env.key(stream[len("device:"):]) if stream.startswith("device:") else stream

    def read():
        last = env.redis.xinfo_stream(key)["last-generated-id"] if env.redis.exists(key) else "0-0"
        s = h.status()
        at = next(one["at"] for one in s["streams"] if one["stream"] == stream)
        return at == last and not s["reading_back"]
    wait_until(read, timeout or PATIENCE, "%s to be read" % stream)


def check_outages(db):
    """Each device's outages agree with its transitions, as far as these have no gap."""
    history = {}
    for dev, at, state in db.rows("SELECT dev, at_ms, state FROM transition ORDER BY dev, seq"):
        history.setdefault(dev, []).append((at, state))
    want = {}
    for dev, edges in history.items():
        opened = None
        for at, state in edges:
            if state == "offline" and opened is None:
                opened = at
            elif state != "offline" and opened is not None:
                want[(dev, opened)] = at
                opened = None
        if opened is not None:
            want[(dev, opened)] = None
    have = {(dev, a): b for dev, a, b in db.rows("SELECT dev, from_ms, to_ms FROM outage WHERE reason <> 'forgotten'")}
    assert have == want, (set(have.items()) ^ set(want.items()))
    counted = dict(db.rows("SELECT dev, SUM(outages) FROM month GROUP BY dev"))
    length = dict(db.rows("SELECT dev, SUM(down_ms) FROM month GROUP BY dev"))
    for dev in history:
        mine = {k: v for k, v in want.items() if k[0] == dev}
        assert counted.get(dev, 0) == len(mine)
        assert length.get(dev, 0) == sum(b - a[1] for a, b in mine.items() if b is not None)


def no_room(path):
    """Mounts a file system of 4 MB there; False without the right to do so."""
    return os.getuid() == 0 and shutil.which("mount") is not None and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "hw", str(path)], capture_output=True).returncode == 0


def fill(path):
    """Writes `filler` there until there is no room."""
    fd = os.open(path / "filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, b"x" * 4096)
    os.close(fd)
