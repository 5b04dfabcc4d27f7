# SPDX-License-Identifier: MIT
"""The manuals and docs are compared with the programs and their source: each list is complete and has nothing else. No server
runs."""
import csv
import re
import subprocess
import sys

import pytest

from hw_build import BUILD, SRC

sys.path.insert(0, str(SRC / "tests" / "style"))
import conf_example  # noqa: E402

DAEMONS = ("heartwheeld", "heartwheel-tasks", "heartwheel-history", "heartwheel-alert")
PROGRAMS = DAEMONS + ("heartwheelctl",)


def read(name):
    return (SRC / name).read_text(encoding="utf-8")


def run(program, *args):
    return subprocess.run([str(BUILD / program), *map(str, args)], capture_output=True, text=True, timeout=20,
                          stdin=subprocess.DEVNULL)


# --- monitor.conf(5)

NAMED = ("group", "silence", "receiver")
TABLES = ("src/daemon/config/settings.c", "src/conf/shared.h", "src/alert/send/notify.h", "src/tasks/settings.c",
          "src/history/settings.c", "src/alert/settings.c", "src/alert/send/settings.h")
ROW = re.compile(r'^\t\{"(\w+)", "(\w+)", HW_CONF_(\w+), (.*)\}', re.M)


def options():
    """{(section, key): (type, the rest of the row)} of the daemons' tables."""
    found = {(section, key): (kind, rest) for table in TABLES for section, key, kind, rest in ROW.findall(read(table))
             if ".borrowed" not in rest}
    assert len(found) > 120
    return found


def items():
    """{(section, key): (text without line breaks, default)} of the manual."""
    return {(section.split()[0], key): (" ".join(words), value)
            for section, keys, words, values, _ in conf_example.items(read("man/monitor.conf.5"), every=True)
            for key, value in zip(keys, values)}


def test_the_manual_has_every_key():
    assert set(items()) == set(options())


def test_the_manual_says_which_keys_a_reload_applies():
    for where, (kind, rest) in options().items():
        if where[0] not in NAMED:  # all are live, which their section says
            assert (" Live." in " " + items()[where][0]) == (".live = true" in rest), where
        else:
            assert ".live = true" in rest, where


def test_the_manual_has_the_defaults():
    for where, (kind, rest) in options().items():
        default = re.search(r'\.dflt = "([^"]*)"', rest)
        default = default[1].replace("\\\\", "\\") if default else ""
        if where == ("group", "heartbeat"):
            default = "nodes/{id}/heartbeat and nodes/{id}/status"
        assert items()[where][1] == default, where


def test_the_manual_has_the_ranges(tmp_path):
    """The ranges are those that the daemons name when a value is not a number."""
    keys = {where: kind for where, (kind, _) in options().items() if kind in ("INT", "DURATION")}
    conf, lines, at = tmp_path / "wrong.conf", [], {}
    for section in dict.fromkeys(section for section, _ in keys):
        lines.append("[%s%s]" % (section, " default" if section in NAMED else ""))
        for where in keys:
            if where[0] == section:
                lines.append("%s = x" % where[1])
                at[len(lines)] = where
    conf.write_text("\n".join(lines) + "\n")
    seen = set()
    for daemon in DAEMONS:
        if not (BUILD / daemon).exists():
            continue
        for line, low, high in re.findall(r":(\d+): key .*: give (\w+) to (\w+)", run(daemon, "-t", "-c", conf).stderr):
            where = at[int(line)]
            seen.add(where)
            assert "%s to %s" % (low, high) in items()[where][0], where
    assert seen == set(keys)


