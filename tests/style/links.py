# SPDX-License-Identifier: MIT
"""links.py LIST: names each link of a page (*.md of LIST) to a file or a heading that is not there: in the tree, or in what
`make install` installs. A heading's name has to be the same by GitHub's rules and by those of mkdocs."""
import os
import re
import sys
import unicodedata
from pathlib import Path

# What is installed below $(docdir), beside the pages of docs/local.mk: conf is a link to examples there.
TOP = {"README.md", "CHANGES", "LICENSE", "CONTRIBUTING.md"}
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*([^)\s]+)\s*\)")


def github(title):
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def mkdocs(title):
    title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def prose(path):
    """Without blocks and spans of code, which have no links."""
    text = re.sub(r"^(```|~~~).*?^\1 *$", "", path.read_text(), flags=re.S | re.M)
    return text


def headings(path):
    found = set()
    for title in re.findall(r"^#+ (.*?)\s*#*$", prose(path), re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").replace("*", "")
        if github(title) == mkdocs(title):
            found.add(github(title))
    return found


def made(names):
    """Each name that a variable of a local.mk has."""
    return {w for name in names for w in re.findall(r"\w[\w.-]*/[\w./-]+", Path(name).read_text())}


def main():
    wrong = []
    pages = [p for p in Path(sys.argv[1]).read_text().split("\n") if p.endswith(".md")]
    installed = TOP | {f for f in made(["docs/local.mk", "conf/local.mk"]) if f.startswith(("docs/", "conf/", "containers/"))}
    n = 0
    for page in map(Path, pages):
        text = re.sub(r"`[^`\n]*`", lambda m: "x" * len(m.group()), prose(page))
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            n += 1
            name, _, anchor = target.partition("#")
            path = Path(os.path.normpath(page.parent / name)) if name else page
            if not path.exists():
                wrong.append("%s: there is no %s" % (page, target))
            elif anchor and path.suffix == ".md" and anchor not in headings(path):
                wrong.append("%s: %s has no heading %s" % (page, path, anchor))
            elif str(page) in installed and str(path) not in installed:
                wrong.append("%s: %s is not installed, so the link is broken there" % (page, path))
    for page in sorted(set(map(str, Path("docs").glob("*.md"))) - installed):
        wrong.append("docs/local.mk lacks %s" % page)
    if n < 100:
        wrong.append("tests/style/links.py finds %d links only" % n)
    print("\n".join(wrong), end="\n" if wrong else "")


main()
