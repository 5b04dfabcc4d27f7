# SPDX-License-Identifier: MIT
"""Two nodes that mirror one another on brokers that others wrote. What they need of one: retained messages for who subscribes
to a filter, an end of the elder of two connections of one client id, and its own order. Where a broker lacks the first, each
node says so in one line, publishes nothing for its devices, and Redis is right all the same."""
import signal

import pytest

from hw_nodes import Mirror, Told
from hw_wait import pass_time, throughout, wait_until

LINE = "the broker sends no retained messages to a subscriber of heartwheel/+/status"


@pytest.fixture
def two(env, known):
    """The nodes, sixty devices that all are told to be online, and what is held against the truth."""
    if env.broker.credentials:
        pytest.skip("its clients need names")
    mirror = Mirror(env, 2, lease=1.0, timeout=1.5, broker=False, mqtt={"protocol": "3.1.1", "keepalive": "5s"})
    mirror.start()
    with mirror.herd(60) as herd:
        herd.revive()
        told = Told(mirror, herd)
        told.wait()
        yield mirror, herd, told
    mirror.close()


def agrees(mirror, told, known):
    if known["retained"]["wildcard"]:
        told.agree()
    else:
        told.wait()
        wait_until(lambda: not told.differences(retained=False), what="Redis to be as the truth")
    mirror.wait_shared()
    told.agree_all([d for d in mirror.nodes if d.alive])


def die_and_come_back(mirror, herd, told, known):
    """Some of each node's; each is told once."""
    victims = [d for n in mirror.nodes for d in mirror.owned_by(n, sorted(herd.living()))[:4]]
    herd.kill(*victims)
    agrees(mirror, told, known)
    herd.revive(*victims)
    agrees(mirror, told, known)


def test_two_nodes(two, known):
    """One is killed amid deaths; one stands still while statuses of its wait in the broker's socket; one is stopped cleanly;
    both are restarted one after the other."""
    mirror, herd, told = two
    first, second = mirror.nodes
    agrees(mirror, told, known)
    victims = mirror.owned_by(first, sorted(herd.living()))
    herd.kill(*victims[:5])
    mirror.crash(first)
    herd.kill(*victims[5:10])
    agrees(mirror, told, known)
    first.start()
    herd.revive(*victims[:10])
    agrees(mirror, told, known)
    stands_still(mirror, herd, told, known, second)
    for node in mirror.nodes:
        node.stop()
        agrees(mirror, told, known)
        node.start()
        mirror.wait_shared()
    die_and_come_back(mirror, herd, told, known)
    said = [[line for line in d.log().splitlines() if LINE in line] for d in mirror.nodes]
    known["mirror"] = known["retained"]["wildcard"]
    if known["mirror"]:
        assert not any(said), said
        return
    wait_until(lambda: all(LINE in d.log() for d in mirror.nodes), what="a line of each node")
    throughout(lambda: not told.hear().statuses, 1, "nothing to be published for the devices")


def stands_still(mirror, herd, told, known, node):
    """Its deaths were just told, or are about to be."""
    victims = mirror.owned_by(node, sorted(herd.living()))[:20]
    left = [d for d in mirror.nodes if d is not node]
    herd.kill(*victims)
    wait_until(lambda: any(told.read().states(v)[-1] == "offline" for v in victims), interval=0.002)
    mirror.env.broker.pause()
    try:
        node.signal(signal.SIGSTOP)
        pass_time(1.2 * mirror.lease)
    finally:
        mirror.env.broker.resume()
    wait_until(lambda: mirror.is_shared(left), what="the other to own all")
    told.wait()
    herd.revive(*victims)
    node.signal(signal.SIGCONT)
    agrees(mirror, told, known)