def test_the_manual_has_the_lengths():
    names = {"HW_CONF_SOCKET_MAX": 107, "HW_CONF_SENTINELS_MAX": 2048, "URL_MAX": 2048, "HW_NOTIFY_URL_MAX": 2048, "HW_RECEIVER_URL_MAX": 2048,
             "HW_NOTIFY_FORMAT_MAX": 1000, "HW_ORIGIN_NAMES_MAX": 1024, "HW_PROXIES_TEXT_MAX": 1024, "HW_CONF_NAME_MAX": 64}
    said = items()
    for where, (kind, rest) in options().items():
        length = re.search(r"\.max = (\w+)", rest)
        length = length and names.get(length[1], length[1])
        if kind not in ("INT", "DURATION") and length not in (None, "HW_CONF_TEXT_MAX") and where != ("keyspace", "group"):
            assert re.search(r"\b%s\b" % length, said[where][0]), (where, length)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_the_example_has_the_defaults(daemon, tmp_path):
    """As each daemon reads the example; those of heartwheeld also in tests/unit/test_conf_reload.c."""
    if not (BUILD / daemon).exists():
        pytest.skip("%s is not built" % daemon)
    texts, example = [], read("conf/monitor.conf.example")
    alert = example[example.index("#[alert]"):example.index("#[silence NAME]")]  # of which the presence has an effect
    example = example.replace(alert, re.sub(r"^#(?=\[|\w+ = )", "", alert, flags=re.M))
    for text in (re.sub(r"^user = .*", "user =", example, flags=re.M),
                 "".join("[%s]\nuser =\n" % s for s in ("monitor", "tasks", "history", "alert"))):
        conf = tmp_path / "m.conf"
        conf.write_text(text)
        r = run(daemon, "-t", "-v", "-c", conf)
        assert r.returncode == 0, r.stderr
        texts.append([line for line in r.stdout.splitlines() if not line.startswith("#")])
    assert texts[0] == texts[1] and len(texts[0]) > 20


# --- what programs take and give


def rendered(text):
    """mdoc(7) as plain text, with line ends as spaces."""
    return " ".join(conf_example.plain(line) for line in text.splitlines())


def section(manual, name):
    return re.search(r"^\.Sh %s\n(.*?)(?=^\.Sh |\Z)" % re.escape(name), read(manual), re.M | re.S)[1]


@pytest.mark.parametrize("daemon", DAEMONS)
def test_options_of_the_daemons(daemon):
    if not (BUILD / daemon).exists():
        pytest.skip("%s is not built" % daemon)
    taken = set(re.findall(r"^  -(\w), --(\w+)", run(daemon, "-h").stdout, re.M))
    text = read("man/%s.8" % daemon)
    said = set(re.findall(r"^\.It Fl (\w)(?: Ar \w+)? , Fl -(\w+)", text, re.M))
    assert taken and said == taken
    assert set("".join(re.findall(r"^\.Op Fl (\w+)", section("man/%s.8" % daemon, "SYNOPSIS"), re.M))) == {s for s, _ in taken}


def test_commands_of_heartwheelctl():
    taken = set(re.findall(r"^  ([a-z]+) ", run("heartwheelctl", "-h").stdout.split("options:")[0], re.M))
    said = set(re.findall(r"^(?:\.It |\.)Cm ([a-z]+)\b", read("man/heartwheelctl.1"), re.M))
    assert len(taken) > 15 and not taken - said, taken - said
    for command in taken:
        help_ = run("heartwheelctl", command, "--help").stdout
        text = read("man/heartwheelctl.1")
        for option in set(re.findall(r"--([a-z-]+)", help_)) - {"help"}:
            assert re.search(r"Fl -%s\b" % option, text), (command, option)


def test_exit_statuses():
    """The statuses of the source are those that each manual lists."""
    assert re.search(r"HW_EXIT_USAGE = 2,[^,}]*HW_EXIT_IN_USE +/", read("src/run/options.h")), "3 is the last one of the daemons"
    ctl = dict(re.findall(r"HW_EXIT_(\w+) = (\d)", read("src/ctl/ctl.h")))
    for manual, statuses in (("man/heartwheeld.8", "0123"), ("man/heartwheel-tasks.8", "012"), ("man/heartwheel-history.8", "012"),
                             ("man/heartwheel-alert.8", "012"),
                             ("man/heartwheelctl.1", "".join(sorted(set(ctl.values()) - {ctl["UNKNOWN"]})))):
        assert "".join(re.findall(r"^\.It (\d)$", section(manual, "EXIT STATUS"), re.M)) == statuses, manual


def names_of(path, array):
    text = re.search(r"\b%s\[\w*\] = \{(.*?)\};" % array, read(path), re.S)[1]
    found = re.findall(r'"([a-z_]+)"', text)
    assert found
    return found


def lacking(paper, names):
    text = read(paper)
    return [n for n in names if not re.search(r"(`|\.Ql )%s\b" % n, text)]


