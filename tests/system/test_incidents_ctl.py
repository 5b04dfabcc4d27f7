# SPDX-License-Identifier: MIT
"""heartwheelctl status, top, watch and show: open incidents in the sentence of the notifications, and a device's parents."""
import re
import subprocess

from hw_alert import Alert, Inbox
from hw_build import HEARTWHEELCTL
from hw_env import NO_STALL, NO_STANDSTILL
from hw_screen import Terminal
from hw_wait import throughout, wait_until
from test_ctl import Watch
from test_parents import gateway, groups, valve

UNTIL_OFFLINE = 30


def test_one_sentence_everywhere(env):
    env.check_events = False
    inbox = Inbox(env)
    a = Alert(env, receivers={"ops": inbox.receiver()}, mass=0, flap_start=0)
    d = env.daemon(monitor=NO_STALL, mqtt=NO_STANDSTILL, groups=groups(env, gateway="2s", valve="1s"), alert={"socket": a.socket})

    def incidents():
        """The first line about incidents in `heartwheelctl status`."""
        return next(l[12:] for l in d.ctl("status").stdout.splitlines() if l.startswith("incidents"))
    assert incidents() == "heartwheel-alert is not running"
    a.start()
    assert incidents() == "none is open"
    w, filtered = Watch(d), Watch(d, "--group", "valves")
    t = Terminal([str(HEARTWHEELCTL), "-s", str(d.socket), "top"], 40, 100, TERM="linux", LC_ALL="C.UTF-8")
    try:
        wait_until(lambda: a.json("/v1/status")["event_clients"] == 1, what="watch to follow incidents")
        gateway(env, "gateway-a")
        for v in ("v1", "v2"):
            valve(env, "a", v)
        wait_until(lambda: a.incidents() and a.incidents()[0]["unreachable"] == 2, UNTIL_OFFLINE)
        sentence = a.incidents()[0]["sentence"]
        assert re.fullmatch(r"gateway gateway-a is offline since \S+: 2 devices behind it are unreachable", sentence)
        assert incidents() == sentence
        t.shows(sentence)
        wait_until(lambda: [l for l in w.lines if re.match(r"\S+ \S+  incident   opened +\w+ gateway-a .*is offline since ", l)])
        show = d.ctl("show", "v1").stdout
        assert re.search(r"^  parents    gateway-a offline$", show, re.M) and "children" not in show
        show = d.ctl("show", "gateway-a").stdout
        assert re.search(r"^  children   2 devices are behind it$", show, re.M) and "parents" not in show
        members = [l for l in d.ctl("incident", a.incidents()[0]["id"]).stdout.splitlines() if ", since " in l]
        assert members[0].startswith("down          gateway-a, since ") and len(members) == 3
        assert all(re.fullmatch(r"unreachable   v[12], since \S+, behind gateway-a", m) for m in members[1:]), members
        assert a.request("POST", "/v1/silences", {"match": "id:gateway-a", "until_online": True}).status == 201
        assert re.search(r"  silenced +gateway gateway-a", d.ctl("incidents").stdout)

        def is_over():
            gateway(env, "gateway-a")
            for v in ("v1", "v2"):
                valve(env, "a", v)
            return not a.incidents()
        wait_until(is_over)
        wait_until(lambda: [l for l in w.lines if re.search(r"  incident   closed +.*gateway-a .*was offline from ", l)])
        assert not [l for l in filtered.lines if "incident" in l]
        a.stop()
        t.shows("gateway-a", without=[sentence])
        throughout(lambda: w.proc.poll() is None, 1)
    finally:
        w.stop()
        filtered.stop()
        t.close()


def test_a_silence_that_matches_nothing(env):
    """heartwheelctl warns, at heartwheeld's socket and with the sockets of monitor.conf, and names the group that was meant."""
    env.check_events = False
    a = Alert(env)
    d = env.daemon(monitor=NO_STALL, mqtt=NO_STANDSTILL, groups=groups(env), alert={"socket": a.socket})
    a.conf.write_text(a.conf.read_text() + "[http]\nsocket = %s\n" % d.socket)
    a.start()
    valve(env, "a", "v1")
    wait_until(lambda: d.state("v1") == "online")
    for words, warning in ((["group:vavles"], "no group matches group:vavles, so the silence matches no device; did you mean group:valves?"),
                           (["group:pumps"], "no group matches group:pumps, so the silence matches no device; 'heartwheelctl groups' lists all groups"),
                           (["id:v7"], "no device matches id:v7; 'heartwheelctl list' lists all devices"),
                           (["group:valves", "label:site=north"], "no device matches label:site=north; 'heartwheelctl list' lists all devices"),
                           (["group:val*", "id:v?"], None), (["id:v1"], None)):
        for run in (d.ctl("silence", *words, "--for", "1h"),
                    subprocess.run([HEARTWHEELCTL, "-c", a.conf, "silence", *words, "--for", "1h"], capture_output=True, text=True)):
            assert run.returncode == 0 and re.fullmatch(r"\w{12}\n", run.stdout), run
            assert run.stderr == ("heartwheelctl: warning: %s\n" % warning if warning else ""), run.stderr
    wrong = d.ctl("silence", "valves", "--for", "1h")
    assert wrong.returncode == 1 and "`match` is not a matcher: give terms group:GLOB, id:GLOB or label:NAME=GLOB" in wrong.stderr, wrong.stderr
