# SPDX-License-Identifier: MIT
"""Faults of the machine: no free descriptors, no room for the log, no memory."""
import os
import resource
import signal
import time
from pathlib import Path

from hw_mqtt import RawMqtt
from hw_wait import pass_time, wait_until
from kill import churn
from shim import ALLOC_EVERY, ALLOC_ONCE, ALLOC_FAILED
from world import Void


def cpu_seconds(pid):
    fields = Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def no_descriptors(world, rng, index):
    """No descriptor is free, and the connections to Redis and to the broker break: the daemon waits and reconnects."""
    world.new_run()
    pid = world.daemon.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/%d/fd" % pid))
    lines = world.daemon.log().count("\n")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (rng.choice([4, used]), hard))
    try:
        world.env.redis.client_kill_filter(_type="normal", skipme=True)
        if rng.random() < 0.7:
            RawMqtt(world.env.broker.port, client_id="heartwheel-%s-r0" % world.env.node).die()
        if rng.random() < 0.5:
            RawMqtt(world.env.broker.port, client_id="heartwheel-%s-pub" % world.env.node).die()
        victims = rng.sample(world.fleet.living(), 3)
        world.fleet.silence(*victims)
        spent, began = cpu_seconds(pid), time.monotonic()
        pass_time(rng.uniform(0.5, 3.0) * world.timeout)
        busy = (cpu_seconds(pid) - spent) / (time.monotonic() - began)
        assert world.daemon.alive, "it ended"
        assert busy < 0.5, "it was busy for %.0f %% of the time" % (100 * busy)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    wait_until(lambda: world.watch.sees(), 30, "the monitor to see again")
    world.agree(15)
    pass_time(world.timeout + 0.3)
    world.check_edges(victims)
    world.check_punctual()
    said = world.daemon.log().count("\n") - lines
    assert said < 60, "%d lines in the log" % said
    world.new_run()
    world.fleet.revive(*victims)
    world.agree(15)
    world.daemon.stop()  # the back-off of its connections has grown
    world.start_daemon()
    return {"busy": round(busy, 3), "lines": said}


def full_log(world, rng, index):
    """The disk under the log is full: nothing else suffers, and the log continues when there is room."""
    log = world.log_path
    world.new_run()
    log.unlink()
    log.symlink_to("/dev/full")
    world.daemon.signal(signal.SIGUSR1)
    pass_time(0.1)
    victims, alive = churn(world, rng)
    world.agree(world.timeout + world.grace + 15)
    log.unlink()
    world.daemon.signal(signal.SIGUSR1)
    wait_until(lambda: log.exists() and "log reopened" in log.read_text(), 5, "the log to go on")
    pass_time(world.timeout + 0.2)
    world.check_edges(victims, alive)
    world.check_told()
    world.check_punctual()
    return {"dead": len(victims)}


def no_memory(world, rng, index):
    """The n-th allocation of the daemon fails, or every n-th: the daemon goes on, or exits with status 1 and the reason."""
    world.new_run()
    mode = rng.choice([ALLOC_ONCE, ALLOC_EVERY])
    n = int(2 ** rng.uniform(0, 9)) if mode == ALLOC_ONCE else int(2 ** rng.uniform(1, 9))
    from_start = rng.random() < 0.6
    if from_start:
        world.daemon.stop()
        lines = len(world.daemon.log())
        world.shim.fail_allocations(mode, n)
        world.daemon.start(seeing=False, ready=False, env=world.shim.env)
    else:
        lines = len(world.daemon.log())
        world.shim.fail_allocations(mode, n)
    victims, alive = churn(world, rng)
    pass_time(world.timeout + rng.uniform(0.2, 1.0))
    if world.daemon.alive and rng.random() < 0.3:
        world.env.redis.client_kill_filter(_type="normal", skipme=True)
        pass_time(0.5)
    world.shim.calm()
    failed = world.shim.get(ALLOC_FAILED)
    ended = not world.daemon.alive
    if ended:
        code = world.daemon.wait()
        said = [line for line in world.daemon.log()[lines:].splitlines() if "memory" in line.lower()]
        assert code == 1, "it ended with %d:\n%s" % (code, world.daemon.log()[lines:][-1500:])
        assert len(said) == 1, "it ended, and said %s:\n%s" % (said, world.daemon.log()[lines:][-1500:])
        world.start_daemon(seeing=False)
    # A device whose message was refused is heard at its next heartbeat; a sink without memory retries.
    world.agree(world.timeout + world.grace + 12)
    pass_time(world.timeout + 0.2)
    world.check_edges(victims, alive)
    world.check_punctual()
    if failed == 0:
        raise Void("no allocation failed")
    return {"mode": "once" if mode == ALLOC_ONCE else "every", "n": n, "start": from_start, "failed": failed,
            "ended": ended}
