# SPDX-License-Identifier: MIT
"""A configuration with tens of thousands of filters: the time of -t and of a reload grows with their number, not with its
square. Processor time is measured, so that a busy machine does not matter."""
import os
import resource
import subprocess

import pytest

from hw_build import HEARTWHEELD

BOUND_S = 8  # at most 1 s without sanitizers; with all pairs 10 to 26 s


def groups(root, n, filters):
    lines = []
    for i in range(n):
        lines.append("[group g%d]" % i)
        lines += ["heartbeat = %s/%d/%d/{id}/up" % (root, i, k) for k in range(filters)]
        lines.append("status = %s/told/%d/{id}" % (root, i))
    return "\n".join(lines) + "\n"


def cpu_s(pid):
    with open("/proc/%d/stat" % pid) as f:
        times = f.read().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("n, filters", [(1, 100000), (4096, 10)])
def test_checking(env, n, filters):
    path = env.dir / "many.conf"
    path.write_text("[monitor]\nuser =\n" + groups(env.root, n, filters))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    r = subprocess.run([str(HEARTWHEELD), "-t", "-c", str(path)], capture_output=True, text=True, timeout=240)
    assert r.returncode == 0, r.stderr[-500:]
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < BOUND_S


@pytest.mark.parametrize("n, filters", [(1, 20000), (4000, 10)])
def test_a_reload(env, n, filters):
    d = env.daemon()
    path = d.conf
    text = path.read_text()
    before = cpu_s(d.pid)
    path.write_text(text + groups(env.root, n, filters))
    r = d.ctl("reload")
    assert r.returncode == 0, r.stderr[-500:]
    assert cpu_s(d.pid) - before < BOUND_S
