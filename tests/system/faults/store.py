# SPDX-License-Identifier: MIT
"""Faults of Redis. The wheel goes on, deaths are reported by MQTT in time, and within one timeout of its return Redis has the
true state. The loop is never blocked."""
import signal
import time

import redis

from hw_wait import pass_time, wait_until


class Fault:
    """`lossy`: Redis returns without part of its data."""

    lossy = False
    least = 0.5  # the fault's length in timeouts
    quiet = False  # Redis answers no client during the fault

    def __init__(self, world, rng):
        self.world, self.rng = world, rng
        self.server, self.redis, self.key = world.env.redis_server, world.env.redis, world.env.key

    def before(self):
        """Before any device stops."""

    def begin(self, lasts):
        raise NotImplementedError

    def during(self):
        """Again and again during the fault."""

    def end(self):
        """Ends the fault; returns when Redis serves again."""

    def after(self):
        """After all checks."""


class Empty(Fault):
    """Redis is killed, and restarts without a file."""
    lossy = quiet = True

    def begin(self, lasts):
        self.server.kill()

    def end(self):
        self.server.start()


class Old(Fault):
    """Redis restarts with a dump from before the last changes."""
    lossy = quiet = True

    def before(self):
        self.redis.save()
        self.changed = self.rng.sample(self.world.fleet.living(), 2)
        self.world.fleet.silence(*self.changed)
        self.world.agree(self.world.timeout + 10)
        self.world.fleet.revive(self.changed[0])
        self.world.agree(self.world.timeout + 10)
        self.world.new_run()

    def begin(self, lasts):
        self.server.kill()

    def end(self):
        self.server.start()

    def after(self):
        self.server.dir.joinpath("dump.rdb").unlink()
        self.world.fleet.revive(*self.changed)


class Flush(Fault):
    """FLUSHALL, with the link up."""
    lossy = True
    least = 0.0

    def begin(self, lasts):
        pass

    def end(self):
        self.redis.flushall()


class Loading(Fault):
    """Redis restarts with all its data, and takes its time to load it."""
    quiet = True

    def begin(self, lasts):
        pipe = self.redis.pipeline(transaction=False)
        for k in range(100):
            pipe.set("ballast:%d" % k, "x" * 200)
        pipe.execute()
        keys = self.redis.dbsize()
        self.redis.connection_pool.disconnect()
        try:
            self.redis.shutdown(save=True)
        except redis.exceptions.ConnectionError:
            pass
        self.server.wait()
        self.options = self.server.options
        self.server.options = self.options + ["--key-load-delay", str(int(lasts * 1e6 / keys)),
                                              "--loading-process-events-interval-bytes", "1024"]
        self.server.launch()

    def end(self):
        wait_until(self.server.answers, 15, "Redis to have loaded")
        self.server.options = self.options
        self.server.dir.joinpath("dump.rdb").unlink()
        self.redis.config_set("key-load-delay", 0)


class Readonly(Fault):
    def begin(self, lasts):
        self.redis.replicaof("127.0.0.1", 1)

    def end(self):
        self.redis.replicaof("NO", "ONE")


class Full(Fault):
    """OOM."""

    def begin(self, lasts):
        self.redis.config_set("maxmemory", 1)

    def end(self):
        self.redis.config_set("maxmemory", 0)


class Misconf(Fault):
    """Redis cannot save, and so refuses writes."""

    def before(self):
        if self.redis.info("persistence")["rdb_last_bgsave_status"] == "ok":
            self.redis.config_set("stop-writes-on-bgsave-error", "no")
            self.redis.config_set("save", "3600 1")
            for f in self.world.env.dir.joinpath("lost").iterdir():
                f.unlink()
            self.world.env.dir.joinpath("lost").rmdir()
            self.redis.bgsave()
            wait_until(lambda: self.redis.info("persistence")["rdb_last_bgsave_status"] == "err", 10)

    def begin(self, lasts):
        self.redis.config_set("stop-writes-on-bgsave-error", "yes")

    def end(self):
        self.redis.config_set("stop-writes-on-bgsave-error", "no")


class Pause(Fault):
    """CLIENT PAUSE, of writes or of everything."""
    quiet = True

    def begin(self, lasts):
        self.until = time.monotonic() + lasts
        self.redis.execute_command("CLIENT", "PAUSE", int(lasts * 1000), self.rng.choice(["WRITE", "ALL"]))

    def end(self):
        pass_time(max(0.0, self.until - time.monotonic()))


