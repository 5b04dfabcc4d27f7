# SPDX-License-Identifier: MIT
"""The receivers of heartwheel-alert without the daemon (send_messages.c), and the servers that they send to: web servers of the
test, Debian's Alertmanager and Exim."""
import http.server
import json
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.request

from hw_build import BUILD, SANITIZER
from hw_process import Process, free_port
from hw_wait import wait_until

PROGRAM = BUILD / "tests" / "system" / "send_messages"
TRUSTED = "/etc/ssl/certs/ca-certificates.crt"


def message(receiver, number, what="opened", at_ms=None, more_news=(), **incident):
    """A message to a receiver, with one item of news unless more are given."""
    at_ms = at_ms or int(time.time() * 1000)
    state = {"closed": "closed", "merged": "merged"}.get(what, "open")
    first = {"id": "0abcdefgh%03d" % number, "kind": "device", "state": state, "group": "pumps", "device": "pump-7",
             "labels": {"site": "north"}, "since_ms": at_ms - 30000, "opened_ms": at_ms - 20000, "down": 1, "unreachable": 0,
             "devices": ["pump-7"], "sentence": "device pump-7 of group pumps is offline since 14:39:16", **incident}
    if state != "open":
        first.setdefault("closed_ms", at_ms)
    return {"message": "%s-%d" % (receiver, number), "node": "hub", "time_ms": at_ms, "summary": first["sentence"],
            "news": [{"what": what, "incident": first}, *more_news]}


def can_trust():
    """Whether a program can be given a certificate authority of the test's own."""
    return os.geteuid() == 0 and os.path.exists(TRUSTED) and subprocess.run(
        ["unshare", "-m", "mount", "--bind", "/etc/hosts", TRUSTED], capture_output=True, check=False).returncode == 0


class Sender:
    """send_messages with these sections. `ca`: trusts this authority alone, in a mount namespace of its own."""

    def __init__(self, directory, text, ca=None):
        self.conf = directory / "receivers.conf"
        self.errors = directory / "receivers.err"
        self.ca = ca
        self.proc = None
        self.start(text)

    def start(self, text=None):
        if text is not None:
            self.conf.write_text(text)
        argv = [str(PROGRAM), str(self.conf)]
        if self.ca:
            argv = ["unshare", "-m", "sh", "-c", 'mount --bind "$1" %s && shift && exec "$@"' % TRUSTED, "sh", str(self.ca)] + argv
        self.done, self.troubles, self.answers = [], [], []
        with open(self.errors, "wb") as errors:
            self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.reader = threading.Thread(target=self.read, args=(self.proc.stdout, self.done, self.troubles, self.answers), daemon=True)
        self.reader.start()
        wait_until(lambda: any(not a.startswith("wrong") for a in self.answers))
        self.wrong = [a.split(" ", 1)[1] for a in self.answers if a.startswith("wrong")]
        assert self.answers.pop() == "ok", self.wrong
        return self

    @staticmethod
    def read(out, done, troubles, answers):
        for line in out:
            line = line.rstrip("\n")
            if line.startswith("done "):
                _, receiver, number, result, words = line.split(" ", 4)
                done.append((receiver, int(number), result, words))
            elif line.startswith("trouble "):
                troubles.append(line.split(" ", 2)[1:])
            else:
                answers.append(line)

    def ask(self, line):
        before = len(self.answers)
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()
        wait_until(lambda: any(not a.startswith("wrong") for a in self.answers[before:]))
        return self.answers[-1]

    def take(self, receiver, number, what="opened", **incident):
        m = message(receiver, number, what, **incident)
        assert self.ask("take %s %d %s" % (receiver, number, json.dumps(m))) == "ok"
        return m

    def known(self, receiver, incident):
        assert self.ask("known %s %s" % (receiver, json.dumps(incident))) == "ok"

    def reload(self, text):
        self.conf.write_text(text)
        return self.ask("reload")

    def show(self, name=None):
        shown = json.loads(self.ask("show").split(" ", 1)[1])
        return next(r for r in shown["receivers"] if r["name"] == name) if name else shown

    def result(self, number, receiver=None, timeout=None):
        """The result of a message: (result, words)."""
        def found():
            return [d for d in self.done if d[1] == number and receiver in (None, d[0])]
        wait_until(found, **({"timeout": timeout} if timeout else {}))
        assert len(found()) == 1, "once"
        return found()[0][2:]

    def close(self):
        if self.proc.poll() is None:
            self.proc.stdin.close()
            assert self.proc.wait(20) == 0
            assert not SANITIZER.search(self.errors.read_text())
        self.reader.join(5)

    def kill(self):
        self.proc.kill()
        self.proc.wait()
        self.reader.join(5)


