#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""site.py SOURCE BUILD: makes BUILD/site of README, docs and the manuals, by mkdocs and mandoc. `make site` runs it.

The pages stay what they are in the tree; here their links get the places of the site. It fails if a link is broken, if a
page loads anything from elsewhere, or if a list or code block became running text."""
import html.parser
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE, BUILD = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
PAGES, SITE = BUILD / "site-pages", BUILD / "site"
NAV = (
    ("Start", (("heartwheel", "index"), ("Start", "start"), ("Install", "install"), ("Containers", "containers"),
               ("Coming from another scheme", "coming-from"), ("Why not …", "why-not"), ("Questions", "faq"), ("Glossary", "glossary"))),
    ("Connect", (("Devices", "devices"), ("Brokers", "brokers"), ("Home Assistant", "homeassistant"), ("Keys in Redis", "keyspace"))),
    ("Operate", (("Sizing", "sizing"), ("Security", "security"), ("Notifications", "notify"), ("Incidents", "incidents"), ("Expected devices", "inventory"), ("The page", "dashboard"),
                 ("Runbook", "runbook"), ("Backup, upgrade, move", "operate"), ("Troubleshooting", "troubleshooting"),
                 ("Tuning", "tuning"), ("Several monitors", "nodes"))),
    ("Integrate", (("Recipes", "recipes"), ("Keys and statuses", "redis"), ("Event stream", "events"), ("History", "history"),
                   ("Tasks", "tasks"))),
    ("Reference", ()),  # the manuals
    ("Internals", (("Guarantees", "guarantees"), ("Performance", "performance"), ("Architecture", "architecture"),
                   ("Working on heartwheel", "contributing"), ("Changes", "changes"), ("Licence", "license"))),
)
MOVED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGES": "changes.md", "LICENSE": "license.md"}
FOLDERS = {"conf": "conf", "containers": "container-files"}
FENCE = re.compile(r"^```.*?^```$", re.S | re.M)
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def manuals():
    return sorted(p for p in (SOURCE / "man").iterdir() if re.fullmatch(r".+\.[1-8]", p.name))


def place(target, folder):
    """Where a file of the tree, as a page in `folder` names it, stands among the pages."""
    path = (SOURCE / folder / target).resolve()
    name = str(path.relative_to(SOURCE))
    top, _, rest = name.partition("/")
    rest += "" if "." in rest else ".txt"  # mkdocs takes a name without a dot for no file
    return "%s/%s" % (FOLDERS[top], rest) if top in FOLDERS else MOVED.get(name, re.sub(r"^docs/", "", name))


def page(text, folder):
    def link(m):
        if re.match(r"[a-z]+:", m[2]):
            return m[0]
        return m[1] + place(m[2], folder) + (m[3] or "") + m[4]

    parts = re.split(r"(%s|`[^`\n]*`)" % FENCE.pattern, text, flags=re.S | re.M)
    names = "|".join(re.escape(p.stem) for p in manuals())
    parts[1::2] = [p if p.startswith("```") else p.replace("\\|", "|") for p in parts[1::2]]  # GitHub needs \| in a table's code
    for i in range(0, len(parts), 2):
        parts[i] = LINK.sub(link, parts[i])
        parts[i] = re.sub(r"(?<![\w/\[-])(%s)\(([1-8])\)" % names, r"[\1(\2)](man/\1.\2.md)", parts[i])
    return "".join(parts)


def manual(path):
    text = subprocess.run(["mandoc", "-T", "html", "-O", "fragment,man=../%N.%S/", path], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    known = {p.name for p in manuals()}
    # A manual of another package is no page here.
    text = re.sub(r'<a class="Xr" href="../([^/"]+)/"[^>]*>(.*?)</a>', lambda m: m[0] if m[1] in known else m[2], text)
    text = re.search(r'<div class="manual-text">(.*)</div>\s*<table class="foot">', text, re.S)[1]
    text = re.sub(r"\n\s*\n", "\n", re.sub(r"</?section[^>]*>", "", text))
    # The headings become those of a page, so that they are in its table of contents.
    text = re.sub(r'<h([12]) class="S[hs]" id="([^"]+)">(.*?)</h\1>',
                  lambda m: "\n</div>\n\n%s %s {#%s}\n\n<div>\n" % ("#" * (int(m[1]) + 1), re.sub("<[^>]*>", "", m[3]).replace(
                      "\n", " "), m[2]), text, flags=re.S)
    return "# %s(%s)\n\n<div>\n%s\n</div>\n" % (path.stem, path.suffix[1:], text)


class Loads(html.parser.HTMLParser):
    """What a page loads, what it links to, and what of its Markdown stayed text."""
    RAW = re.compile(r"\\\||\n[-*] \w|\n\d\. \w|^\|.*\|$", re.M)

    def __init__(self):
        super().__init__()
        self.loads, self.links, self.ids, self.raw, self.pre = [], [], set(), [], False

    def handle_data(self, data):
        if not self.pre:
            self.raw += [m[0].strip() for m in self.RAW.finditer(data)]

    def handle_endtag(self, tag):
        self.pre &= tag not in ("pre", "script", "style")

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        self.pre |= tag in ("pre", "script", "style")
        self.ids |= {a[n] for n in ("id", "name") if a.get(n)}
        if tag == "a":
            self.links.append(a.get("href") or "")
        elif tag == "link" and a.get("rel") in ("canonical", "prev", "next"):
            pass
        else:
            self.loads += [a[n] for n in ("src", "href", "srcset") if a.get(n)]


def checked():
    """What is wrong with the site."""
    wrong, pages = [], {}
    for path in SITE.rglob("*.html"):
        pages[path] = Loads()
        pages[path].feed(path.read_text())
    for path, p in pages.items():
        if path.name == "404.html":
            continue
        wrong += ["%s loads %s" % (path.relative_to(SITE), u) for u in p.loads if re.match(r"(https?:)?//", u)]
        wrong += ["%s: '%s' is running text; a list needs an empty line before it" % (path.relative_to(SITE), r)
                  for r in p.raw]
        for u in p.links + p.loads:
            name, _, anchor = u.partition("#")
            if re.match(r"[a-z]+:|//", u):
                continue
            target = (path.parent / name).resolve() if name else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append("%s: there is no %s" % (path.relative_to(SITE), u))
            elif anchor and target in pages and anchor not in pages[target].ids:
                wrong.append("%s: %s has no %s" % (path.relative_to(SITE), name or "it", anchor))
    for path in PAGES.glob("*.md"):
        wrong += ["%s: an indented ``` is no code block here: '%s'" % (path.name, m) for m in
                  re.findall(r"^[ \t]+```\w*\n\s*(.*)", FENCE.sub("", path.read_text()), re.M)[::2]]
    for path in SITE.rglob("*.css"):
        wrong += ["%s loads %s" % (path.relative_to(SITE), u) for u in re.findall(r"url\(['\"]?((?:https?:)?//[^)'\"]+)", path.read_text())]
    return sorted(set(wrong))


def main():
    for tool in ("mkdocs", "mandoc"):
        if not shutil.which(tool):
            sys.exit("%s is missing: apt-get install --no-install-recommends %s" % (tool, tool))
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(SOURCE / "docs", PAGES, ignore=shutil.ignore_patterns("*.md", "site.*", "*.mk", "internals"))
    # "containers" is a page; the files of that name stand elsewhere.
    for folder, to in FOLDERS.items():
        shutil.copytree(SOURCE / folder, PAGES / to, ignore=shutil.ignore_patterns("*.mk"))
        for path in (PAGES / to).iterdir():
            if not path.suffix:
                path.rename(path.with_suffix(".txt"))


    for path in list((SOURCE / "docs").glob("*.md")) + [SOURCE / n for n in MOVED]:
        text = path.read_text()
        if path.suffix != ".md":
            title = {"CHANGES": "Changes", "LICENSE": "Licence"}[path.name]
            text = "# %s\n\n```text\n%s\n```\n" % (title, text) if path.name == "LICENSE" else "# %s\n\n%s" % (
                title, re.sub(r"^(\w.*)\n(?=- )", r"### \1\n\n", re.sub(r"^(.+)\n=+\n", r"## \1\n", text, flags=re.M), flags=re.M))
        folder = path.parent.relative_to(SOURCE)
        (PAGES / MOVED.get(path.name, path.name)).write_text(page(text, folder))
    (PAGES / "man").mkdir()
    for path in manuals():
        (PAGES / "man" / (path.name + ".md")).write_text(manual(path))
    nav = [{part: [{title: name + ".md"} for title, name in pages] or
            [{"%s(%s)" % (p.stem, p.suffix[1:]): "man/%s.md" % p.name} for p in manuals()]} for part, pages in NAV]
    config = {"site_name": "heartwheel", "docs_dir": str(PAGES), "site_dir": str(SITE), "nav": nav, "strict": True,
              "theme": {"name": "mkdocs", "highlightjs": False, "navigation_depth": 2},
              "extra_css": ["site.css"], "plugins": [{"search": {"prebuild_index": "python"}}],
              "markdown_extensions": ["tables", "fenced_code", "sane_lists", "attr_list", {"toc": {"permalink": True}}]}
    (PAGES / "site.css").write_text((SOURCE / "docs/site.css").read_text())
    (BUILD / "mkdocs.json").write_text(json.dumps(config))  # YAML, as all JSON is
    subprocess.run(["mkdocs", "--quiet", "build", "--clean", "--strict", "-f", BUILD / "mkdocs.json"], check=True)
    for name in ("sitemap.xml", "sitemap.xml.gz"):
        (SITE / name).unlink(missing_ok=True)  # they need the address at which the site will stand
    wrong = checked() + ["docs/site.py: NAV lacks %s" % p for p in {p.stem for p in (SOURCE / "docs").glob("*.md")} -
                         {name for _, pages in NAV for _, name in pages}]
    if wrong:
        sys.exit("\n".join(wrong))
    print("site: %d pages in %s" % (len(list(SITE.rglob("index.html"))), SITE))


main()
