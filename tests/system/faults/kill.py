# SPDX-License-Identifier: MIT
"""SIGKILL of the daemon, at random moments and at named points, while devices stop, return and appear.

Afterwards every device has exactly its true transitions; the stream, the state hash and the retained status of each device
agree; and repeated messages are equal.
"""
import signal
import time

from hw_wait import NotWithin, pass_time, wait_within
from shim import POINTS
from world import Void


def churn(world, rng):
    """Changes some devices. Returns (those that stop, those that start)."""
    fleet = world.fleet
    living = fleet.living()
    dead = [n for n in fleet.names if n not in living]
    rng.shuffle(living)
    rng.shuffle(dead)
    victims = living[:rng.randint(2, 5)]
    revived = dead[:rng.randint(1, 5)]
    born = "n%d" % len(fleet.devices)
    fleet.bear(world.env, born)
    for n in victims:
        rng.choice([fleet.silence, fleet.vanish])(n)
    fleet.revive(born, *revived)
    return victims, [born, *revived]


def start_again(world, rng):
    world.daemon.start(seeing=False, ready=False, env=world.shim.env)
    if rng.random() < 0.2:  # and once more while it loads
        pass_time(rng.uniform(0.0, 0.3))
        world.daemon.signal(signal.SIGKILL)
        world.daemon.wait()
        world.daemon.start(seeing=False, ready=False, env=world.shim.env)


def die_in_churn(world, rng, point):
    world.new_run()
    if point:
        world.shim.kill_at(point, rng.choice([1, 1, 1, 2, 3, 5]))
    victims, alive = churn(world, rng)
    if point:
        try:
            wait_within(lambda: not world.daemon.alive, 1.3 * world.timeout)
        except NotWithin:
            pass  # not passed so often: it dies now
    else:
        pass_time(rng.uniform(0.0, 1.8) * world.timeout)
    reached = not world.daemon.alive
    world.shim.calm()
    world.daemon.signal(signal.SIGKILL)
    code = world.daemon.wait()
    assert code == -signal.SIGKILL, "it ended by itself, with %d" % code
    pass_time(rng.choice([0.0, 0.0, rng.uniform(0.0, 1.2)]))
    start_again(world, rng)
    began = time.monotonic()
    world.agree(world.timeout + world.grace + 15)
    took = time.monotonic() - began
    pass_time(world.timeout + 0.2)
    world.check_edges(victims, alive)
    world.check_told()
    world.check_punctual()
    for n in victims + alive:
        last, told = world.edges(n)[-1], world.told_of(n)
        assert told and told[-1]["seq"] == int(last["seq"]) and told[-1]["online"] is (last["state"] == "online"), \
            "%s: the stream says %s, and what was told is %s" % (n, last, told[-1:])
    if point and not reached:
        raise Void("%s was not passed so often" % point)
    return {"point": point or "random", "took": round(took, 2)}


def at_random(world, rng, index):
    return die_in_churn(world, rng, None)


def at_points(world, rng, index):
    return die_in_churn(world, rng, POINTS[index % len(POINTS)])
