#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A device that takes tasks of heartwheel-tasks: device.py NAME [HOST [PORT]]. Needs paho-mqtt (1.6 or 2)."""
import json
import sys
import time

import paho.mqtt.client as mqtt

name = sys.argv[1]
host = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
port = int(sys.argv[3]) if len(sys.argv) > 3 else 1883
done = {}  # msg_id -> (exp, what was said last). A real device keeps this over a restart.


def carry_out(action, payload):
    """What the device is there for. Returns what it tells; raises what went wrong."""
    if action == "add":
        return {"sum": sum(payload)}
    raise ValueError("no action %s" % action)


def say(client, task, word, body):
    done[task["msg_id"]] = (task["exp"], word, body)
    client.publish("nodes/%s/%s/%s" % (task["sender"], word, name), json.dumps({"msg_id": task["msg_id"], **body}), 1)


def on_message(client, _, message):
    task = json.loads(message.payload)
    now = time.time()
    for known in [k for k, v in done.items() if v[0] < now]:
        del done[known]  # it may be forgotten: what comes after its exp is ignored
    if now > task["exp"]:
        return
    if task["msg_id"] in done:  # again: our answer was lost
        _, word, body = done[task["msg_id"]]
        say(client, task, word, body)
        return
    say(client, task, "ack", {})
    try:
        say(client, task, "complete", {"value": carry_out(task["action"], task["payload"])})
    except Exception as error:
        say(client, task, "failed", {"error": str(error)})


def on_connect(client, *_):
    client.subscribe("nodes/%s/pending" % name, 1)
    print("ready", flush=True)


client = mqtt.Client(client_id=name, clean_session=False) if not hasattr(mqtt, "CallbackAPIVersion") else \
    mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, clean_session=False)
client.on_connect, client.on_message = on_connect, on_message
client.connect(host, port)
client.loop_forever()