class Web(http.server.ThreadingHTTPServer):
    """Keeps each posted message. `answers`: a status, or (status, body, headers), for each request in turn, the last one for
    all others; a function (request, n) -> answer; "hang": no answer until the server is closed."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *answers, tls=None, port=0):
        self.answers, self.requests, self.lock, self.closing = list(answers) or [200], [], threading.Lock(), threading.Event()
        super().__init__(("127.0.0.1", port), Posts)
        self.scheme = "https" if tls else "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def url(self, path="", host="127.0.0.1"):
        return "%s://%s:%d%s" % (self.scheme, host, self.port, path)

    def handle_error(self, request, client_address):
        pass  # one that does not trust us

    def close(self):
        self.closing.set()
        self.shutdown()
        self.server_close()


class Posts(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        s = self.server
        request = {"body": self.rfile.read(int(self.headers["Content-Length"])), "path": self.path, "headers": self.headers,
                   "at": time.monotonic()}
        with s.lock:
            n = len(s.requests)
            s.requests.append(request)
            answer = s.answers[min(n, len(s.answers) - 1)]
        if callable(answer):
            answer = answer(request, n)
        if answer == "hang":
            s.closing.wait(60)
            return
        status, body, headers = answer if isinstance(answer, tuple) else (answer, b"", {})
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Hostile:
    """A server that answers each connection with what `speak`, a function of the connected socket, writes."""

    def __init__(self, speak):
        self.speak, self.connections, self.closed = speak, 0, False
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while not self.closed:
            try:
                c = self.socket.accept()[0]
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.one, args=(c,), daemon=True).start()

    def one(self, c):
        try:
            c.settimeout(60)
            self.speak(c)
        except OSError:
            pass
        c.close()

    def close(self):
        self.closed = True
        self.socket.close()


class Alertmanager(Process):
    """Debian's Alertmanager, without peers; it posts its notifications to `hook`."""

    name = "alertmanager"
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")

    def __init__(self, directory, hook):
        super().__init__(directory)
        self.hook, self.port = hook, free_port()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def start(self, text=None):
        (self.dir / "am.yml").write_text(text or
            "route: {receiver: hook, group_by: [incident], group_wait: 100ms, group_interval: 200ms, repeat_interval: 1h}\n"
            "receivers: [{name: hook, webhook_configs: [{url: '%s', send_resolved: true}]}]\n" % self.hook)
        self.spawn([self.program, "--config.file=am.yml", "--storage.path=%s" % (self.dir / "data"), "--cluster.listen-address=",
                    "--web.listen-address=127.0.0.1:%d" % self.port])
        wait_until(self.ready)
        return self

    def ready(self):
        try:
            return self.get("/-/ready") is not None
        except OSError:
            return False

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=10) as r:
            return r.read()

    def alerts(self):
        return json.loads(self.get("/api/v2/alerts"))


class Exim(Process):
    """Debian's mail server as a private process: STARTTLS, AUTH PLAIN for hub / "se cret", mails as files."""

    name = "exim"
    program = next((p for p in ("/usr/sbin/exim4", "/usr/sbin/exim") if os.path.exists(p)), None)

    def __init__(self, directory, cert, key, must_authenticate=True, offers_tls=True):
        super().__init__(directory)
        self.port = free_port()
        for d in ("spool", "log", "inbox"):
            (self.dir / d).mkdir()
        shutil.copy(cert, self.dir / "cert.pem")
        shutil.copy(key, self.dir / "key.pem")
        (self.dir / "exim.conf").write_text(EXIM_CONF % {
            "dir": self.dir, "tls": "*" if offers_tls else "", "must": "!authenticated = *" if must_authenticate else "senders = evil@*"})
        if os.geteuid() == 0:
            user = pwd.getpwnam("Debian-exim")
            for path in [self.dir, *self.dir.iterdir()]:
                if path.name != "exim.conf":
                    os.chown(path, user.pw_uid, user.pw_gid)
        os.chmod(self.dir, 0o755)

    def start(self):
        self.spawn([self.program, "-C", self.dir / "exim.conf", "-bdf", "-oX", "127.0.0.1.%d" % self.port, "-oP", self.dir / "pid"])
        wait_until(self.ready)
        return self

    def ready(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as c:
                return c.recv(100).startswith(b"220")
        except OSError:
            return False

    def mails(self):
        return sorted(p.read_bytes() for p in (self.dir / "inbox" / "new").glob("*"))

    def log(self):
        return (self.dir / "log" / "mainlog").read_text()


EXIM_CONF = """
primary_hostname = mail.test
spool_directory = %(dir)s/spool
log_file_path = %(dir)s/log/%%slog
exim_user = Debian-exim
exim_group = Debian-exim
deliver_drop_privilege = true
never_users =
keep_environment =
tls_advertise_hosts = %(tls)s
tls_certificate = %(dir)s/cert.pem
tls_privatekey = %(dir)s/key.pem
auth_advertise_hosts = ${if def:tls_in_cipher {*}}
host_lookup =
rfc1413_query_timeout = 0s
acl_smtp_rcpt = rcpt
acl_smtp_data = data
begin acl
rcpt:
  deny message = no such user here
       local_parts = nobody
  defer message = come back later
       local_parts = busy
  deny message = authenticate first
       %(must)s
  accept
data:
  deny message = this mail is refused
       condition = ${if match{$h_Subject:}{refuse}}
  accept
begin routers
all:
  driver = accept
  transport = box
begin transports
box:
  driver = appendfile
  directory = %(dir)s/inbox
  maildir_format
  create_directory
  batch_max = 100
  envelope_to_add
  return_path_add
begin retry
begin rewrite
begin authenticators
PLAIN:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${if and{{eq{$auth2}{hub}}{eq{$auth3}{se cret}}}}
  server_set_id = $auth2
"""
