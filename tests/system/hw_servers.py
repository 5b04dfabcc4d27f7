# SPDX-License-Identifier: MIT
"""Private mosquitto and redis-server processes, and certificates for them."""
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import redis

from hw_process import Server


class Broker(Server):
    """A private mosquitto. `settings`: further lines of its configuration."""

    name = "mosquitto"

    def __init__(self, directory, settings=("set_tcp_nodelay true",), users=None, acl=None, persistence=False, tls=None):
        super().__init__(directory)
        self.settings = list(settings)
        self.users = users
        self.acl = acl
        self.persistence = persistence
        self.tls = tls

    def launch(self):
        lines = ["listener %d 127.0.0.1" % self.port, "log_dest stderr", "log_type error", "log_type warning",
                 "log_type notice"]
        if os.geteuid() == 0:
            lines.append("user root")
        if self.tls:
            lines += ["cafile %s" % self.tls.ca, "certfile %s" % self.tls.server_cert,
                      "keyfile %s" % self.tls.server_key]
            if self.tls.require_client:
                lines += ["require_certificate true"]
        if self.users is None:
            lines.append("allow_anonymous true")
        else:
            lines += ["allow_anonymous false", "password_file %s" % self.write_users()]
        if self.acl is not None:
            (self.dir / "acl").write_text(self.acl)
            os.chmod(self.dir / "acl", 0o600)
            lines.append("acl_file %s" % (self.dir / "acl"))
        lines.append("persistence %s" % ("true" if self.persistence else "false"))
        if self.persistence:
            lines.append("persistence_location %s/" % self.dir)
        conf = self.dir / "mosquitto.conf"
        conf.write_text("\n".join(lines + self.settings) + "\n")
        self.spawn([shutil.which("mosquitto") or "/usr/sbin/mosquitto", "-c", conf])

    def write_users(self):
        path = self.dir / "passwd"
        path.write_text("")
        os.chmod(path, 0o600)
        for user, password in self.users.items():
            subprocess.run(["mosquitto_passwd", "-b", str(path), user, password], check=True, capture_output=True)
        return path

    def reload_users(self, users):
        self.users = users
        self.write_users()
        self.signal(signal.SIGHUP)

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False


class Redis(Server):
    """A private redis-server without persistence, unless `options` say otherwise."""

    name = "redis-server"

    def __init__(self, directory, options=(), password=None, unix_socket=None, env=None):
        super().__init__(directory)
        self.options = list(options)
        self.password = password
        self.unix_socket = unix_socket
        self.env = env

    def launch(self):
        argv = [shutil.which("redis-server") or "/usr/bin/redis-server", "--port", self.port, "--bind", "127.0.0.1",
                "--save", "", "--dir", self.dir, "--daemonize", "no"]
        if "appendonly" not in " ".join(map(str, self.options)):
            argv += ["--appendonly", "no"]
        if self.password:
            argv += ["--requirepass", self.password]
        if self.unix_socket:
            argv += ["--unixsocket", self.unix_socket]
        self.spawn(argv + self.options, env=self.env)

    def client(self, db=0):
        return redis.Redis("127.0.0.1", self.port, db=db, password=self.password, socket_timeout=30,
                           decode_responses=True)

    def answers(self):
        try:
            return self.client().ping()
        except redis.exceptions.RedisError:
            return False


class Tls:
    """A certificate authority, a server certificate for 127.0.0.1 and a client certificate."""

    def __init__(self, directory, name="ca"):
        self.dir = Path(directory)
        self.require_client = False
        self.ca = self.dir / ("%s.crt" % name)
        ca_key = self.dir / ("%s.key" % name)
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign",  # Python 3.13 takes no authority without it
                 "-subj", "/CN=heartwheel test %s" % name, "-keyout", ca_key, "-out", self.ca)
        self.server_cert, self.server_key = self.issue(name + "-server", "subjectAltName=IP:127.0.0.1,DNS:localhost")
        self.client_cert, self.client_key = self.issue(name + "-client", "extendedKeyUsage=clientAuth")

    def run(self, *args):
        subprocess.run(["openssl", *[str(a) for a in args]], check=True, capture_output=True)

    def issue(self, name, extension):
        key, csr, crt = (self.dir / (name + s) for s in (".key", ".csr", ".crt"))
        ext = self.dir / (name + ".ext")
        ext.write_text(extension + "\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")
        self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + name,
                 "-keyout", key, "-out", csr)
        self.run("x509", "-req", "-in", csr, "-CA", self.ca, "-CAkey", str(self.ca)[:-3] + "key", "-CAcreateserial",
                 "-days", "2", "-extfile", ext, "-out", crt)
        return crt, key
