# SPDX-License-Identifier: MIT
"""Faults of the monitor's sight: it, its broker or the link between them stands still or goes away.

While that lasts every device but a few victims keeps beating. The victims die before or during the fault. Nobody else
may be called dead, and the victims have to be, within one timeout and a second after the monitor sees again.
"""
import signal
import time

from hw_env import pass_time, wait_until

SLACK = 1.0  # the second beside the timeout


def duration(rng, index, timeout):
    """From half a timeout to three timeouts, and every fifth time more than the 5 s that keepalives may take."""
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


def blind_run(world, rng, index, begin, end, link_lost=False):
    """One run: begin() causes the fault, end() ends it and returns when it was over."""
    world.new_run()
    victims = pick_victims(world, rng)
    before = {n: how for n, how in victims.items() if rng.random() < 0.5}
    during = {n: how for n, how in victims.items() if n not in before}
    lasts = duration(rng, index, world.timeout)
    kill_some(world, before)
    # Not so long that they would be found out before the fault.
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
        world.check_punctual()
        world.check_living(victims)
    # The latest blind moment before a victim's mark is when the monitor saw again.
    offset = time.time() - time.monotonic()
    for n in victims:
        at = int([e for e in world.edges(n) if e["state"] == "offline"][0]["time_ms"]) / 1000 - offset
        sees = max([t for t, blind, _ in world.watch.samples if blind is not False and began <= t <= at],
                   default=began)
        bound = max(sees, over, world.fleet.by_name[n].last) + world.timeout + SLACK
        assert at <= bound, "%s was told %.2f s after it should have been" % (n, at - bound)
    world.agree(15 if link_lost else 5)
    # Long enough for a heartbeat that was lost in the fault to be taken for a death.
    pass_time(world.timeout + 0.3)
    world.check_punctual()
    world.check_edges(victims)
    world.check_told()
    revived = list(victims)
    world.new_run()
    world.fleet.revive(*revived)
    world.agree(5)
    world.check_edges((), revived)
    return {"lasts": round(lasts, 2), "causes": sorted(c for c in world.watch.causes(began) if c)}


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
    # Back-off grows with every link that was lost soon: the next run begins with a daemon that knows of none.
    world.daemon.stop()
    world.start_daemon()
    world.agree(10)
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
    world.agree(10)
    return dict(found, whole=whole)