@pytest.mark.parametrize("paper", ["man/heartwheel-api.7", "docs/redis.md", "docs/events.md"])
def test_papers_name_each_reason(paper):
    """Each reason of the core; docs/redis.md about statuses lacks those of a forgotten device, which has no status."""
    core = "".join(p.read_text() for p in (SRC / "src" / "core").glob("*.c") if p.name != "transition.c")
    names = [n for n in names_of("src/core/transition.c", "reasons") if "HW_REASON_" + n.upper() in core]
    assert len(names) >= 6
    assert not lacking(paper, [n for n in names if paper != "docs/redis.md" or n not in ("operator", "forget_after")])


@pytest.mark.parametrize("paper", ["man/heartwheel-api.7", "docs/troubleshooting.md"])
def test_papers_name_each_cause_of_blindness(paper):
    assert not lacking(paper, names_of("src/core/blind.c", "names"))


def test_heartwheel_api_7_lists_each_kind_of_refused_message():
    names = re.search(r"names\[HW_REFUSED_KINDS\] = \{(.*?)\}", read("src/core/monitor.c"), re.S)[1]
    listed = re.search(r"^\.It heartwheel_refused_total\{kind\}\n.*?\n\.Bl (.*?)^\.El", read("man/heartwheel-api.7"), re.M | re.S)[1]
    assert sorted(re.findall(r"^\.It Ql (\w+)", listed, re.M)) == sorted(re.findall(r'"(\w+)"', names))


def test_heartwheeld_8_lists_what_a_reload_applies():
    """Keys by their names; a section whose keys are all live, by its name."""
    text = rendered(re.search(r"^\.It Dv SIGHUP\n(.*?)(?=^\.It )", section("man/heartwheeld.8", "SIGNALS"), re.M | re.S)[1])
    said = {where: set(re.findall(r"\w+", keys)) for keys, where in re.findall(r"(?:^|[:;] )([^;:]*?) of \[(\w+)\]", text)}
    live = {}
    for (where, key), (_, rest) in options().items():
        if where not in ("tasks", "history", "notify", "alert", "silence", "receiver"):
            live.setdefault(where, {})[key] = ".live = true" in rest
    for where, keys in live.items():
        for key, is_live in keys.items():
            if all(keys.values()):
                assert re.search(r"\[%s\]|%ss\b" % (where, where), text), where
            else:
                assert (key in said.get(where, ())) == is_live, (where, key)


def test_heartwheel_api_7_names_each_path_that_is_passed_on():
    passed = re.findall(r'\{EVHTTP_REQ_\w+, "([^"]+)", [^,]+, hw_serve_(?:tasks|durable|alert)\}', read("src/control/control.c"))
    assert set(passed) == set(re.findall(r"^\.Pa (/v1/\S+)", section("man/heartwheel-api.7", "OTHER DAEMONS"), re.M))


def test_redis_md_has_every_key():
    said = read("docs/redis.md")
    keys = re.findall(r'join\(prefix, "(\w+:?)"', read("src/redis/keys.c")) + ["connected:", "disconnected:", "state:"]
    lacks = [k for k in keys if "`device:%s" % k not in said]
    assert len(keys) > 10 and not lacks, lacks


# --- links


def installed():
    """{path below the documentation's directory: path in the source} of the files that `make install` puts there."""
    found, names = {}, {"docdir": "", "pagesdir": "docs/", "samplesdir": "docs/examples/", "examplesdir": "examples/",
                    "containersdir": "containers/"}
    for makefile in ("Makefile.am", "docs/local.mk", "conf/local.mk"):
        for kind, files in re.findall(r"^dist_(\w+)_DATA = ((?:.*\\\n)*.*)", read(makefile), re.M):
            where = names.get(kind + "dir", "" if kind == "doc" else None)
            if where is not None:
                for name in files.replace("\\\n", " ").split():
                    found[where + name.rpartition("/")[2]] = name
    assert "README.md" in found and "docs/redis.md" in found and "examples/monitor.conf.example" in found
    for name in list(found):
        if name.startswith("examples/"):  # conf is a link to examples
            found["conf/" + name.partition("/")[2]] = found[name]
    return found


