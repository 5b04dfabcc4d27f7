# SPDX-License-Identifier: MIT
"""An idle monitor sleeps, and the keepalives of its connections still go out."""
from pathlib import Path

from hw_wait import pass_time

SECONDS = 10


def switches(d):
    """{thread: how often the thread went to sleep}"""
    found = {}
    for task in Path("/proc/%d/task" % d.pid).iterdir():
        lines = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        found[lines["Name"]] = int(lines["voluntary_ctxt_switches"])
    return found


def test_every_thread_sleeps(env):
    d = env.daemon(timeout="1h")
    env.beat("a")
    env.settle(d)
    pass_time(2)
    barriers = d.metrics().get("barriers_sent_total")
    pass_time(0.5)
    before = switches(d)
    pass_time(SECONDS)
    woken = {name: n - before[name] for name, n in switches(d).items()}
    barriers = d.metrics().get("barriers_sent_total") - barriers
    assert 1 <= barriers <= 3, "each 5 s"
    assert woken["hw-reader-0"] <= barriers + 2, woken
    assert woken["hw-publisher"] <= 2 * barriers + 2, woken
    assert woken["heartwheeld"] <= 2 * SECONDS + 3 * barriers + 2, "the tick, its mark and Redis' answer: %s" % woken


def test_an_idle_connection_is_kept_alive(env):
    """The broker drops a client after one and a half keepalives, and checks each 5 s."""
    d = env.daemon(timeout="1h", mqtt={"keepalive": "5s"})
    env.beat("a")
    env.settle(d)
    pass_time(15)
    m = d.metrics()
    assert m.get("reconnects_total") == 0 and m.get("link_up", link="reader") == 1
    assert m.get("blind") == 0
    log = env.broker.log()
    assert "%s-r0" % env.node not in "".join(line for line in log.splitlines() if "exceeded timeout" in line)
