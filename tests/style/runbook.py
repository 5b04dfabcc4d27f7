# SPDX-License-Identifier: MIT
"""Holds docs/runbook.md and the source together: each line of the log at warning and above, each alert rule, each cause of
blindness has an entry there, and each entry is still a line, a rule or a cause. `runbook.py` prints what is missing on either
side; `runbook.py --list` prints the lines of the log as the runbook writes them."""
import re
import sys
from pathlib import Path

PAGE = Path("docs/runbook.md")
RULES = Path("conf/heartwheel-alerts.yml")
CAUSES = Path("src/core/blind.c")
CALL = re.compile(r"\b(?:hw_log|hw_log_limited|report|on_line|put_line)\(")
PRINT = r"\b(?:hw_print|snprintf)\((?=%s\b)"
LEVELS = re.compile(r"HW_LOG_(?:WARNING|ERROR)\b")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
CONVERSION = re.compile(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[diouxXcsfeEgGp]")


def without_comments(text):
    return re.sub(r"/\*.*?\*/|\"(?:[^\"\\]|\\.)*\"",
                  lambda m: m.group() if m.group()[0] == '"' else re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def call(text, start):
    """The rest of the call's arguments after `start`."""
    depth, i = 1, start
    while depth and i < len(text):
        if text[i] == '"':
            i = LITERAL.match(text, i).end() - 1
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        i += 1
    return text[start:i - 1]


def arguments(text):
    """Splits at the commas that are outside of parentheses and strings."""
    parts, depth, last, i = [], 0, 0, 0
    while i < len(text):
        if text[i] == '"':
            i = LITERAL.match(text, i).end() - 1
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if text[i] == "," and depth == 0:
            parts.append(text[last:i])
            last = i + 1
        i += 1
    return parts + [text[last:]]


def plain(text):
    """A format as the page writes it: * for what it fills in."""
    text = CONVERSION.sub("*", text.replace('\\"', '"').replace("\\n", " ")).replace("%%", "%")
    return re.sub(r"\*+", "*", text)


def printed(text, name):
    """The format of the last line that `text` writes into the buffer `name`, or `name`."""
    found = list(re.finditer(PRINT % name, text))
    return arguments(call(text, found[-1].end()))[2] if found else name


def log_lines(root):
    """{text: FILE:LINE}. The format stands after the level, or is written into the buffer that stands there; of a choice between
    formats each is a line."""
    found = {}
    for path in sorted(root.glob("src/**/*.c")):
        text = without_comments(path.read_text())
        for m in CALL.finditer(text):
            args = arguments(call(text, m.end()))
            level = next((i for i, a in enumerate(args) if LEVELS.search(a)), len(args))
            if level + 1 >= len(args):
                continue
            fmt = args[level + 1].strip()
            if re.fullmatch(r"\w+", fmt):
                fmt = printed(text[text.rfind("\n{", 0, m.start()):m.start()], fmt)
            # A macro within the format is a conversion's last letters, or a text of its own.
            fmt = re.sub(r"\bPRI([diouxX])\d+|\b[A-Z][A-Z_]+\b(?=\s*(?:\"|$))", lambda w: '"%s"' % (w.group(1) or "%s"),
                         fmt)
            for choice in re.split(r"[?:](?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", fmt):
                line = "".join(LITERAL.findall(choice))
                if line:
                    found.setdefault(plain(line).strip(), "%s:%d" % (path, text[:m.start()].count("\n") + 1))
    return found


def rules(root):
    return {m: str(RULES) for m in re.findall(r"alert: (\w+)", (root / RULES).read_text())}


def causes(root):
    for path in sorted(root.glob("src/**/*.c")):
        found = re.findall(r'\[HW_CAUSE_[A-Z]+\] = "([a-z]+)"', path.read_text())
        if len(found) > 3:
            return {c: str(path) for c in found}
    return {}


def main():
    root = Path(".")
    lines = log_lines(root)
    if "--list" in sys.argv:
        for text, where in lines.items():
            print("%-45s %s" % (where, text))
        return
    wrong = []
    if len(lines) < 80 or len(causes(root)) < 6:
        wrong.append("tests/style/runbook.py finds %d lines of the log and %d causes in the source" % (len(lines), len(causes(root))))
    page = (root / PAGE).read_text()
    parts = {title: body for title, body in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.S | re.M)}
    log = {re.sub(r"\s+", " ", t) for t in re.findall(r"^- `([^`]+)`$", page.split("\n## Lines of the log", 1)[-1], re.M)}
    for text, where in lines.items():
        if text not in log:
            wrong.append("%s: %s lacks the line `%s`" % (where, PAGE, text))
    for text in sorted(log - set(lines)):
        wrong.append("%s: no line of the log is `%s`" % (PAGE, text))
    for title, want in (("Alert rules", rules(root)), ("Causes of blindness", causes(root))):
        have = set(re.findall(r"^### (\w+)$", parts.get(title, ""), re.M))
        for name in sorted(set(want) - have):
            wrong.append("%s: %s lacks '### %s' below '## %s'" % (want[name], PAGE, name, title))
        for name in sorted(have - set(want)):
            wrong.append("%s: '### %s' is not in %s" % (PAGE, name, sorted(set(want.values()))[0]))
    text = (root / RULES).read_text()
    for name in rules(root):
        if not re.search(r"alert: %s\n(?:(?!alert:).)*runbook_url: \S+#%s\n" % (name, name.lower()), text, re.S):
            wrong.append("%s: %s lacks a runbook_url that ends with #%s" % (RULES, name, name.lower()))
    print("\n".join(wrong), end="\n" if wrong else "")


main()
