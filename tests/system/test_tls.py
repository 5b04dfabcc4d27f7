# SPDX-License-Identifier: MIT
"""TLS to the broker with certificates made here: a valid one works, and each invalid one is refused with one line that names
the reason. Verification cannot be switched off."""
import datetime
import re
import subprocess

import paho.mqtt.client as paho
import pytest

from hw_servers import Tls
from hw_wait import throughout, wait_until

HOST = "TLS with 127.0.0.1:"


def lines(d):
    """The log lines about the connection."""
    return [l for l in d.log().splitlines() if re.search(r"\b(TLS|certificate|tls_\w+)\b", l)]


def dated(tls, name, start, end):
    """A server certificate that is valid between two days, counted from today."""
    def day(n):
        return (datetime.datetime.utcnow() + datetime.timedelta(days=n)).strftime("%y%m%d%H%M%SZ")
    key, csr, crt = (tls.dir / (name + s) for s in (".key", ".csr", ".crt"))
    conf = tls.dir / (name + ".cnf")
    (tls.dir / (name + ".index")).write_text("")
    (tls.dir / (name + ".serial")).write_text("1000\n")
    conf.write_text(
        "[ca]\ndefault_ca = x\n[x]\ndatabase = %s.index\nserial = %s.serial\nnew_certs_dir = %s\ncertificate = %s\n"
        "private_key = %skey\ndefault_md = sha256\npolicy = any\nx509_extensions = ext\n[any]\ncommonName = supplied\n"
        "[ext]\nsubjectAltName = IP:127.0.0.1\n" % (
            tls.dir / name, tls.dir / name, tls.dir, tls.ca, str(tls.ca)[:-3]))
    tls.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + name,
            "-keyout", key, "-out", csr)
    tls.run("ca", "-batch", "-config", conf, "-startdate", day(start), "-enddate", day(end), "-in", csr, "-out", crt,
            "-notext")
    return crt, key


def broker_with(env, tls, certificate=None, require_client=False):
    """A broker with that certificate, or with the authority's valid one."""
    own = Tls.__new__(Tls)
    own.__dict__.update(tls.__dict__)
    own.require_client = require_client
    if certificate:
        own.server_cert, own.server_key = certificate
    return env.own_broker(tls=own)


def is_refused(env, expected, mqtt):
    """The monitor is blind (link) and logs one line, however often it tries."""
    d = env.daemon(seeing=False, timeout="1h", monitor={"log_level": "warning"}, mqtt=mqtt)
    wait_until(lambda: lines(d), 10, "a line about it")
    throughout(lambda: d.status()["blind_cause"] == "link" and d.alive, 2.5)
    said = lines(d)
    assert len(said) == 1, said
    assert re.search(expected, said[0]), said
    assert d.status()["mqtt"] != "up"
    return d


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_good_certificate(env, tls, protocol):
    broker_with(env, tls)
    env._publisher = env.client(tls=tls, protocol=paho.MQTTv311)
    observer = env.observer(tls=tls)
    d = env.daemon(timeout="500ms", mqtt={"tls_ca": tls.ca, "protocol": protocol})
    env.beat("x")
    env.wait_status(observer, "x", True)
    env.wait_status(observer, "x", False)
    env.wait_store("x", "offline")
    assert env.edges("x") == [("online", "heartbeat"), ("offline", "timeout")]
    assert not lines(d), d.log()
    assert re.search(r" info: broker: heartbeats are read by libmosquitto .*\(the connection is encrypted\)", d.log())


def test_a_good_certificate_by_name(env, tls):
    broker_with(env, tls)
    d = env.daemon(mqtt={"tls_ca": tls.ca, "host": "localhost"})
    wait_until(lambda: d.status()["mqtt"] == "up")  # the subscriber, then the publisher


def test_an_authority_that_nobody_trusts(env, tls, other_tls):
    broker_with(env, tls)
    is_refused(env, HOST + r"\d+ failed: .*: did \[mqtt\] tls_ca sign", {"tls_ca": other_tls.ca})


