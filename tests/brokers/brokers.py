#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the cases of test_brokers.py against each broker, several at once, and writes the table of docs/brokers.md.

What fails has failed. Nothing is tried twice but a run in which the devices themselves were too late (hw_void.py), and one in
which nothing was wrong but that a bound on time had passed: alone it has to keep that three times, and is named "flaky: NAME"
(hw_again.py).
The last line is "brokers: N passed, N failed, N skipped"; a broker that is not installed is a skip with its name. Results
stay in BUILD/brokers/NAME.json, from which --docs makes the table.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "system")]

import hw_again  # noqa: E402
import report  # noqa: E402
from adapters import ADAPTERS, TITLES  # noqa: E402

COUNTED = {"passed": "passed", "failed": "failed", "error": "failed", "errors": "failed", "skipped": "skipped"}
NOTHING_COLLECTED = 5  # pytest's exit status
BUILD = Path(os.environ.get("HW_BUILD") or "build").resolve()
OUT = BUILD / "brokers"


def arguments():
    p = argparse.ArgumentParser(description="the cases of tests/brokers against real brokers")
    p.add_argument("--broker", action="append", choices=sorted(ADAPTERS), help="repeatable; default: all")
    p.add_argument("--short", action="store_true", help="two ways of being connected instead of all")
    p.add_argument("--rounds", type=int, default=1, help="so often what a broker lacks is tried (test_what_is_lacking...)")
    p.add_argument("--jobs", type=int, default=3, help="so many brokers at once")
    p.add_argument("--docs", metavar="FILE", help="run nothing: write the results that there are into FILE")
    p.add_argument("--again", action="store_true", help="only what failed last time; adds to the results that there are")
    p.add_argument("-k", dest="only", help="pytest's -k; such results are not kept for the table")
    return p.parse_args()


def counts(output):
    """What pytest's last line says."""
    total = {"passed": 0, "failed": 0, "skipped": 0}
    lines = [line for line in output.splitlines() if re.search(r" in [0-9.]+s", line)]
    for n, word in re.findall(r"(\d+) (\w+)", lines[-1] if lines else ""):
        if word in COUNTED:
            total[COUNTED[word]] += int(n)
    return total


def end_with_parent():
    """As if by Ctrl-C, upon which pytest stops the broker and removes its files."""
    ctypes.CDLL(None).prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG


def failed_file(name):
    return OUT / (name + ".failed")


def pytest(name, options, args, extra=(), **environment):
    environment = dict(os.environ, HW_BUILD=str(BUILD), PYTHONDONTWRITEBYTECODE="1", **environment)
    p = subprocess.run([sys.executable, "-m", "pytest", "-o", "cache_dir=%s" % (OUT / ("cache-" + name)), "-q", "-rfEs",
                        "--rootdir", str(HERE), str(HERE), "--broker", name, "--rounds", str(args.rounds), *options, *extra],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                       errors="replace", env=environment, preexec_fn=end_with_parent)
    return p.returncode, p.stdout


def run(name, args):
    """One broker: (its output, its counts)."""
    facts, result = OUT / (name + ".facts"), OUT / (name + ".json")
    facts.unlink(missing_ok=True)
    options = ["--facts", str(facts)] + ["--short"] * args.short + (["-k", args.only] if args.only else [])
    failed_file(name).unlink(missing_ok=True)
    rc, output = pytest(name, options, args, ("--lf", "--lfnf", "none") if args.again else (), HW_FAILED=str(failed_file(name)))
    total = counts(output)
    found = json.loads(facts.read_text()) if facts.exists() else {}
    if rc not in (0, 1, NOTHING_COLLECTED if args.again else 0):
        total["failed"] += 1  # the broker did not start, or nothing could be collected
    if found and not args.only:
        keep(result, found, total, args)
    return output, total


def run_again(args, failed):
    """{broker: names that failed only because a bound had passed, and did not three times over when they were run alone}.
    Nobody is, where anything else has failed. `failed`: {broker: how many have}."""
    late = {name: hw_again.late_names(failed_file(name)) for name in failed}
    if any(failed[name] != len(late[name]) for name in failed) or sum(map(len, late.values())) > hw_again.MOST:
        return {}
    for name, tests in late.items():
        for _ in range(hw_again.TIMES if tests else 0):
            rc, output = pytest(name, ["--short"] * args.short, args, HW_ONLY="\n".join(tests))
            if rc or counts(output)["passed"] != len(tests):
                print(output)
                return {}
    return late


def keep(result, found, total, args):
    """For the table. What --again found out is added to what the last run did."""
    old = json.loads(result.read_text()) if args.again and result.exists() else {}
    counted = {**total, "passed": total["passed"] + old.get("passed", 0)}
    result.write_text(json.dumps({**old, **found, **counted, "short": args.short}, indent=1) + "\n")


def main():
    args = arguments()
    if args.docs:
        return report.write(Path(args.docs), OUT)
    OUT.mkdir(parents=True, exist_ok=True)
    names = args.broker or list(ADAPTERS)
    sums, failed = {"passed": 0, "failed": 0, "skipped": 0}, {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        pending = {pool.submit(run, name, args): name for name in names}
        for done in concurrent.futures.as_completed(pending):
            name = pending[done]
            output, total = done.result()
            (OUT / (name + ".out")).write_text(output)
            if total["failed"] or total["skipped"]:
                print(output)
            else:
                print("".join(line + "\n" for line in output.splitlines() if line.startswith("void: ")), end="")
            print("%s: %d passed, %d failed, %d skipped" % (TITLES[name], total["passed"], total["failed"],
                                                            total["skipped"]), flush=True)
            for key in sums:
                sums[key] += total[key]
            failed[name] = total["failed"]
    for test in sum(run_again(args, failed).values(), []):
        print("flaky: " + test)
        sums["failed"] -= 1
        sums["passed"] += 1
    print("brokers: %(passed)d passed, %(failed)d failed, %(skipped)d skipped" % sums)
    return 1 if sums["failed"] or not sums["passed"] + sums["skipped"] else 0


if __name__ == "__main__":
    sys.exit(main())
