# SPDX-License-Identifier: MIT
"""The alert rules in a real Prometheus that scrapes a real daemon, through kills and restarts. Its minutes last a second."""
import json
import re
import shutil
import time
import urllib.request

import pytest

from hw_build import SRC
from hw_env import NO_STALL, NO_STANDSTILL
from hw_process import Server, free_port
from hw_void import Void
from hw_wait import pass_time, wait_until

PROMETHEUS = shutil.which("prometheus")
pytestmark = pytest.mark.skipif(not PROMETHEUS, reason="no prometheus (Debian package: prometheus)")


class Prometheus(Server):
    name = "prometheus"

    def __init__(self, directory, target):
        super().__init__(directory)
        self.target = target

    def launch(self):
        rules = (SRC / "conf" / "heartwheel-alerts.yml").read_text()
        rules = re.sub(r"\b(\d+)m\b", r"\1s", rules).replace("heartwheel_owed_oldest_seconds > 60", "heartwheel_owed_oldest_seconds > 1")
        (self.dir / "rules.yml").write_text(rules)
        (self.dir / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "heartwheel", "static_configs": [{"targets": [self.target]}]}]}))
        self.spawn([PROMETHEUS, "--config.file=%s" % (self.dir / "prometheus.yml"), "--storage.tsdb.path=%s" % (self.dir / "data"),
                    "--web.listen-address=127.0.0.1:%d" % self.port, "--log.level=warn"])

    def get(self, path):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.port, path), timeout=30) as r:
            return json.load(r)["data"]

    def answers(self):
        try:
            return self.get("/api/v1/status/runtimeinfo") is not None
        except OSError:
            return False

    def firing(self):
        return {a["labels"]["alertname"]: a for a in self.get("/api/v1/alerts")["alerts"] if a["state"] == "firing"}

    def wait_for(self, *names):
        wait_until(lambda: set(self.firing()) == set(names), 20, "the alerts %s, not %s" % (names, self.firing().keys()))


    def stays(self, *names, seconds, may=()):
        """These alerts fire during the whole time; those in `may` may fire or not. Void if a scrape was not answered within its
        200 ms: a missing value resolves an alert, or fires one."""
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            firing = set(self.firing())
            if firing != set(names) and not (may and firing <= set(may)):
                answered = self.get("/api/v1/query?query=min_over_time(up[%ds])" % (time.monotonic() - began + 1))["result"]
                if "HeartwheelMonitorGone" not in names and [r["value"][1] for r in answered] != ["1"]:
                    raise Void("a scrape was not answered in time")
                assert False, "%s fire, and not %s" % (firing, names or may)
            pass_time(0.02)


@pytest.fixture
def watched(env):
    """A daemon with 30 devices that beat, its Prometheus, and the means to stop the devices."""
    env.own_broker()
    env.own_redis(options=["--appendonly", "yes", "--appendfsync", "always"])
    port = free_port()
    d = env.daemon(timeout="1s", monitor=NO_STALL, mqtt=NO_STANDSTILL, http={"listen": "127.0.0.1:%d" % port})
    prometheus = Prometheus(env.own_dir("pr"), "127.0.0.1:%d" % port)
    env.servers.append(prometheus.start())
    env.check_events = False
    return d, prometheus


def devices():
    return ["x%d" % i for i in range(30)]


def test_no_outage_fires_more_than_its_own_alert(env, watched):
    d, p = watched
    with env.beating(devices()):
        wait_until(lambda: d.status()["online"] == 30)
        wait_until(lambda: p.get("/api/v1/query?query=heartwheel_build_info")["result"], 20, "the first scrape")
        p.stays(seconds=3)

        env.redis_server.kill()
        p.wait_for("HeartwheelLinkDown")
        assert p.firing()["HeartwheelLinkDown"]["labels"]["link"] == "redis"
        p.stays("HeartwheelLinkDown", seconds=3)
        env.redis_server.start()
        p.wait_for()

        env.redis.config_set("maxmemory", "1")
        p.wait_for("HeartwheelRedisRefuses")
        assert p.firing()["HeartwheelRedisRefuses"]["labels"]["error"] == "OOM"
        env.redis.config_set("maxmemory", "0")
        p.wait_for()

        # For longer than the five "minutes" after which this once resolved by itself.
        d.kill()
        p.wait_for("HeartwheelMonitorGone")
        p.stays("HeartwheelMonitorGone", seconds=8)
        d.start()
        p.wait_for()
        p.stays(seconds=2)

    # All die: one alert, for as long as they are offline.
    p.wait_for("HeartwheelFleetDown")
    p.stays("HeartwheelFleetDown", seconds=8)
    with env.beating(devices()):
        p.wait_for()


def test_a_part_of_the_fleet_and_a_flap(env, watched):
    d, p = watched
    with env.beating(devices()[:15]):
        with env.beating(devices()[15:]):
            wait_until(lambda: d.status()["online"] == 30)
            wait_until(lambda: p.get("/api/v1/query?query=heartwheel_build_info")["result"], 20, "the first scrape")
            p.stays(seconds=2)
        p.wait_for("HeartwheelMassOffline")
        p.stays("HeartwheelMassOffline", seconds=8)  # for longer than the five "minutes" after which it once resolved
        with env.beating(devices()[15:]):
            p.wait_for()


def test_a_broker_that_is_away(env, watched):
    d, p = watched
    with env.beating(devices()):
        wait_until(lambda: d.status()["online"] == 30)
    wait_until(lambda: d.status()["offline"] == 30)
    wait_until(lambda: p.get("/api/v1/query?query=heartwheel_build_info")["result"], 20, "the first scrape")
    p.wait_for("HeartwheelFleetDown")
    env.broker.kill()
    p.wait_for("HeartwheelBlind")
    assert "Cause: link." in p.firing()["HeartwheelBlind"]["annotations"]["description"]
    p.stays("HeartwheelBlind", seconds=5)
    env.broker.start()
    p.wait_for("HeartwheelFleetDown")


def test_a_start_without_redis_is_no_mass_death(env, watched):
    d, p = watched
    with env.beating(devices()):
        wait_until(lambda: d.status()["online"] == 30)
    wait_until(lambda: d.status()["offline"] == 30 and d.status()["owed"] == 0)
    d.stop()
    env.redis_server.kill()
    d.start()
    assert d.status()["devices"] == 0
    p.wait_for("HeartwheelLinkDown")
    fleet = "/api/v1/query?query=sum(heartwheel_devices%7Bstate=%22offline%22%7D)"
    wait_until(lambda: [r["value"][1] for r in p.get(fleet)["result"]] == ["0"], 20, "an empty fleet")
    p.stays("HeartwheelLinkDown", seconds=5.5)  # what came before is over for the rules
    env.redis_server.start()
    wait_until(lambda: [r["value"][1] for r in p.get(fleet)["result"]] == ["30"], 20, "the fleet that was stored")
    p.wait_for("HeartwheelFleetDown")  # that is true, and no mass death
    p.stays("HeartwheelFleetDown", seconds=6)