def test_a_certificate_that_signs_itself(env, tls):
    own = Tls(env.own_dir("tls"), "self")
    key, crt = own.dir / "alone.key", own.dir / "alone.crt"
    own.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
            "/CN=alone", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", crt)
    broker_with(env, tls, (crt, key))
    is_refused(env, HOST + r"\d+ failed: self.signed certificate", {"tls_ca": tls.ca})


def test_a_certificate_that_has_expired(env, tls):
    broker_with(env, tls, dated(tls, "expired", -10, -1))
    d = is_refused(env, HOST + r"\d+ failed: .*certificate has expired: renew it, or set the clock", {"tls_ca": tls.ca})
    # A renewed one is taken by itself.
    env.broker.stop()
    env.broker.tls = tls
    env.broker.start()
    d.wait_seeing(40)


def test_a_certificate_of_tomorrow(env, tls):
    broker_with(env, tls, dated(tls, "tomorrow", 1, 3))
    is_refused(env, HOST + r"\d+ failed: .*not yet valid", {"tls_ca": tls.ca})


@pytest.mark.parametrize("names", ["IP:127.0.0.2,DNS:broker.example", "DNS:*.example"])
def test_a_certificate_of_another_host(env, tls, names):
    broker_with(env, tls, tls.issue("elsewhere%d" % len(names), "subjectAltName=" + names))
    is_refused(env, HOST + r"\d+ failed: the broker's certificate is not for 127\.0\.0\.1", {"tls_ca": tls.ca})


def test_a_client_certificate(env, tls, other_tls):
    """The broker requires a client certificate: with it the connection works; without, or with a stranger's, one line names
    what is required."""
    broker_with(env, tls, require_client=True)
    env._publisher = env.client(tls=tls)
    d = env.daemon(timeout="1h", mqtt={"tls_ca": tls.ca, "tls_cert": tls.client_cert, "tls_key": tls.client_key})
    env.beat("x")
    env.wait_store("x", "online")
    assert not lines(d), d.log()


def test_no_client_certificate(env, tls):
    broker_with(env, tls, require_client=True)
    is_refused(env, r"the broker at 127\.0\.0\.1:\d+ ended the TLS handshake: does it ask for a certificate, \[mqtt\] tls_cert",
               {"tls_ca": tls.ca})


def test_a_client_certificate_of_a_stranger(env, tls, other_tls):
    broker_with(env, tls, require_client=True)
    is_refused(env, r"the broker at 127\.0\.0\.1:\d+ ended the TLS handshake: does it accept \[mqtt\] tls_cert\?",
               {"tls_ca": tls.ca, "tls_cert": other_tls.client_cert, "tls_key": other_tls.client_key})


def test_a_key_of_another_certificate(env, tls, other_tls):
    broker_with(env, tls, require_client=True)
    is_refused(env, r"TLS|tls_key", {"tls_ca": tls.ca, "tls_cert": tls.client_cert, "tls_key": other_tls.client_key})


def test_a_key_with_a_password(env, tls, tmp_path):
    """No prompt appears on a terminal: it would block the connection's thread and the daemon's end."""
    broker_with(env, tls, require_client=True)
    key = tmp_path / "locked.key"
    subprocess.run(["openssl", "pkey", "-in", tls.client_key, "-aes128", "-passout", "pass:secret", "-out", key], check=True)
    is_refused(env, r"tls_key = \S+/locked\.key has a password",
               {"tls_ca": tls.ca, "tls_cert": tls.client_cert, "tls_key": key})


def test_tls_to_a_port_without(env, tls):
    env.own_broker()
    is_refused(env, r"uses MQTT without TLS: remove \[mqtt\] tls_ca", {"tls_ca": tls.ca})


def test_no_tls_to_a_port_with_it(env, tls):
    broker_with(env, tls)
    d = env.daemon(seeing=False, monitor={"log_level": "warning"})
    wait_until(lambda: "uses TLS: set [mqtt] tls_ca" in d.log(), 10, "that the port speaks TLS")
    throughout(lambda: d.status()["blind_cause"] == "link", 1)
    assert len(lines(d)) == 1, d.log()
