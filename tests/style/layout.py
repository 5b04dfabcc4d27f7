#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What clang-format leaves open about the layout of C: `sizeof(x)` has its parentheses, and no blank line follows the
declarations that a block begins with. layout.py FILE... says every place that is otherwise; --fix takes the blank lines out."""
import re
import sys

COMMENT_OR_LITERAL = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
STATEMENT = re.compile(r'(return|goto|else|case|default|break|continue|if|for|while|do|switch|sizeof)\b')
CALL = re.compile(r'\w+ *\(')
DECLARATION = re.compile(
    r'(?:(?:static|const|volatile|register|extern|unsigned|signed|long|short|_Atomic) +)*'  # what may precede the type
    r'(?:(?:struct|enum|union) +\w+|\w+)'  # the type
    r'(?: +(?:const|long|int|char|short|unsigned))*'  # its other words
    r'[ *]+(?:const +)?'
    r'\w+(?:\[|;| *=|,|$)')  # the name, and what may follow it
BLOCK = re.compile(r'^\t.*\{$|^(?!struct|enum|union|static|extern|typedef).*\) \{$|^\{$')


def masked(text):
    """The text, of the same lines and lengths, without what stands in comments and literals."""
    def mask(found):
        it = found.group(0)
        if it.startswith('/'):
            return re.sub(r'[^\n]', ' ', it)
        return it[0] + '_' * (len(it) - 2) + it[-1]
    return COMMENT_OR_LITERAL.sub(mask, text)


def is_declaration(line):
    line = line.strip()
    return not STATEMENT.match(line) and not CALL.match(line) and bool(DECLARATION.match(line))


def end_of_statement(lines, at):
    """The number of the line on which the statement that begins on line `at` has its semicolon."""
    depth = 0
    for n in range(at, len(lines)):
        for c in lines[n]:
            depth += (c in '([{') - (c in ')]}')
            if c == ';' and depth == 0:
                return n
    return len(lines) - 1


def next_full(lines, at):
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at


def last_declaration(lines, at):
    """The number of the last line of the declarations that begin at line `at`, comments and blank lines among them; None if
    a statement stands there."""
    last = None
    at = next_full(lines, at)
    while at < len(lines) and is_declaration(lines[at]):
        last = end_of_statement(lines, at)
        at = next_full(lines, last + 1)
    return last


def blank_lines(text):
    """The numbers, from 0, of the blank lines between a block's declarations and what follows them."""
    lines = masked(text).split('\n')
    raw = text.split('\n')
    for n, line in enumerate(lines):
        if not BLOCK.match(line.rstrip()):
            continue
        last = last_declaration(lines, n + 1)
        if last is None:
            continue
        for at in range(last + 1, next_full(raw, last + 1)):
            yield at


def bare_sizeofs(text):
    for n, line in enumerate(masked(text).split('\n')):
        if re.search(r'\bsizeof\b(?!\()', line):
            yield n


def main(args):
    fix = args[:1] == ['--fix']
    for name in args[fix:]:
        with open(name, encoding='utf-8') as f:
            text = f.read()
        blank = set(blank_lines(text))
        if fix and blank:
            kept = [line for n, line in enumerate(text.split('\n')) if n not in blank]
            with open(name, 'w', encoding='utf-8') as f:
                f.write('\n'.join(kept))
            blank = set()
        for n in sorted(blank):
            print(f'{name}:{n + 1}: a blank line after declarations')
        for n in bare_sizeofs(text):
            print(f'{name}:{n + 1}: sizeof without parentheses')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
