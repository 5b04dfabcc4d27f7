# SPDX-License-Identifier: MIT
"""The programs of docs/recipes.md, word for word; only the address, the token and a port are the test's."""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import urllib.request

import pytest

from hw_alert import Alert
from hw_build import SRC
from hw_process import free_port
from hw_tasks import Device, Tasks
from hw_wait import wait_until

PAGE = (SRC / "docs" / "recipes.md").read_text()
TITLES = ("List what is offline", "Follow events, and resume", "Send a command", "Silence a device, and list incidents", "A dashboard in ten lines")
RUN = {"sh": ["bash", "-c"], "python": ["python3", "-c"], "js": ["node", "--input-type=module", "-e"]}


def recipes(title):
    part = re.search(r"^## %s$(.*?)(?=^## |\Z)" % re.escape(title), PAGE, re.S | re.M).group(1)
    return re.findall(r"^```(\w+)\n(.*?)^```", part, re.S | re.M)


CASES = [pytest.param(title, language, text, id="%s-%s" % (title.split()[0].lower(), language))
         for title in TITLES for language, text in recipes(title)]


def test_each_recipe_is_in_three_languages():
    for title in TITLES[:4]:
        assert [language for language, _ in recipes(title)] == ["sh", "python", "js"], title


class Run:
    """A recipe that runs; .text() is its output so far."""

    def __init__(self, env, language, text):
        self.out = env.own_dir("recipe") / "out"
        with open(self.out, "wb") as f:
            self.proc = subprocess.Popen(RUN[language] + [text], stdout=f, stderr=subprocess.STDOUT, cwd=self.out.parent,
                                         start_new_session=True)

    def text(self):
        return self.out.read_text()

    def end(self):
        if self.proc.poll() is None:
            os.killpg(self.proc.pid, signal.SIGKILL)
        self.proc.wait(10)


@pytest.mark.parametrize("title,language,text", CASES)
def test_a_recipe(env, title, language, text):
    if language == "js" and not shutil.which("node"):
        pytest.skip("no node (Debian package: nodejs)")
    port, door = free_port(), free_port()
    users = env.own_dir("users") / "users"
    users.write_text("otto:operate:%s\n" % hashlib.sha256(b"tok-otto").hexdigest())
    tasks = Tasks(env) if title == "Send a command" else None
    alert = Alert(env) if title.startswith("Silence") else None
    conf = env.text(timeout="500ms", http={"listen": "127.0.0.1:%d" % port, "users": users, "socket": env.dir / "c.sock"})
    conf += "[tasks]\nsocket = %s\n" % tasks.socket if tasks else "[alert]\nsocket = %s\n" % alert.socket if alert else ""
    d = env.configure(conf)
    d.socket, d.pid_file = env.dir / "c.sock", env.dir / "heartwheeld.pid"
    if tasks:
        tasks.start()
        Device(tasks, "pump-7")
    d.start()
    if not tasks:  # a command waits for a device that is offline
        env.beat("pump-7")
        wait_until(lambda: d.state("pump-7") == "offline", what="pump-7 to be offline")
    if alert:
        alert.start()
        wait_until(alert.incidents)
    for old, new in (("127.0.0.1:8731", "127.0.0.1:%d" % port), ("Bearer TOKEN", "Bearer tok-otto"), ('"TOKEN"', '"tok-otto"'),
                     ("listen(8080", "listen(%d" % door)):
        text = text.replace(old, new)
    run = Run(env, language, text)
    try:
        if title == "Follow events, and resume":
            wait_until(lambda: re.search(r"pump-7.*online(?s:.*)pump-7.*offline", run.text()), what="the past")
            env.beat("pump-7")
            wait_until(lambda: len(re.findall("pump-7.*offline", run.text())) == 2, what="what is new, once")
            d.stop()
            d.start()
            env.beat("pump-7")
            if language != "sh":
                wait_until(lambda: len(re.findall("pump-7.*offline", run.text())) == 3, what="what is new after a restart, once")
        elif title.startswith("A dashboard") and language == "js":
            def page():
                try:
                    return urllib.request.urlopen("http://127.0.0.1:%d/" % door, timeout=5).read().decode()
                except OSError:
                    return ""
            wait_until(lambda: "<td>default<td>0 online<td>1 offline" in page(), what="the counts on the page")
        else:
            want = {"List what is offline": r"pump-7.*timeout" if language != "sh" else r'"id":"pump-7".*"total":1',
                    "Silence a device, and list incidents": r"0\w{11} device pump-7 of group default is offline since \S+ \(silenced\)"
                    if language != "sh" else r'{"id":"0\w{11}"}\s*{"incidents":.*"silenced":1',
                    "Send a command": "complete"}.get(title, r"default +0 online +1 offline")
            wait_until(lambda: re.search(want, run.text()), what=want)
            if not title.startswith("A dashboard"):
                assert run.proc.wait(10) == 0, run.text()
    finally:
        run.end()
