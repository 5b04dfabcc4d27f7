#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Changes one thing in a copy of the tree, and expects a test to notice.

The list (tests/mutation/mutations) says what is changed and which suites must fail then. A change that no suite notices
is a survivor, and fails; so does one whose text is no longer found, and one that does not build: both say nothing of
the tests. What notices is named, and must pass when the change is taken back; a test with real servers must notice
twice. Otherwise a busy machine, or luck, would look like a test that works.

The copy lies in BUILD/mutation/N/tree, one for each job, and is built beside it; both stay there, so that the next run
builds only what has changed. The working tree is only read. With --built the copy begins with what that build has built, so
that only what a change touches is compiled.
"""
import argparse
import ctypes
import multiprocessing
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CAUGHT, SURVIVED, NOT_FOUND, NO_BUILD, NOT_JUDGED = "caught", "SURVIVED", "NOT FOUND", "NO BUILD", "NOT JUDGED"
TOO_BUSY = "TOO BUSY"  # a test fails now and then, or without the change
BUILD_S = 900       # building may take so long
SUITE_S = 240       # and so may a suite


# --- the list ---------------------------------------------------------------------------------------------------------

class Mutation:
    """One change: `old` becomes `new` at the one place of the name `at`, and one of `suites` must fail."""

    def __init__(self, line):
        self.line = line
        self.chapter = self.name = self.at = ""
        self.old, self.new, self.suites = [], [], []

    def pattern(self):
        """What is to be found: however it is broken into lines, since formatting may break it anew."""
        return r"\s+".join(re.escape(word) for word in "\n".join(self.old).split())


def read_list(path):
    """The mutations of a list. A line that is none of its own ends the program with its number."""
    out, m, chapter = [], None, ""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    for number, line in enumerate(lines, 1):
        key, _, value = line.partition(" ")
        if not line.strip() or line.startswith("#"):
            m = None
            chapter = line[2:].strip() if line.startswith("# == ") else chapter
            continue
        if key == "name":
            m = Mutation(number)
            m.name, m.chapter = value.strip(), chapter.strip("= ")
            out.append(m)
        elif m is None:
            sys.exit("%s:%d: a mutation begins with its name" % (path, number))
        elif key == "at":
            m.at = value.strip()
        elif key == "-":
            m.old.append(value)
        elif key == "+":
            m.new.append(value)
        elif key == "run":
            m.suites += [s.strip() for s in value.split(";") if s.strip()]
        else:
            sys.exit("%s:%d: '%s' is neither name, at, -, + nor run" % (path, number, key))
    for m in out:
        if not (m.at and m.old and m.suites):
            sys.exit("%s:%d: '%s' lacks at, - or run" % (path, m.line, m.name))
    if len({m.name for m in out}) < len(out):
        sys.exit("%s: a name comes twice" % path)
    return out


# --- finding the place ------------------------------------------------------------------------------------------------

def sources(top):
    for part in ("src", "include"):
        for directory, _, names in sorted(os.walk(os.path.join(top, part))):
            for name in sorted(names):
                yield os.path.join(directory, name)


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


def places(path, text):
    """[(name, begin, end)] of what is defined at the outermost level: functions, objects, types, macros. A script as a whole
    has the name of its file."""
    out, begin, name, at = [], None, "", 0
    if path.endswith(".lua"):
        out.append((os.path.basename(path), 0, len(text)))
    for line in text.splitlines(keepends=True):
        end = at + len(line)
        if begin is None and re.match(r"#\s*define\s|[A-Za-z_]", line):
            begin, name = at, ""
        if begin is not None:
            macro = text.startswith("#", begin)
            name = name or name_of(line)
            if over(line.rstrip(), macro, "{" in text[begin:end]):
                out.append((name, begin, end))
                begin = None
        at = end
    return out


def name_of(line):
    """What a line that begins a definition defines, if it says so."""
    found = (re.search(r"#\s*define\s+(\w+)", line) or
             re.search(r"\bfunction (\w+)|\b(\w+)\s*(?:\(|\[|=[^=]|;|\{)", line) or
             re.search(r"(?:struct|enum|union) (\w+)", line))
    return next(filter(None, found.groups()), "") if found else ""


def over(line, macro, braced):
    """Whether a definition ends with this line."""
    if macro:
        return not line.endswith("\\")
    return re.match(r"[})]|end\b|[^\s].*[;}]$|local .*[^{(]$", line) or (line.endswith(";") and not braced)


def find(top, m):
    """(path, begin, end) of the pattern in a place of that name, which has to be there once. (None, why) if it is not."""
    file, _, name = m.at.rpartition(":")
    hits = []
    for path in sources(top):
        if file and os.path.basename(path) != file:
            continue
        text = read(path)
        if name not in text and not path.endswith(name):
            continue
        for what, begin, end in places(path, text):
            if what == name:
                hits += [(path, (begin + x.start(), begin + x.end())) for x in re.finditer(m.pattern(), text[begin:end])]
    if len(hits) != 1:
        return None, "%d times in %s" % (len(hits), m.at)
    return hits[0]


# --- commands ---------------------------------------------------------------------------------------------------------

def descendants(root):
    """All processes below one, by what /proc says of their parents."""
    below, parents = {root}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % entry, encoding="latin-1") as f:
                parents[int(entry)] = int(f.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            pass
    while True:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        if not more:
            return below - {root}
        below |= more


def adopt_orphans():
    """What a suite leaves behind becomes this process' child, wherever it has gone."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def kill_the_rest():
    """Ends the servers of a suite that did not come to end them itself."""
    for _ in range(50):
        rest = descendants(os.getpid())
        if not rest:
            return
        for pid in rest:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.02)


