# SPDX-License-Identifier: MIT
"""One adapter for each broker: how a private one is started, stopped and asked whether it is ready.

Each is a Server of the system tests: a free port of 127.0.0.1, every file in the directory it is given, never the
system's service. What a broker can do is nowhere written down here: facts.py tries it.
"""
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
from pathlib import Path

from hw_mqtt import RawMqtt
from hw_process import Process, Server, free_port
from hw_servers import Broker
from hw_wait import wait_until

HERE = Path(__file__).resolve().parent
NODE = os.environ.get("HW_NODE", "")


def first_program(*names):
    """The first of these that is there: a path, or a name in PATH or in a directory of system programs."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return next((found for found in (shutil.which(n, path=path) for n in names) if found), None)


def debian_version(package):
    """"3.10.8-1.1+deb12u1" is 3.10.8."""
    out = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True).stdout
    return out.split(":")[-1].split("-")[0].split("+")[0] or "?"


def accepts_mqtt(port, credentials, patience=1.0):
    """Whether an MQTT 3.1.1 client is let in: several of these brokers open their port long before they serve it."""
    try:
        c = RawMqtt(port, client_id="hwready", patience=patience, **credentials)
    except (OSError, AssertionError, struct.error):
        return False
    c.goodbye()
    return True


class Adapter(Server):
    """What is common. `credentials`: username and password where the broker lets nobody in without."""

    package = None
    credentials = {}
    patience = 60  # on a machine that has other things to do

    @classmethod
    def missing(cls):
        """Why it cannot be run here, or None."""
        raise NotImplementedError

    @classmethod
    def version(cls):
        return debian_version(cls.package)

    def answers(self):
        return accepts_mqtt(self.port, self.credentials)

    def restart(self):
        self.stop()
        self.start()

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)


class Mosquitto(Adapter, Broker):
    """As Debian configures it, but for who may come in. Its limits are the default ones."""

    name = package = "mosquitto"

    def __init__(self, directory):
        Broker.__init__(self, directory, settings=())

    @classmethod
    def missing(cls):
        return None if first_program("mosquitto") else "no mosquitto: apt-get install mosquitto"


class Epmd(Process):
    """The port mapper of Erlang nodes. Without one of ours, the first node would leave a daemon behind."""

    name = "epmd"

    def start(self):
        self.port = free_port()
        self.spawn([first_program("epmd"), "-port", self.port, "-address", "127.0.0.1"])

        def answers():
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            except OSError:
                return not self.alive
        wait_until(answers, 20, "epmd")
        return self


class RabbitMq(Adapter):
    name = "rabbitmq"
    patience = 120
    package = "rabbitmq-server"
    program = "/usr/lib/rabbitmq/bin/rabbitmq-server"

    def __init__(self, directory):
        super().__init__(directory)
        self.epmd = Epmd(directory)
        self.dist = free_port()

    @classmethod
    def missing(cls):
        return None if os.path.exists(cls.program) else "no RabbitMQ: apt-get install rabbitmq-server"

    def launch(self):
        if not self.epmd.alive:
            self.epmd.start()
        (self.dir / "rabbitmq.conf").write_text(
            "listeners.tcp = none\nmqtt.listeners.tcp.1 = 127.0.0.1:%d\nmqtt.allow_anonymous = true\n"
            "log.console = true\nlog.console.level = warning\nlog.file = false\n" % self.port)
        (self.dir / "plugins").write_text("[rabbitmq_mqtt].\n")
        # With ALLOW_INPUT the script becomes the server, so that the process that we started is the one that we pause.
        self.spawn([self.program], env={
            "HOME": str(self.dir), "ERL_EPMD_PORT": str(self.epmd.port), "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_ALLOW_INPUT": "1", "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_NODENAME": "hw%d@localhost" % self.dist, "RABBITMQ_DIST_PORT": str(self.dist),
            "RABBITMQ_MNESIA_BASE": str(self.dir / "mnesia"), "RABBITMQ_LOG_BASE": str(self.dir / "log"),
            "RABBITMQ_CONFIG_FILE": str(self.dir / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.dir / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput +S 1:1 -kernel inet_dist_use_interface {127,0,0,1}"})

    def kill(self):
        super().kill()
        self.epmd.kill()


class Ejabberd(Adapter):
    """Without a node name, so that there is no distribution and no port mapper."""

    name = package = "ejabberd"
    credentials = {"username": "fleet", "password": "any"}

    @classmethod
    def missing(cls):
        return None if first_program("ejabberdctl") and first_program("erl") else "no ejabberd: apt-get install ejabberd"

    def launch(self):
        (self.dir / "ejabberd.yml").write_text("""hosts: [localhost]
