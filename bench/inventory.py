#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The inventory: how long an import of a million rows takes, the first time and again; what an expected device costs; how long a
turn of the loop lasts meanwhile; and detection with imports beside it and without them, in turns.

`--full`: the sizes for a machine that does nothing else; without it they are short.
"""
import contextlib
import statistics
import subprocess
import threading
import time

import detection
import measure

TARGET = "inventory"
GOAL_S, GOAL_TURN_MS, GOAL_BYTES = 5, 10, 160


def sizes(o, smoke, short, full):
    return smoke if o.smoke else full if o.full else short


def write_rows(env, n, site="site"):
    path = env.own_dir("rows") / "rows.csv"
    with open(path, "w") as f:
        f.write("id,name,label.site,label.floor\n")
        f.writelines("pump-%08d,Pump %d,%s-%d,%d\n" % (k, k, site, k % 50, k % 9) for k in range(n))
    return path


def ctl(d, path, *more):
    from hw_build import HEARTWHEELCTL
    r = subprocess.run([HEARTWHEELCTL, "-s", d.socket, "devices", "import", path, *more], capture_output=True, text=True)
    assert r.returncode == 0, r
    return r.stdout


def longest_turn_ms(d):
    """The bound of the highest class of turns, by their CPU time, that has one; infinite if that class has no bound."""
    found, before = 0, 0
    for (name, labels), n in d.metrics().samples.items():
        if name == "heartwheel_loop_turn_cpu_seconds_bucket":
            bound = float(dict(labels)["le"].replace("+Inf", "inf"))
            found = bound * 1000 if n > before else found
            before = n
    return found


def one_import(env, d, n, label, site, says):
    path, scale = write_rows(env, n, site), 1e6 / n
    clock, store = measure.Stopwatch(d.pid), measure.Stopwatch(int(env.redis.info("server")["process_id"]))
    assert says in ctl(d, path)
    measure.figure(TARGET, "inventory: import of 1 M rows, " + label, clock.wall() * scale, "s", ("<=", GOAL_S))
    measure.figure(TARGET, "inventory: CPU of heartwheeld, 1 M rows, " + label, clock.cpu() * scale, "s")
    measure.figure(TARGET, "inventory: CPU of Redis, 1 M rows, " + label, store.cpu() * scale, "s")


def imports(o):
    n = sizes(o, 10000, 300000, 1000000)
    with measure.world() as (env, _):
        env.check_events = False
        d = env.daemon(timeout="1h")
        empty = measure.rss_kb(d.pid)
        measure.conditions("%s rows: id, name, two labels; heartwheelctl devices import; Redis on the same machine" % format(n, ",d"))
        one_import(env, d, n, "first", "site", "%d added" % n)
        one_import(env, d, n, "again", "site", "%d the same" % n)
        rss = min(measure.rss_kb(d.pid) for _ in range(30) if not time.sleep(0.1))  # a thread still frees the import
        measure.figure(TARGET, "inventory: memory of an expected device", (rss - empty) * 1024 / n, "bytes",
                       ("<=", GOAL_BYTES))
        one_import(env, d, n, "each row changed", "hall", "%d changed" % n)
        measure.figure(TARGET, "inventory: longest turn, CPU, at most", longest_turn_ms(d), "ms", ("<=", GOAL_TURN_MS), None, True)
        d.stop()


@contextlib.contextmanager
def importing(env, path, d):
    """Imports the file again and again: with other labels, so that each entry is written."""
    ended, n = threading.Event(), [0]

    def work():
        while not ended.is_set():
            text = path.read_text()
            path.write_text(text.replace("site-", "sitf-") if "site-" in text else text.replace("sitf-", "site-"))
            ctl(d, path)
            n[0] += 1
    thread = threading.Thread(target=work)
    thread.start()
    yield lambda: n[0]
    ended.set()
    thread.join()


def in_turns(o):
    sizes_ = sizes(o, (200, 1000, 1500, 40, 6), (2000, 1000, 1500, 300, 12), (50000, 10000, 12000, 1500, 38))
    rows = sizes(o, 5000, 100000, 300000)
    seen = {False: [], True: []}
    for turn in range(sizes(o, 2, 4, 8)):
        beside = turn % 2 == (turn // 2) % 2
        with measure.world(settings=detection.BROKER) as (env, _):
            env.check_events = False
            path = write_rows(env, rows)
            with_ = (lambda d, env=env, path=path: importing(env, path, d)) if beside else None
            seen[beside].append(detection.watch(o, env, (), *sizes_, strict=False, beside=with_))
    measure.conditions(detection.conditions(*sizes_) + "; beside it imports of %s rows, one after the other" % format(rows, ",d"))
    for beside in (False, True):
        name = "with imports" if beside else "without imports"
        measure.figure(TARGET, "inventory: timeout to the PUBLISH, p99, " + name,
                       statistics.median(s["status_p99"] for s in seen[beside]), "ms", ("<=", detection.GOAL_MS) if beside else None)
    assert all(s["crowd"] for s in seen[True])


def main():
    o = measure.options(__doc__)
    imports(o)
    in_turns(o)


if __name__ == "__main__":
    main()
