# SPDX-License-Identifier: MIT
"""The devices of docs/examples, word for word."""
import os
import shutil
import subprocess
import sys

import pytest

from hw_build import SRC
from hw_tasks import Sender, Tasks
from hw_wait import wait_until

EXAMPLES = SRC / "docs" / "examples"


def command(kind, dir_):
    if kind == "py":
        return [sys.executable, EXAMPLES / "device.py"]
    if kind == "c":
        cc = next((c for c in ("gcc", "clang", "cc") if shutil.which(c)), None)
        if not cc:
            pytest.skip("no compiler is there")
        subprocess.run([cc, "-Wall", "-Werror", "-o", dir_ / "device", EXAMPLES / "device.c", "-lmosquitto", "-lcjson"], check=True)
        return [dir_ / "device"]
    node = os.environ.get("HW_NODE")
    if not node or not os.path.isdir(os.path.join(node, "node_modules", "mqtt")):
        pytest.skip("HW_NODE has no mqtt")
    shutil.copy(EXAMPLES / "device.mjs", dir_)
    os.symlink(os.path.join(node, "node_modules"), dir_ / "node_modules")
    return ["node", dir_ / "device.mjs"]


@pytest.mark.parametrize("kind", ["py", "c", "mjs"])
def test_an_example_does_each_task_once(env, tmp_path, kind):
    env.own_broker()
    name = "pump-%s" % kind
    tasks = Tasks(env, root="nodes", ack_wait="1s").start()
    alice = Sender(tasks)
    with subprocess.Popen([*command(kind, tmp_path), name, "127.0.0.1", str(env.broker.port)], stdout=subprocess.PIPE) as device:
        try:
            assert device.stdout.readline() == b"ready\n"
            m = alice.submit(name, "add", [1, 2, 4])
            assert alice.wait(m, "complete")["value"] == {"sum": 7}
            # what comes again is answered again, and not done again
            seen = env.observer("nodes/heartwheel/+/" + name)
            task = {"sender": "heartwheel", "receiver": name, "msg_id": alice.task(m), "action": "add", "time": 0,
                    "exp": 4102444800, "payload": [5]}
            alice.client.publish("nodes/%s/pending" % name, task, qos=1)
            wait_until(lambda: seen.messages, what="the last answer again")
            assert [(x.topic.split("/")[2], x.json().get("value")) for x in seen.messages] == [("complete", {"sum": 7})]
            m = alice.submit(name, "explode")
            assert "no" in alice.wait(m, "failed")["error"]
        finally:
            device.terminate()
