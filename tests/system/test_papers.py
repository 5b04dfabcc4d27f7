# SPDX-License-Identifier: MIT
"""The manuals and docs against the programs and their source: what a paper lists is what there is, no more and no less. No
server runs."""
import re
import subprocess
import sys

import pytest

from hw_build import BUILD, SRC

sys.path.insert(0, str(SRC / "tests" / "style"))
import conf_example  # noqa: E402

DAEMONS = ("heartwheeld", "heartwheel-tasks", "heartwheel-history")
PROGRAMS = DAEMONS + ("heartwheelctl",)


def read(name):
    return (SRC / name).read_text(encoding="utf-8")


def run(program, *args):
    return subprocess.run([str(BUILD / program), *map(str, args)], capture_output=True, text=True, timeout=20,
                          stdin=subprocess.DEVNULL)


# --- monitor.conf(5)

TABLES = ("src/daemon/config/settings.c", "src/conf/shared.h", "src/notify/settings.h", "src/tasks/settings.c",
          "src/history/settings.c")
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
        if where[0] != "group":  # all are live, which their section says
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
    """As the daemons name them when a value is not a number."""
    keys = {where: kind for where, (kind, _) in options().items() if kind in ("INT", "DURATION")}
    conf, lines, at = tmp_path / "wrong.conf", [], {}
    for section in dict.fromkeys(section for section, _ in keys):
        lines.append("[%s]" % ("group default" if section == "group" else section))
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
    names = {"HW_CONF_SOCKET_MAX": 107, "HW_CONF_SENTINELS_MAX": 2048, "URL_MAX": 2048, "HW_NOTIFY_URL_MAX": 2048,
             "HW_NOTIFY_FORMAT_MAX": 1000, "HW_ORIGIN_NAMES_MAX": 1024, "HW_PROXIES_TEXT_MAX": 1024, "HW_CONF_NAME_MAX": 64}
    said = items()
    for where, (kind, rest) in options().items():
        length = re.search(r"\.max = (\w+)", rest)
        length = length and names.get(length[1], length[1])
        if kind not in ("INT", "DURATION") and length not in (None, "HW_CONF_TEXT_MAX") and where != ("keyspace", "group"):
            assert re.search(r"\b%s\b" % length, said[where][0]), (where, length)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_the_example_has_the_defaults(daemon, tmp_path):
    """In the eyes of each daemon; those of heartwheeld also in tests/unit/test_conf_reload.c."""
    if not (BUILD / daemon).exists():
        pytest.skip("%s is not built" % daemon)
    texts = []
    for text in (re.sub(r"^user = .*", "user =", read("conf/monitor.conf.example"), flags=re.M),
                 "".join("[%s]\nuser =\n" % s for s in ("monitor", "tasks", "history"))):
        conf = tmp_path / "m.conf"
        conf.write_text(text)
        r = run(daemon, "-t", "-v", "-c", conf)
        assert r.returncode == 0, r.stderr
        texts.append([line for line in r.stdout.splitlines() if not line.startswith("#")])
    assert texts[0] == texts[1] and len(texts[0]) > 20
