#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""words.py FILE...: names and comments in C with a term that the glossary has replaced, and what to write instead.
A term is a whole word of a comment, or a whole part of a name between underscores. Text in backticks is passed over."""
import re
import sys

# the term, what to write, and whether comments may have the word as plain English
TERMS = [
    (r"said", "event, reported or published", False),
    (r"told|untold|tells?|telling", "report, notify, publish or log", False),
    (r"owe|owed|owes|debts?", "pending", False),
    (r"edges?", "transition, or pending write", False),
    (r"looked(?!_up)|looks(?!_like)|look(?!_ups?|_ahead)", "check, peek or read", True),
    (r"anew", "again, or restart", True),
    (r"hurry|stir", "schedule", True),
    (r"clerk|desk", "importer, query worker", True),
]
TOKEN = re.compile(r"""(?P<comment>/\*.*?\*/|//[^\n]*)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|(?P<name>[A-Za-z_]\w*)""", re.S)
IN_NAME = [(re.compile(r"(?:^|(?<=_))(?:%s)(?=_|$)" % term, re.I), write) for term, write, _ in TERMS]
IN_COMMENT = [(re.compile(r"(?<![\w'`])(?:%s)(?![\w`])" % term, re.I), write) for term, write, plain in TERMS if not plain]

for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for token in TOKEN.finditer(text):
        for pattern, write in {"comment": IN_COMMENT, "name": IN_NAME}.get(token.lastgroup, []):
            for hit in pattern.finditer(token.group()):
                line = text.count("\n", 0, token.start() + hit.start()) + 1
                where = "a comment" if token.lastgroup == "comment" else token.group()
                print(f"{path}:{line}: '{hit.group()}' in {where}: write {write}")
