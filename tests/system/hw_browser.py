# SPDX-License-Identifier: MIT
"""A headless Chromium, one for all tests of a worker, and a page for each test that needs one. Needs node, Chromium (Debian
packages nodejs, chromium-headless-shell) and playwright-core: copy tests/node/*.json into a directory that HW_NODE names, and
run `npm ci` there."""
import json
import os
import shutil
import subprocess
from pathlib import Path

from hw_wait import wait_until

NODE = shutil.which("node")
# The shell alone costs the processors a third.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
MODULES = os.environ.get("HW_NODE", "")


def missing():
    if not NODE:
        return "no node (Debian package: nodejs)"
    if not CHROMIUM:
        return "no Chromium (Debian package: chromium-headless-shell)"
    if not MODULES or not (Path(MODULES) / "node_modules" / "playwright-core").is_dir():
        return "no playwright-core: run npm ci in a copy of tests/node, and name that directory in HW_NODE"
    return ""


class Chromium:
    """The Chromium process. It starts when a page is first needed, and again if it has ended."""

    def __init__(self):
        self.proc, self.pages = None, 0

    def ask(self, **request):
        self.proc.stdin.write(json.dumps(request) + "\n")
        self.proc.stdin.flush()
        return self.answer()

    def answer(self):
        line = self.proc.stdout.readline()
        assert line, "the browser has ended"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def page(self, **options):
        if self.proc is None or self.proc.poll() is not None:
            self.proc = subprocess.Popen([NODE, Path(__file__).with_name("browser.mjs"), MODULES, CHROMIUM],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert self.answer() == "ready"
        self.pages += 1
        self.ask(page=self.pages, open={"viewport": {"width": 1280, "height": 900}, **options})
        return Page(self, self.pages)

    def close(self):
        if self.proc is None:
            return
        self.proc.stdin.close()
        try:
            self.proc.wait(10)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()


class Page:
    """A page in a context of its own, without cookies, cache or connections of other pages."""

    def __init__(self, chromium, number):
        self.chromium, self.number = chromium, number

    def run(self, body):
        return self.chromium.ask(page=self.number, body=body)

    def get(self, expression):
        """The value of an expression in the page."""
        return self.run("return await page.evaluate(() => (%s))" % expression)

    def text(self, selector):
        """An element's text, also if its view is not shown."""
        return self.run("return await page.locator(%s).evaluate((e) => e.innerText || e.textContent)" % json.dumps(selector))

    def open(self, url):
        self.run("await page.goto(%s)" % json.dumps(url))
        wait_until(lambda: self.text("#online") != "–", 15, "the page to be filled")

    def rows(self):
        return self.get('[...document.querySelectorAll("#space .row")].sort((a, b) => a.dataset.index - b.dataset.index)'
                        '.map((r) => r.children[0].textContent)')

    def feed(self):
        return self.get('[...document.querySelectorAll("#feed li")].map((l) => [l.querySelector("button").textContent,'
                        ' l.querySelector(".state").textContent])')

    def close(self):
        if self.chromium.proc.poll() is None:
            self.chromium.ask(page=self.number, close=True)
