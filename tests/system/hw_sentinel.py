# SPDX-License-Identifier: MIT
"""A private Redis with a replica, and Sentinels that watch it. All waits are long: on a busy machine Sentinels take their time,
and may fail over once more than requested."""
import shutil

import redis

from hw_process import Server
from hw_servers import Redis
from hw_wait import wait_until

NAME = "mymaster"
PATIENCE = 180  # seconds for Sentinels to agree
QUICK = ["--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"]


class Sentinel(Server):
    """A Sentinel of `master`, a Redis. What it has learned stays in its file over a restart."""

    name = "redis-sentinel"

    def __init__(self, directory, master, quorum=2, down_after_ms=1000):
        super().__init__(directory)
        self.master, self.quorum, self.down_after_ms = master, quorum, down_after_ms

    def launch(self):
        conf, port = self.dir / "sentinel.conf", "port %d" % self.port
        if not conf.exists() or port not in conf.read_text().split("\n"):
            conf.write_text("\n".join([
                port, "bind 127.0.0.1", "dir %s" % self.dir, "daemonize no",
                "sentinel monitor %s 127.0.0.1 %d %d" % (NAME, self.master.port, self.quorum),
                "sentinel down-after-milliseconds %s %d" % (NAME, self.down_after_ms),
                "sentinel failover-timeout %s 3000" % NAME]) + "\n")
        self.spawn([shutil.which("redis-server") or "/usr/bin/redis-server", conf, "--sentinel"])

    def client(self):
        return redis.Redis("127.0.0.1", self.port, socket_timeout=30, decode_responses=True)

    def answers(self):
        try:
            return self.client().ping()
        except redis.exceptions.RedisError:
            return False

    def named(self):
        """The port of the master that this Sentinel names."""
        try:
            return int(self.client().execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", NAME)[1])
        except (redis.exceptions.RedisError, TypeError):
            return None

    def is_ready(self, others):
        """Whether it knows a replica that can be promoted, and all other Sentinels."""
        try:
            replicas = self.client().sentinel_slaves(NAME)
            known = self.client().execute_command("SENTINEL", "CKQUORUM", NAME)  # an error while there is none
            return (any(r["flags"] == "slave" and r["master-link-status"] == "ok" for r in replicas)
                    and known.startswith("OK %d " % (others + 1)))
        except redis.exceptions.RedisError:
            return False


def role(server):
    try:
        return server.client().role()[0]
    except redis.exceptions.RedisError:
        return None


class Guarded:
    """Two servers of an `env`, a master and its replica, and three Sentinels."""

    def __init__(self, env, sentinels=3):
        self.env = env
        first = env.own_redis(options=QUICK)
        second = Redis(env.own_dir("rd"), options=QUICK)
        env.servers.append(second)
        second.start().client().replicaof("127.0.0.1", first.port)
        self.servers = [first, second]
        self.sentinels = [Sentinel(env.own_dir("se"), first) for _ in range(sentinels)]
        env.servers.extend(self.sentinels)

    def start(self):
        for s in self.sentinels:
            s.start()
        return self

    def reserve(self):
        """The ports are known, and no server listens on them."""
        for s in self.sentinels:
            self.env.reserve(s)
        return self

    def conf(self, **more):
        """The keys of [redis]. The port there is one without a server: it must not be used."""
        return {"port": 1, "sentinels": ", ".join("127.0.0.1:%d" % s.port for s in self.sentinels), "master": NAME,
                **more}

    def agreed(self):
        """The server that all Sentinels name, if it reports that it is the master."""
        ports = {s.named() for s in self.sentinels}
        for r in self.servers:
            if ports == {r.port} and r.alive and role(r) == "master":
                return r
        return None

    def master(self, but=None):
        """Waits for a master other than `but`; the env uses it from now on."""
        def find():
            m = self.agreed()
            return m if m is not but else None
        m = wait_until(find, PATIENCE, "the Sentinels to agree on a master", interval=0.1)
        self.env.redis_server, self.env._redis = m, None
        return m

    def other(self, server):
        return self.servers[1] if server is self.servers[0] else self.servers[0]

    def cut_off(self):
        """From now on the replica gets no writes of the master, and can be promoted for some seconds."""
        m = self.settled()
        m.client().execute_command("ACL", "SETUSER", "default", "-psync", "-sync")
        m.client().client_kill_filter(_type="slave")
        wait_until(lambda: self.other(m).client().info("replication")["master_link_status"] == "down", PATIENCE,
                   "the replica to be cut off", interval=0.01)
        return m

    def is_in_step(self):
        """Whether the replica has all that the master has written."""
        m = self.agreed()
        if m is None or role(self.other(m)) != "slave":
            return False
        try:
            offset = m.client().info("replication")["master_repl_offset"]
            return self.other(m).client().info("replication").get("slave_repl_offset", -1) >= offset
        except redis.exceptions.RedisError:
            return False

    def settled(self):
        """Waits until a failover is possible and would lose nothing; returns the master."""
        wait_until(lambda: all(s.is_ready(len(self.sentinels) - 1) for s in self.sentinels) and self.is_in_step(),
                   PATIENCE, "replica and Sentinels to know each other", interval=0.1)
        return self.master()