loglevel: warning
listen:
  - port: %d
    ip: "127.0.0.1"
    module: mod_mqtt
    backlog: 1000
auth_method: [anonymous]
allow_multiple_connections: true
anonymous_protocol: login_anon
modules:
  mod_mqtt:
    access_publish: {"#": [{allow: all}]}
    access_subscribe: {"#": [{allow: all}]}
""" % self.port)
        (self.dir / "inetrc").write_text("")
        self.spawn([first_program("erl"), "-noinput", "+S", "1:1", "-mnesia", "dir", json.dumps(str(self.dir / "spool")),
                    "-s", "ejabberd"],
                   env={"HOME": str(self.dir), "EJABBERD_CONFIG_PATH": str(self.dir / "ejabberd.yml"),
                        "EJABBERD_LOG_PATH": str(self.dir / "ejabberd.log"),
                        "ERL_LIBS": str(next(Path("/usr/lib").glob("*/ejabberd-*"), Path("/usr/lib/erlang")).parent),
                        "ERL_CRASH_DUMP": str(self.dir / "crash"), "ERL_INETRC": str(self.dir / "inetrc")})


class Nats(Adapter):
    name = "nats"
    package = "nats-server"

    @classmethod
    def missing(cls):
        return None if first_program("nats-server") else "no NATS: apt-get install nats-server"

    def launch(self):
        (self.dir / "nats.conf").write_text(
            'listen: "127.0.0.1:-1"\nserver_name: hwtest\njetstream { store_dir: "%s" }\nmqtt { listen: "127.0.0.1:%d" }\n'
            % (self.dir / "jetstream", self.port))
        self.spawn([first_program("nats-server"), "-c", self.dir / "nats.conf"])


class ActiveMq(Adapter):
    """Debian's package leaves out the codec of its own MQTT plugin, which libmqtt-client-java has."""

    name = package = "activemq"
    jar = Path("/usr/share/activemq/bin/activemq.jar")
    codec = Path("/usr/share/java/mqtt-client.jar")

    @classmethod
    def missing(cls):
        if cls.jar.exists() and cls.codec.exists() and first_program("java"):
            return None
        return "no ActiveMQ with MQTT: apt-get install activemq libmqtt-client-java"

    def launch(self):
        (self.dir / "lib").mkdir(exist_ok=True)
        codec = self.dir / "lib" / "mqtt-client.jar"
        if not codec.exists():
            codec.symlink_to(self.codec)
        self.spawn([first_program("java"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                    "-Dactivemq.home=/usr/share/activemq", "-Dactivemq.base=%s" % self.dir,
                    "-Dactivemq.data=%s" % (self.dir / "data"), "-Djava.io.tmpdir=%s" % self.dir, "-jar", self.jar, "start",
                    "broker:(mqtt+nio://127.0.0.1:%d)?persistent=false&useJmx=false" % self.port])


class AedesBroker(Adapter):
    name = "aedes"

    @staticmethod
    def manifest():
        return Path(NODE) / "node_modules" / "aedes" / "package.json"

    @classmethod
    def missing(cls):
        if not first_program("node"):
            return "no node: apt-get install nodejs"
        if not NODE or not cls.manifest().exists():
            return "no aedes: run npm ci in a copy of tests/node, and name that directory in HW_NODE"
        return None

    @classmethod
    def version(cls):
        return json.loads(cls.manifest().read_text())["version"]

    def launch(self):
        self.spawn([first_program("node"), HERE / "aedes.mjs", NODE, self.port])


ADAPTERS = {a.name: a for a in (Mosquitto, RabbitMq, AedesBroker, Nats, Ejabberd, ActiveMq)}
TITLES = {"mosquitto": "mosquitto", "rabbitmq": "RabbitMQ", "aedes": "aedes", "nats": "NATS", "ejabberd": "ejabberd",
          "activemq": "ActiveMQ"}
