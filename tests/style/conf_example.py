#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""conf_example.py: prints conf/monitor.conf.example, made from man/monitor.conf.5: every key, its first sentences, its default.

    python3 tests/style/conf_example.py >conf/monitor.conf.example

The style check compares the file with this output. tests/system/test_papers.py holds the manual against the daemons."""
import re
import sys
import textwrap
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SECTIONS = {"MQTT": "mqtt", "HTTP": "http", "GROUPS": "group default", "REDIS": "redis", "STORE": "store", "NOTIFY": "notify",
            "KEYSPACE": "keyspace", "CLUSTER": "cluster", "THE HISTORY": "history", "TASKS": "tasks", "ALERT": "alert", "SILENCES": "silence NAME",
            "RECEIVERS": "receiver NAME", "MONITOR": "monitor"}
MACROS = {"Ql", "Cm", "Ic", "Pa", "Xr", "Sx", "Dv", "Em", "No", "Ar", "Dq", "Po", "Pc", "Ns", "Fl", "Va", "Ev"}
ENOUGH = 200  # characters of a comment, after which no further sentence begins
HEAD = """\
# monitor.conf.example: every key of monitor.conf with its default. monitor.conf(5) describes each key in full.
#
# A copy of this file works beside a mosquitto and a Redis on the same machine. A key that is left out has its default. Copy
# to /etc/heartwheel/monitor.conf only the keys that you change.
#
# Durations are whole numbers with ms, s, m, h or d; without a unit they are seconds. "Live" keys apply at a reload
# (heartwheelctl reload); the others need a restart. heartwheeld -t checks a file.
"""


def plain(line):
    """The text of one line of mdoc(7)."""
    tail = ""
    if line.startswith("."):
        words = line[1:].split(" ")
        if words[0] == "Pq":
            words, tail = ["("] + words[1:], ")"
        line, glue = "", False
        for word in words:
            if word in MACROS:
                glue = glue or word == "Ns"
            else:
                line += ("" if glue or not line or line.endswith("(") or word in ".,;:)" else " ") + word
                glue = False
        if words[0] == "Xr" or re.match(r"\.Xr", "." + words[0]):
            line = re.sub(r"^(\S+) (\d)", r"\1(\2)", line)
    return (line + tail).replace("\\&", "").replace("\\(dq", '"').replace("\\e", "\\")


def sentences(lines, every):
    """The sentences of the first paragraph, or of all; each begins on a line of its own."""
    found, open_ = [], ""
    for line in lines:
        if re.match(r"\.(Pp|Bd|Ed|Bl|Dl|El)\b", line):
            if not every:
                break
            continue
        text = plain(line)
        open_ += ("" if text[:1] in ".,;:)" or open_.endswith("(") or not open_ else " ") + text
        if re.search(r"[.:]\)?$", text) and not text.endswith(":"):
            found.append(open_)
            open_ = ""
    return found + [open_] if open_ else found


def items(manual, every=False):
    """Yields (section, keys, sentences, [the default of each key; "": none], the text of the default)."""
    for name, body in re.findall(r"^\.Sh ([A-Z ]+)\n(.*?)(?=^\.Sh |\Z)", manual, re.M | re.S):
        section = SECTIONS.get(name)
        listing = re.search(r"^\.Bl -tag -width Ds\n(.*)", body, re.M | re.S)
        for keys, text in re.findall(r"^\.It Ic ([a-z_, ]+)\n(.*?)(?=^\.It Ic |^\.El|\Z)", listing[1], re.M | re.S) if section and listing else ():
            keys = keys.split(" , ")
            default = re.search(r"^Default:(.*?)(?=^\.Pp|\Z)", text, re.M | re.S)
            default = " ".join(plain(line) for line in default[1].strip().splitlines()) if default else "none"
            default = re.sub(r" ([.,;])", r"\1", default)
            values = default.removesuffix(".").split(", ") if len(keys) > 1 else [re.split(r"[,;] ", default.removesuffix("."))[0]]
            words = [s for s in sentences(text.splitlines(), every) if not s.startswith(("Default:", "Live."))]
            if re.search(r"^Live\.$", text, re.M):
                words.append("Live.")
            yield section, keys, words, ["" if re.match(r"(empty|none)\b", v) else v for v in values], default


def comment(words, default):
    text = ""
    for sentence in words:
        if text and len(text) > ENOUGH and sentence != "Live.":
            continue
        text += " " + sentence
    return textwrap.fill("%s Default: %s" % (text.strip(), default.removesuffix(".") + "."), 110,
                         initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False, break_long_words=False)


def example(manual):
    out, last, named = [HEAD], None, False
    for section, keys, words, values, default in items(manual):
        if section != last:
            named = section.endswith(" NAME") or section == "alert"  # not there by default: its presence has an effect
            out.append("\n%s[%s]\n" % ("#" if named else "", section))
            last = section
        out.append("\n" + comment(words, default) + "\n")
        if section == "group default" and keys == ["heartbeat"]:
            values = ["nodes/{id}/heartbeat", "nodes/{id}/status"]
            keys = keys * 2
        out += ["%s%s =%s\n" % ("" if value and not named else "#", key, " " + value if value else "") for key, value in zip(keys, values)]
    return "".join(out)


if __name__ == "__main__":
    sys.stdout.write(example((TOP / "man" / "monitor.conf.5").read_text(encoding="utf-8")))