def awaited(p, limit_s, enough):
    """The exit status; None after limit_s; 1 as soon as enough()."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            return p.wait(0.3)
        except subprocess.TimeoutExpired:
            if enough and enough():
                return 1
    return None


def command(words, log, limit_s, cwd, env=None, enough=None):
    """Runs one, to its end or until enough(). The exit status; None for one that took longer than it may."""
    with open(log, "w", encoding="utf-8") as out:
        p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=cwd,
                             env=dict(os.environ, **(env or {})), start_new_session=True)
        rc = awaited(p, limit_s, enough)
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGINT)  # pytest then ends its servers
            try:
                p.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
    kill_the_rest()
    return rc


# --- suites -----------------------------------------------------------------------------------------------------------

class Suite:
    """`unit/test_wheel [CASE]`, a Check program; `system/test_x.py [pytest's arguments]`; or `simulate SEEDS`."""

    def __init__(self, text):
        self.text = text
        self.words = shlex.split(text)
        self.python = ".py" in self.words[0]
        self.simulation = self.words[0] == "simulate"
        self.repeatable = self.simulation or not self.words[0].startswith("system/")

    def only(self, test):
        """What is run to hear it from that test once more: the test, where it can be run alone."""
        return Suite("system/" + shlex.quote(test)) if self.python and "::" in test else self

    def targets(self):
        if self.python:
            more = [p for p in ("history", "tasks") if p in self.text]
            return ["heartwheeld", "heartwheelctl", "tests/system/fleet", *("heartwheel-" + p for p in more)]
        ctl = ["heartwheelctl"] if self.words[0].startswith("system/test_ctl") else []
        return ["tests/simulation/simulate" if self.simulation else "tests/" + self.words[0], *ctl]

    def run(self, tree, build, log, limit_s):
        env = {"HW_SRCDIR": tree, "HW_BUILDDIR": build, "HW_BUILD": build, "srcdir": tree, "HW_SEED": "1",
               "CK_DEFAULT_TIMEOUT": "20"}
        if self.python:
            words = ["sh", tree + "/tests/tools/system-tests.sh", build, "-x", "tests/" + self.words[0]] + self.words[1:]
            return command(words, log, limit_s, tree, env)
        words = [os.path.join(build, self.targets()[0])]
        if self.simulation:
            return command(words + ["--seed", "1", "--runs", self.words[1]], log, limit_s, build, env)
        if len(self.words) > 1:
            env["CK_RUN_CASE"] = self.words[1]
        # One that failed is enough: with all of them, each at the end of its patience, it takes minutes.
        tap = log + ".tap"
        env["CK_TAP_LOG_FILE_NAME"] = tap
        write(tap, "")
        rc = command(words, log, limit_s, build, env, lambda: re.search(r"^not ok ", read(tap), re.M))
        write(log, read(log) + read(tap))
        return rc

    def tested(self, log):
        """Whether anything was: skipped, or chosen by a name that is no longer there, nothing is caught."""
        text = read(log)
        if self.python:
            return re.search(r"\b[1-9][0-9]* passed", text) and not re.search(r"\b[1-9][0-9]* skipped", text)
        return self.simulation or "\nok " in text


def first_failure(log):
    """The name of the test that noticed, as far as the output tells."""
    text = read(log)
    for pattern in (r"^(?:FAILED|ERROR) \S*/(\S+)", r"^not ok \d+ - [^:\n]*:[^:\n]*:([^:\n]+):",
                    r":[FE]:[^:\n]*:([^:\n]+):", r"\b(seed \d+\b[^\n]{0,60})"):
        found = re.search(pattern, text, re.M)
        if found:
            return found.group(1)
    return ""


# --- a copy of the tree -----------------------------------------------------------------------------------------------

def files_of(top):
    """What belongs to the tree: all that git would add, or in a tarball everything that is no build's."""
    git = subprocess.run(["git", "-C", top, "ls-files", "-coz", "--exclude-standard"], capture_output=True, check=False)
    if git.returncode == 0 and git.stdout:
        return [n for n in git.stdout.decode().split("\0") if n and os.path.isfile(os.path.join(top, n))]
    out = []
    for directory, names, files in os.walk(top):
        if "config.status" in files:
            names[:] = []
            continue
        out += [os.path.relpath(os.path.join(directory, f), top) for f in files]
    return out


