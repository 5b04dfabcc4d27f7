# SPDX-License-Identifier: MIT
"""Which tests are repeated: those in which a bound on time passed (NotWithin) and nothing else was wrong. Run alone, such a
test must keep the bound three times; then it is named "flaky: NAME". What always misses the bound misses it three times. Any
other error gets no second try: a false offline, a doubled transition, a wrong state, a daemon that died, a sanitizer's report;
also if it was found only when the test ended, in addition to a bound that had passed."""
import os

from hw_wait import NotWithin

TIMES = 3
MOST = 4  # such tests in one run of a suite; where there are more, something is wrong with the suite, or the machine


def chain(e):
    """An exception and those during whose handling it was raised."""
    while e is not None:
        yield e
        e = e.__cause__ or (None if e.__suppress_context__ else e.__context__)


def is_only_late(item, call):
    """Whether a call failed because of a bound on time, and no device that was beating had been called offline by then."""
    if call.excinfo is None or call.when == "teardown" or not all(isinstance(e, NotWithin) for e in chain(call.excinfo.value)):
        return False
    envs = [v for v in getattr(item, "funcargs", {}).values() if hasattr(v, "called_dead")]
    return not any(e.called_dead() for e in envs)


def one_of_each(names, seed):
    """Of a test with several sets of parameters one set; of the next such test the next set, so that each protocol and each QoS
    is used by some tests. The seed sets the first one: many runs have each set."""
    sets = {}
    for name in names:
        sets.setdefault(name.partition("[")[0], []).append(name)
    one, several = [s[0] for s in sets.values() if len(s) == 1], [s for s in sets.values() if len(s) > 1]
    return {*one, *(s[(k + seed) % len(s)] for k, s in enumerate(several))}


def select(config, items):
    """For pytest_collection_modifyitems. HW_ONLY: the names of the tests that are run, one a line. HW_EACH_ONCE: the
    seed of one_of_each(), and only those are run."""
    names = {i.nodeid for i in items}
    seed = os.environ.get("HW_EACH_ONCE")
    if seed:
        names = one_of_each((i.nodeid for i in items), int(seed))
    only = os.environ.get("HW_ONLY")
    if only is not None:
        names &= set(only.splitlines())
    config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in names])
    items[:] = [i for i in items if i.nodeid in names]


def write_failed(terminalreporter):
    """For pytest_terminal_summary: writes each failed test into the file HW_FAILED, as "late NAME" or "other NAME"."""
    path = os.environ.get("HW_FAILED")
    bad = terminalreporter.stats.get("failed", []) + terminalreporter.stats.get("error", [])
    if path and bad:
        with open(path, "w", encoding="utf-8") as f:
            f.writelines("%s %s\n" % ("late" if getattr(r, "only_late", False) else "other", r.nodeid) for r in bad)


def late_names(path):
    """The names of the tests in write_failed()'s file that may be repeated, or [] if the file has anything else."""
    try:
        with open(path, encoding="utf-8") as f:
            lines = [line.rstrip("\n").split(" ", 1) for line in f]
    except FileNotFoundError:
        return []
    names = sorted({name for _, name in lines})
    return names if len(names) <= MOST and all(kind == "late" for kind, _ in lines) else []
