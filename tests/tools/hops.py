#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""hops.py BUILD: through which functions a heartbeat passes, and a transition, in a real daemon between a real broker and a
real Redis; how many they are, and in how many files. The daemon is built in BUILD/hops, without optimisation, and says of
each function when it is entered and left. Counted are the functions on the stack from where a thread takes the event up
to where it hands it on (STAGES), each once; what they only ask, format or note on the way is not.
"""
import os
import shlex
import struct
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
CALL = struct.Struct("<qQII")

# (what, from, to): both functions, as "name file"
STAGES = {
    "heartbeat": [
        ("read from the socket into the ring", "turn reader.c", "hw_ring_commit ring.c"),
        ("taken out of the ring", "hw_app_on_reader feed.c", "hw_ring_take ring.c"),
        ("its filter found", "hw_app_on_reader feed.c", "hw_topic_match topic.c"),
        ("its device found", "hw_app_on_reader feed.c", "hw_registry_find_prefetched registry.c"),
        ("heard", "hw_app_on_reader feed.c", "take_plain intake.c"),
    ],
    "transition": [
        ("judged", "judge due.c", "hw_monitor_emit out.c"),
        ("pending for Redis", "hw_app_dispatch fanout.c", "hw_pending_writes_push pending_writes.c"),
        ("pending for the broker", "hw_app_dispatch fanout.c", "hw_retained_add retained_sink.c"),
        ("put into a call", "on_pump sink.c", "hw_eval_item eval.c"),
        ("sent to Redis", "on_pump sink.c", "hw_redis_link_send link.c"),
        ("confirmed by Redis", "hw_call_on_transitions answers.c", "line_push retained_sink.c"),
        ("its status written", "hw_retained_pump retained_sink.c", "hw_status_payload status.c"),
        ("handed to the publisher", "hw_retained_pump retained_sink.c", "hw_ring_commit ring.c"),
        ("sent to the broker", "serve sender.c", "publish statuses.c"),
    ],
}


def build(where):
    where.mkdir(exist_ok=True)
    flags = "-O0 -g -finstrument-functions -finstrument-functions-exclude-file-list=.h"
    if not (where / "Makefile").exists():
        subprocess.run([TOP / "configure", "-q", "CFLAGS=" + flags], cwd=where, check=True)
    subprocess.run(["make", "-s", "-j2"], cwd=where, check=True)
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", where / "hops.so",
                    TOP / "tests/tools/hops.c"], check=True)


def run(where):
    """A device beats, and dies: the calls' file, and when its last heartbeat was sent, by the monotonic clock in ns."""
    os.environ["HW_BUILD"] = str(where)
    sys.path.insert(0, str(TOP / "tests/system"))
    from hw_env import Env
    from hw_wait import wait_until
    env, calls = Env(None, None, where), where / "calls"
    calls.unlink(missing_ok=True)
    try:
        env.own_broker()
        env.own_redis()
        daemon = env.daemon(timeout="2s", env={"LD_PRELOAD": str(where / "hops.so"), "HW_HOPS": str(calls)})
        for state in "online", "seen", "seen again":
            beat = env.beat("x")
            wait_until(lambda: (env.retained_status("x") or {}).get("online"), 10, "x " + state)
            time.sleep(0.3)  # apart from what follows
        wait_until(lambda: (env.retained_status("x") or {}).get("online") is False, 10, "x offline")
        daemon.kill()
    finally:
        for client in env.clients:
            client.close()
        for server in env.servers:
            server.stop()
    return calls, int(beat * 1e9)


def stacks(exe, calls):
    """Of each call, in order: (when, the stack from the outermost function on, as "name file")."""
    data = calls.read_bytes()
    records = [CALL.unpack_from(data, at) for at in range(0, len(data) - CALL.size + 1, CALL.size)]
    functions = sorted({r[1] for r in records})
    said = subprocess.run(["addr2line", "-f", "-e", exe, *map(hex, functions)], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.split("\n")
    name = {f: "%s %s" % (said[2 * k], Path(said[2 * k + 1].split(":")[0]).name) for k, f in enumerate(functions)}
    stack = defaultdict(list)
    for ns, function, thread, leaves in records:
        if leaves:
            stack[thread].pop()
        else:
            stack[thread].append(name[function])
            yield ns, list(stack[thread])


def show(what, trace, since):
    hops = set()
    print("%s:" % what)
    for stage, first, last in STAGES[what]:
        way = next((s[s.index(first):] for ns, s in trace if ns >= since and s[-1] == last and first in s), None)
        if way is None:
            sys.exit("hops.py: no call of '%s' from '%s': change STAGES" % (last, first))
        print("  %s: %s" % (stage, " > ".join(f.split()[0] for f in way)))
        hops.update(way)
    print("  %d functions in %d files" % (len(hops), len({f.split()[1] for f in hops})))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    where = Path(sys.argv[1]).resolve() / "hops"
    build(where)
    calls, beat_ns = run(where)
    trace = list(stacks(where / "heartwheeld", calls))
    show("heartbeat", trace, beat_ns)
    show("transition", trace, max(ns for ns, s in trace if s[-1] == "go_offline door.c") - 10 ** 6)


main()
