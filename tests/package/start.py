#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""start.py TREE: does what docs/start.md says, in a Debian tree in which the package is installed: its blocks of shell, as they
stand there, and what "What you should see" promises. Run by test_package.sh in namespaces of its own. Step 1 has been done; in
place of systemd and of the server on the Internet there are stand-ins, and waits are shorter."""
import http.server
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

TREE = Path(sys.argv[1])
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "start.md").read_text()
failed = 0
SYSTEMCTL = r"""#!/bin/bash
# Stands in for systemd. Returns when the service has stopped, or works.
within_30_s()
{
	for _ in {1..300}; do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "not within 30 s: $*" >&2
	exit 1
}
has_ended() { [ ! -e "/proc/$1/exe" ]; }
listens() { exec 3<>"/dev/tcp/localhost/$1"; }
is_up() { heartwheelctl status | tr '\n' ' ' | grep 'mqtt *up.*redis *up'; }
end()
{
	local pid
	pid=$(cat "$1" 2>/dev/null) || return
	kill "$pid"
	within_30_s has_ended "$pid"
}
run()
{
	setsid setpriv --reuid=heartwheel --regid=heartwheel --init-groups $(sed -n 's/^ExecStart=//p' "/lib/systemd/system/$1.service") \
		>"/tmp/$1.out" 2>&1 </dev/null &
}
case "$*" in
'restart mosquitto')
	end /run/mosquitto/mosquitto.pid
	install -d -o mosquitto /run/mosquitto
	setsid mosquitto -c /etc/mosquitto/mosquitto.conf >/tmp/mosquitto.out 2>&1 </dev/null &
	within_30_s listens 8883 ;;
'reload mosquitto') kill -HUP "$(cat /run/mosquitto/mosquitto.pid)" ;;
'enable --now heartwheel-alert')
	run heartwheel-alert
	within_30_s heartwheelctl incidents ;;
'restart heartwheeld')
	end /run/heartwheel/heartwheeld.pid
	install -d -o heartwheel -g heartwheel /run/heartwheel
	run heartwheeld
	within_30_s is_up ;;
*) echo "systemctl $*: not here" >&2; exit 1 ;;
esac
"""


def expect(what, ok, text=""):
    global failed
    print(("ok: " if ok else "not ok: ") + what, flush=True)
    if not ok:
        failed += 1
        print("\n".join("    " + line for line in str(text).splitlines()[-30:]), flush=True)


def step(number):
    """[(language, text)]: the blocks of a step."""
    part = re.search(r"^## %d\. .*?(?=^## |\Z)" % number, PAGE, re.S | re.M).group()
    part = re.split(r"^### EMQX", part, flags=re.M)[0]
    return re.findall(r"^```(\w*)\n(.*?)^```", part, re.S | re.M)


def shell(text, seconds=60):
    """(status, what it prints) of commands in the tree, where each must succeed."""
    done = subprocess.run(["chroot", TREE, "bash", "-e", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=seconds, check=False)
    return done.returncode, done.stdout


def do(what, text, wanted=""):
    rc, out = shell(text)
    expect(what, rc == 0 and re.search(wanted, out), "%s\nstatus %d, wanted %r" % (out, rc, wanted))
    return out


def until(what, text, wanted, seconds=60):
    end = time.monotonic() + seconds
    while True:
        rc, out = shell(text)
        if rc == 0 and re.search(wanted, out):
            return expect(what, True)
        if time.monotonic() > end:
            return expect(what, False, "%s\nwanted %r" % (out, wanted))
        time.sleep(0.5)


class Phone(http.server.BaseHTTPRequestHandler):
    rang = []

    def do_POST(self):
        self.rang.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(200)
        self.end_headers()

    def log_message(self, *a):
        pass


def blocks(number, language):
    return [text for lang, text in step(number) if lang == language]


def main():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", TREE / "proc"], check=True)
    (TREE / "etc/hosts").write_text("127.0.0.1 localhost\n")
    shim = TREE / "usr/local/bin/systemctl"
    shim.write_text(SYSTEMCTL)
    shim.chmod(0o755)
    shell("redis-server --daemonize yes --dir /tmp >/dev/null")
    for n, text in enumerate(blocks(2, "sh")):
        do("step 2, block %d" % (n + 1), text, "accepted" if "accepted" in text else "")
    prepare, discover = blocks(3, "sh")[0].split("heartwheelctl discover", 1)
    publish = blocks(5, "sh")[0].split("heartwheelctl")[0]
    other = "mosquitto_passwd -b /etc/mosquitto/passwd pump-8 pump-8-secret\n"  # a group has two devices
    do("step 3: the devices are found", other + prepare + "(sleep 1; " + publish.rstrip() + "\n" +
       publish.replace("pump-7", "pump-8").rstrip() + ") & heartwheelctl discover" + discover.replace("--for 60s", "--for 4s"),
       r"2 devices like nodes/pump-[78]/heartbeat\n(#.*\n)*\[group nodes\]\nheartbeat = nodes/\{id\}/heartbeat\n")
    conf, = blocks(4, "ini")
    (TREE / "etc/heartwheel/monitor.conf").write_text(conf)
    rights = next(text for lang, text in step(4) if not lang)
    acl = TREE / "etc/mosquitto/heartwheel.acl"
    acl.write_text(acl.read_text().replace("user heartwheel\n", "user heartwheel\n" + rights, 1))
    shell("systemctl reload mosquitto")
    do("step 4: the file is ok, and heartwheeld starts", blocks(4, "sh")[0], r"(?s)\bok\b.*mqtt +up.*redis +up")
    until("step 4: it watches", "heartwheelctl status", r"watching +yes", 30)
    do("step 5: pump-7 is online", blocks(5, "sh")[0] if "heartwheelctl list" in blocks(5, "sh")[0] else "", r"")
    until("step 5: it is in the list", "heartwheelctl list", r"pump-7 .*online", 5)
    do("step 5: the page", "curl -sf http://127.0.0.1:8731/", "heartwheel")
    watch = "timeout 40 %s | grep -m 1 pump-7" % blocks(6, "sh")[0].strip()
    do("step 6: pump-7 is offline", watch, r"offline +timeout +pump-7")
    do("step 6: it is in the list of those", "heartwheelctl list --state offline", "pump-7")
    phone = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Phone)
    threading.Thread(target=phone.serve_forever, daemon=True).start()
    notify, = blocks(7, "ini")
    conf += "\n" + notify.replace("https://ntfy.sh", "http://127.0.0.1:%d" % phone.server_port)
    (TREE / "etc/heartwheel/monitor.conf").write_text(conf)
    do("step 7: a test arrives", blocks(7, "sh")[0], r"phone: sent")
    expect("step 7: the phone rings", Phone.rang, "no message came")
    shell(publish)
    end = time.monotonic() + 60
    while time.monotonic() < end and not [m for m in Phone.rang if "pump-7" in m and "offline" in m]:
        time.sleep(0.5)
    expect("step 7: a message names the device that stopped", [m for m in Phone.rang if "pump-7" in m and "offline" in m],
           json.dumps(Phone.rang))
    if failed:
        print((TREE / "tmp/heartwheeld.out").read_text()[-3000:])
    return failed > 0


sys.exit(main())
