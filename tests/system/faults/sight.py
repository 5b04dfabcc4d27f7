# SPDX-License-Identifier: MIT
"""Faults of the monitor's sight: the monitor, its broker or the link between them stands still or goes away.

During the fault every device but a few victims keeps beating. The victims stop before or during the fault. No other device may
be called offline, and each victim must be, within one timeout and the contract's bound after the monitor sees again: delays of
the machine itself, which are measured, come on top. faults.py judges the median, less only the time in which monitor and broker
waited for a processor.
"""
import signal
import time

from hw_wait import pass_time, wait_until
from world import Void

CONTRACT = 0.053  # seconds past the timeout: a tick of 1/31 s, the barriers' round trip, and Redis'
SLACK = 1.0       # so late on a machine that was in time is a failure at once


def duration(rng, index, timeout):
    """From half a timeout to three timeouts; every fifth time longer than the 5 s that keepalives may take."""
    if index % 5 == 4:
        return rng.uniform(5.2, 7.5)
    return timeout * rng.uniform(*[(0.5, 1.0), (1.0, 1.5), (1.5, 2.2), (2.2, 3.0)][index % 5])


def pick_victims(world, rng):
    names = world.fleet.names[:]
    rng.shuffle(names)
    victims = names[:rng.randint(2, 4)]
    return {n: rng.choice(["silence", "vanish"]) for n in victims}


def kill_some(world, victims):
    for n, how in victims.items():
        getattr(world.fleet, how)(n)


def check_prompt(world, name, began, over):
    """How late a victim was reported, in seconds after the time at which it should have been, less the time in which monitor
    and broker waited for a processor. Negative if a blindness that was noticed afterwards, or a will, took less. Lateness alone
    is a bound on time: the run is repeated."""
    edge = next(e for e in world.edges(name) if e["state"] == "offline")
    at = int(edge["time_ms"]) / 1000 - (time.time() - time.monotonic())
    due = max(world.watch.seeing_since(began, at), over, world.fleet.by_name[name].last) + world.timeout
    late, waited = at - due, world.watch.waited(due, at)
    machine = world.fleet.late + waited
    if late > CONTRACT + machine:
        what = "%s was told %.3f s late, and the machine was %.3f s" % (name, late, machine)
        assert late - machine <= SLACK, what
        raise Void(what)
    return late - waited


def blind_run(world, rng, index, begin, end, link_lost=False):
    """One run: begin() causes the fault, end() ends it and returns when it was over."""
    world.new_run()
    victims = pick_victims(world, rng)
    before = {n: how for n, how in victims.items() if rng.random() < 0.5}
    during = {n: how for n, how in victims.items() if n not in before}
    lasts = duration(rng, index, world.timeout)
    kill_some(world, before)
    # Not so long that they would be called offline before the fault.
    pass_time(rng.uniform(0.0, 0.4) * world.timeout)
    began = time.monotonic()
    begin()
    pass_time(lasts * 0.3)
    kill_some(world, during)
    pass_time(max(0.0, began + lasts - time.monotonic()))
    over = end()
    # Blindness may be noticed, and graces may last, for a while after the fault.
    allowed = world.grace + (20.0 if link_lost else max(3.0, 1.5 * lasts))
    wait_until(world.watch.sees, allowed + 5, "the monitor to see again")
    try:
        world.wait_marked(victims, time.monotonic() + allowed + world.timeout + SLACK)
    finally:
        world.check_living(victims)
    world.check_punctual()
    late = {n: check_prompt(world, n, began, over) for n in victims}
    late_ms = [round(1000 * s) for n, s in late.items() if world.edges(n)[0]["reason"] == "timeout"]
    world.agree(15)
    # Long enough for a heartbeat that was lost in the fault to be taken for a death.
    pass_time(world.timeout + 0.3)
    world.check_edges(victims)
    world.check_told()
    world.check_punctual()
    revived = list(victims)
    world.new_run()
    world.fleet.revive(*revived)
    world.agree(15)
    world.check_edges((), revived)
    return {"lasts": round(lasts, 2), "causes": sorted(c for c in world.watch.causes(began) if c), "late_ms": late_ms}


def stop_process(process):
    def begin():
        process.signal(signal.SIGSTOP)

    def end():
        process.signal(signal.SIGCONT)
        return time.monotonic()
    return begin, end


def stop_daemon(world, rng, index):
    return blind_run(world, rng, index, *stop_process(world.daemon))


def stop_broker(world, rng, index):
    return blind_run(world, rng, index, *stop_process(world.env.broker))


def restart_broker(world, rng, index):
    """Stopped (every will is published first) or killed, with and without persistence: the world's choice."""
    broker = world.env.broker

    def begin():
        if rng.random() < 0.6:
            broker.stop()
        else:
            broker.kill()

    def end():
        broker.start()
        return time.monotonic()
    found = blind_run(world, rng, index, begin, end, link_lost=True)
    # Back-off grows with each connection that was lost soon: the next run begins with a daemon that has none.
    world.daemon.stop()
    world.start_daemon()
    world.agree(15)
    return found


def cut_link(world, rng, index):
    whole = rng.random() < 0.5

    def begin():
        world.netns.cut(whole)

    def end():
        world.netns.mend()
        return time.monotonic()
    found = blind_run(world, rng, index, begin, end, link_lost=True)
    world.daemon.stop()
    world.start_daemon()
    world.agree(15)
    return dict(found, whole=whole)