def anchors(text):
    """The anchors that GitHub makes of headings."""
    heads = re.findall(r"^#+ (.*)", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", h).lower()).replace(" ", "-") for h in heads}


# The rows of the tables below "What it costs" in nodes.md, and the labels of their figures in bench/results/nodes.csv.
COSTS = {
    "heartbeats a second": ("carried: a monitor by itself", "carried: 1 node", "carried: 2 nodes", "carried: 3 nodes"),
    "CPU of the broker": ["carried: CPU of the broker, " + who for who in ("a monitor by itself", "1 node", "2 nodes", "3 nodes")],
    "take-over after SIGKILL, `lease = 1s`": ["take-over, lease 1s: owned by the other, " + which for which in ("p50", "longest")],
    "take-over after SIGKILL, `lease = 5s`": ["take-over, lease 5s: owned by the other, " + which for which in ("p50", "longest")],
    "CPU for one heartbeat": ["watched: CPU, " + who for who in ("a monitor by itself", "owner", "watcher")],
    "CPU for one stopped device": ["deaths: CPU, " + who for who in ("a monitor by itself", "owner", "watcher")],
    "time until all 50,000": ("deaths: until all are written, owner to a monitor by itself",),
    "CPU of Redis for the 50,000": ("deaths: CPU of Redis, with a watcher to without",),
    "CPU of Redis for a renewal with two": ["renewal: CPU of Redis, 2 members" + also for also in ("", ", owners changed")],
    "CPU of Redis for a renewal with eight": ["renewal: CPU of Redis, 8 members" + also for also in ("", ", owners changed")],
}


def test_nodes_md_has_the_measured_costs():
    figures = list(csv.DictReader(read("bench/results/nodes.csv").splitlines()))
    measured = {row["label"]: row["value"] for row in figures}
    assert len(measured) == len(figures), "nodes.csv has several runs"
    part = re.search(r"^## What it costs\n(.*?)^## ", read("docs/nodes.md"), re.S | re.M)[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if re.match(r"\| [^|]", line)]
    assert len(rows) == len(COSTS)
    for title, *cells in rows:
        labels = [labels for start, labels in COSTS.items() if title.startswith(start)]
        assert len(labels) == 1, title
        assert re.findall(r"[\d.]+", " ".join(cells).replace(",", "")) == [measured[label] for label in labels[0]], title


def test_every_page_is_installed():
    pages = {str(p.relative_to(SRC)) for p in (SRC / "docs").glob("*") if p.suffix in (".md", ".png", ".svg", ".json")}
    assert pages == {source for name, source in installed().items() if re.fullmatch(r"docs/[^/]+", name)}


def test_links_lead_somewhere_in_the_source_and_where_they_are_installed():
    there, wrong = installed(), []
    for name, source in there.items():
        if not source.endswith(".md"):
            continue
        text = re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", read(source), flags=re.M | re.S))
        for target in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            at = (SRC / source).parent / path if path else SRC / source
            if not at.exists():
                wrong.append("%s: %s is not in the source" % (source, target))
                continue
            parts = []
            for part in (name.rpartition("/")[0] + "/" + path).split("/") if path else []:
                parts = parts[:-1] if part == ".." else parts + [part] if part not in ("", ".") else parts
            if path and "/".join(parts) not in there and not path.startswith(("http", "mailto")):
                wrong.append("%s: %s is not installed" % (source, target))
            if anchor and at.suffix == ".md" and anchor not in anchors(at.read_text(encoding="utf-8")):
                wrong.append("%s: %s has no such heading" % (source, target))
    assert not wrong, "\n".join(wrong)


def test_manuals_refer_to_manuals_that_exist():
    ours = {(p.stem, p.suffix[1:]) for p in (SRC / "man").glob("*.[0-9]")}
    for page in (SRC / "man").glob("*.[0-9]"):
        for name, number in re.findall(r"\.Xr (\S+) (\d)", page.read_text()):
            if name.startswith(("heartwheel", "monitor.conf")):
                assert (name, number) in ours, (page.name, name, number)
        for name in re.findall(r"\.Sx ([A-Z ]+?)(?: [.,;:)]|$)", page.read_text(), re.M):
            assert re.search(r"^\.S[hs] %s$" % name, page.read_text(), re.M), (page.name, name)