class Hang(Fault):
    """A reply that never comes."""
    quiet = True

    def begin(self, lasts):
        self.server.signal(signal.SIGSTOP)

    def end(self):
        self.server.signal(signal.SIGCONT)


class Type(Fault):
    """Another program stores values of other types in our keys; the earlier values come back in the end."""

    def begin(self, lasts):
        self.name = self.key(self.rng.choice(["offline", "outbox", "published", "events"]))
        if self.redis.exists(self.name):
            self.redis.rename(self.name, "moved")
        self.redis.set(self.name, "no such thing")
        own = self.rng.choice(self.world.fleet.names)
        # A device's own keys are simply overwritten.
        self.redis.delete(self.key("connected", own), self.key("disconnected", own))
        self.redis.rpush(self.key(self.world.fleet.state(own) == "online" and "connected" or "disconnected", own), 1)

    def end(self):
        pipe = self.redis.pipeline(transaction=True)
        pipe.delete(self.name)
        if self.redis.exists("moved"):
            pipe.rename("moved", self.name)
        pipe.execute()


class Cut(Fault):
    """The daemon's connections are killed again and again."""

    def begin(self, lasts):
        self.during()

    def during(self):
        self.redis.client_kill_filter(_type="normal", skipme=True)
        pass_time(self.rng.uniform(0.05, 0.5))


class Noscript(Fault):
    def begin(self, lasts):
        self.during()

    def during(self):
        self.redis.script_flush()
        pass_time(self.rng.uniform(0.0, 0.2))


FAULTS = {"redis-empty": Empty, "redis-old": Old, "redis-flush": Flush, "redis-loading": Loading,
          "redis-readonly": Readonly, "redis-oom": Full, "redis-misconf": Misconf, "redis-pause": Pause,
          "redis-hang": Hang, "redis-type": Type, "redis-cut": Cut, "redis-noscript": Noscript}


def options(name):
    """The options that a world needs for this fault."""
    return {"timeout": 2.0, "grace": 0.3, "interval": 0.4, "lost_dir": name == "redis-misconf"}


def duration(rng, index, timeout, least):
    return rng.uniform(5.2, 7.0) if index % 5 == 4 else rng.uniform(max(0.05, least), 2.5) * timeout


def check_told_in_time(world, victims):
    """With or without Redis: a death is reported by MQTT within the timeout, a second in which the status waits for Redis
    (checked once a second), and half a second."""
    world.check_told()
    for n in victims:
        topic = world.env.status_topic(n)
        at = [m.at for m in world.observer.messages if m.topic == topic and m.at > world.run_began and
              b'"online":false' in m.payload and (m.json() or {}).get("by") == world.env.node]
        last = world.fleet.by_name[n].last
        assert at, "%s was never told to be dead" % n
        assert at[0] - last <= world.timeout + 2.5, "%s was told dead only %.2f s after its last heartbeat" % (
            n, at[0] - last)


def run(world, rng, index, name):
    fault = FAULTS[name](world, rng)
    fault.before()
    world.new_run()
    lasts = duration(rng, index, world.timeout, fault.least)
    living = world.fleet.living()
    rng.shuffle(living)
    victims = living[:rng.randint(2, 4)]
    early = victims[:1]
    world.fleet.silence(*early)
    pass_time(rng.uniform(0.0, 0.6) * world.timeout)
    began = time.monotonic()
    fault.begin(lasts)
    world.fleet.silence(*victims[1:])
    while time.monotonic() - began < lasts:
        fault.during()
        pass_time(0.05)
    fault.end()
    back = time.monotonic()
    due = max(world.fleet.by_name[n].last for n in victims) + world.timeout + 0.1
    if fault.lossy:
        world.forget_events()
    took = world.agree_by(max(back, due) + world.timeout) - max(back, due)
    if fault.lossy:
        world.check_living(victims)
    else:
        world.check_edges(victims)
    world.check_punctual()
    check_told_in_time(world, victims)
    world.check_loop()
    fault.after()
    world.new_run()
    world.fleet.revive(*victims)
    world.agree(world.timeout + 10)
    return {"lasts": round(lasts, 2), "took": round(took, 2)}