def generated(top):
    """What autoreconf has made, which git does not know."""
    for name in ("aclocal.m4", "configure", "Makefile.in", *(os.path.join("build-aux", n) for n in os.listdir(top + "/build-aux"))):
        if os.path.isfile(os.path.join(top, name)):
            yield name


def copy(top, tree, with_generated):
    """Brings the copy up to date; files that are as they were keep their time, so that nothing is built for them."""
    wanted = set(files_of(top)).union(generated(top) if with_generated else ())
    for name in wanted:
        source, target = os.path.join(top, name), os.path.join(tree, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.islink(source) or not os.path.exists(target) or open(source, "rb").read() != open(target, "rb").read():
            shutil.copy2(source, target)
    for path in sources(tree):
        if os.path.relpath(path, tree) not in wanted:
            os.unlink(path)


def take_over(built, top, build, tree):
    """A copy of what a build has built, without other builds within it. Paths into the tree become those of its copy."""
    for directory, names, files in os.walk(built):
        names[:] = [n for n in names if n not in ("mutation", "node") and
                    not os.path.exists(os.path.join(directory, n, "config.status"))]
        target = os.path.join(build, os.path.relpath(directory, built))
        os.makedirs(target, exist_ok=True)
        for name in files:
            if name.endswith((".out", ".log", ".trs", ".time")):
                continue
            path = shutil.copy2(os.path.join(directory, name), target)
            if name in ("Makefile", "config.status") or name.endswith((".Po", ".d")):
                text, times = read(path), os.stat(path)
                write(path, text.replace(top + "/", tree + "/").replace(top + "\n", tree + "\n"))
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


class Workshop:
    """One job's copy of the tree and its build."""

    def __init__(self, top, base, cc, make_jobs, built):
        self.base, self.tree = base, os.path.join(base, "tree")
        self.build = os.path.join(self.tree if built else base, "build")  # what is taken over may say ".."
        self.top, self.cc, self.make_jobs, self.built = top, cc, make_jobs, built
        self.log = os.path.join(base, "log")
        self.passes = {}  # what was run unchanged, and whether it passed

    def make(self, targets):
        words = ["make", "-s", "-j%d" % self.make_jobs] + (["CFLAGS=-O0 -w"] if self.built else []) + targets
        return command(words, self.log, BUILD_S, self.build) == 0

    def prepare(self):
        """Copy, configure, build everything that is not a test. False if that fails; the log says why. A build that is
        there, and cannot go on from where it is, is made anew."""
        copy(self.top, self.tree, self.built)
        if self.built:
            shutil.rmtree(self.build, ignore_errors=True)
            take_over(self.built, self.top, self.build, self.tree)
            return self.make(["all"])
        if os.path.exists(self.build):
            if self.configure_and_make():
                return True
            shutil.rmtree(self.build)
        return self.configure_and_make()

    def configure_and_make(self):
        os.makedirs(self.build, exist_ok=True)
        if not os.path.exists(self.tree + "/configure"):
            if command(["sh", "autogen.sh"], self.log, BUILD_S, self.tree) != 0:
                return False
        if not os.path.exists(self.build + "/Makefile"):
            words = [self.tree + "/configure", "-q", "CFLAGS=-g -O1 -w"] + (["CC=" + self.cc] if self.cc else [])
            if command(words, self.log, BUILD_S, self.build) != 0:
                return False
        return self.make(["all"])

    def judge(self, m):
        """(verdict, by whom, how long) of one mutation. What a busy machine may have decided is tried twice."""
        began = time.monotonic()
        for _ in range(2):
            verdict, by = self.judge_once(m)
            if verdict not in (SURVIVED, TOO_BUSY):
                break
        return verdict, by, time.monotonic() - began

    def judge_once(self, m):
        path, where = find(self.tree, m)
        if path is None:
            return NOT_FOUND, where
        text = read(path)
        try:
            write(path, text[:where[0]] + "\n".join(m.new) + text[where[1]:])
            verdict, by, suite = self.noticed(m)
        finally:
            write(path, text)
        if verdict == CAUGHT and not self.passes_unchanged(suite):
            verdict, by = TOO_BUSY, "fails unchanged: " + by
        return verdict, by

    def noticed(self, m):
        """(verdict, by whom, what must pass when the change is taken back)"""
        for suite in map(Suite, m.suites):
            if not self.make(suite.targets()):
                return NO_BUILD, last_line(self.log), None
            rc = self.run(suite)
            if rc == 0 and not suite.tested(self.log):
                return NOT_JUDGED, suite.text + ": tests nothing, or skips", None
            if rc == 0:
                continue
            test = first_failure(self.log) if rc else "hung"
            only = suite.only(test)
            if rc and not suite.repeatable and (self.run(only) == 0 or first_failure(self.log) != test):
                return TOO_BUSY, "%s: %s notices it now and then" % (suite.words[0], test), None
            return CAUGHT, "%s: %s" % (suite.words[0], test), only
        return SURVIVED, "; ".join(m.suites), None

    def run(self, suite):
        return suite.run(self.tree, self.build, self.log, SUITE_S)

    def passes_unchanged(self, suite):
        if not self.passes.get(suite.text):
            self.passes[suite.text] = self.make(suite.targets()) and self.run(suite) == 0
        return self.passes[suite.text]


def write(path, text):
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
        f.write(text)


def last_line(log):
    errors = [line for line in read(log).split("\n") if "error" in line]
    return (errors or [""])[0][-100:]


# --- jobs -------------------------------------------------------------------------------------------------------------

def each(shop, what, todo, done):
    """A job: takes one after another and says what became of it, until there is none."""
    adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for item in iter(todo.get, None):
        try:
            done.put((item, what(shop, item)))
        except Exception as e:  # pylint: disable=broad-except  # a job that dies silently would leave us waiting
            done.put((item, e))


def spread(shops, what, items, tell):
    """Gives items to the jobs; tell(item, result) as each is done."""
    todo, done = multiprocessing.Queue(), multiprocessing.Queue()
    for item in list(items) + [None] * len(shops):
        todo.put(item)
    jobs = [multiprocessing.Process(target=each, args=(shop, what, todo, done)) for shop in shops]
    for j in jobs:
        j.start()
    try:
        for _ in items:
            item, result = done.get()
            if isinstance(result, Exception):
                raise result
            tell(item, result)
    finally:
        for j in jobs:
            if sys.exc_info()[0]:
                kill_job(j)
            j.join()


def kill_job(job):
    for pid in descendants(job.pid) | {job.pid}:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


# What a job does with an item: functions of their own, since they are called in another process.

def prepare(shop, _):
    return shop.prepare(), shop.log


def judge(shop, m):
    return shop.judge(m)


# --- main -------------------------------------------------------------------------------------------------------------

def line_of(verdict, m, by, seconds):
    print("%-10s %4.0f s  %-62s  %s" % (verdict, seconds, m.name, by), flush=True)


def find_all(top, chosen):
    """Only whether each place is there. For who renames or moves something: it takes no time."""
    bad = 0
    for m in chosen:
        path, where = find(top, m)
        if path is None:
            bad += 1
            line_of(NOT_FOUND, m, where, 0)
    return bad


def options():
    o = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    o.add_argument("--build", help="where the copies go: BUILD/mutation")
    o.add_argument("--list", default=os.path.join(HERE, "mutations"), help="another list of mutations")
    o.add_argument("--top", default=os.path.dirname(os.path.dirname(HERE)), help="another tree")
    o.add_argument("--only", default="", help="a regular expression that a mutation's chapter, name or place matches")
    o.add_argument("--sample", type=int, metavar="N", help="so many of them, at random")
    o.add_argument("--seed", type=int, help="of --sample; it is printed")
    o.add_argument("--jobs", type=int, default=1, help="so many side by side, each with a copy (default 1)")
    o.add_argument("--built", help="a build of the tree: only what a change touches is compiled")
    o.add_argument("--find", action="store_true", help="only look whether each text is still found, once")
    o.add_argument("--cc", default="", help="the compiler, as configure takes it; through ccache where that is there")
    o = o.parse_args()
    if shutil.which("ccache") and "ccache" not in o.cc:
        o.cc = "ccache " + (o.cc or "cc")  # what is taken back is not compiled again
    return o


def prepared(o, n):
    shops = [Workshop(os.path.abspath(o.top), os.path.abspath(os.path.join(o.build, "mutation", str(k))), o.cc,
                      max(1, (os.cpu_count() or 1) // n), o.built and os.path.abspath(o.built)) for k in range(n)]
    bad = []

    def tell(_, result):
        if not result[0]:
            bad.append(result[1])
    # Each its own: a queue that all share might give one job two copies, and another none.
    for shop in shops:
        spread([shop], prepare, [0], tell)
    if bad:
        print(read(bad[0])[-4000:])
        sys.exit("mutate: the unchanged tree does not build")
    return shops


def main():
    o = options()
    chosen = [m for m in read_list(o.list) if re.search(o.only, "%s/%s/%s" % (m.chapter, m.name, m.at))]
    if not chosen:
        sys.exit("mutate: --only %s leaves none" % o.only)
    if o.sample and o.sample < len(chosen):
        seed = o.seed if o.seed is not None else random.SystemRandom().randrange(1 << 32)
        print("%d of %d mutations: --sample %d --seed %d" % (o.sample, len(chosen), o.sample, seed), flush=True)
        chosen = random.Random(seed).sample(chosen, o.sample)
    if o.find:
        bad = find_all(o.top, chosen)
        print("mutations found: %d passed, %d failed" % (len(chosen) - bad, bad))
        return 1 if bad else 0
    if not o.build:
        sys.exit("mutate: --build BUILD is needed")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the jobs end with us
    shops = prepared(o, max(1, o.jobs))
    verdicts = {}

    def tell(m, result):
        verdict, by, seconds = result
        verdicts[m.name] = verdict
        line_of(verdict, m, by, seconds)
    spread(shops, judge, chosen, tell)
    failed = sorted((v, n) for n, v in verdicts.items() if v not in (CAUGHT, TOO_BUSY))
    busy = sorted(n for n, v in verdicts.items() if v == TOO_BUSY)
    print("".join("%s: %s\n" % f for f in failed) + "".join("skipped: %s\n" % n for n in busy), end="")
    print("mutate: %d passed, %d failed, %d skipped" % (len(verdicts) - len(failed) - len(busy), len(failed), len(busy)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
