# SPDX-License-Identifier: MIT
"""What the tests of all three daemons do with a daemon: HTTP on its socket, and its end."""
import http.client
import json
import signal

from hw_build import SANITIZER
from hw_http import Answer, Metrics, UnixHTTP
from hw_process import Process
from hw_wait import PATIENCE


class Program(Process):
    """A daemon with a socket and a pid file in its directory; `name` is its program's."""

    alive_at = "/healthz"

    def __init__(self, directory, socket=None, pid_file=None):
        super().__init__(directory)
        self.conf = self.dir / "monitor.conf"
        self.socket, self.pid_file = socket, pid_file or self.dir / "pid"

    def request(self, method, path, body=None, headers=None):
        c = UnixHTTP(self.socket)
        try:
            c.request(method, path, json.dumps(body) if isinstance(body, (dict, list)) else body, headers or {})
            return Answer(c.getresponse())
        finally:
            c.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def answers(self, path=None):
        try:
            return self.get(path or self.alive_at).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def metrics(self):
        return Metrics(self.get("/metrics").body.decode())

    def stop(self, timeout=None):
        """Sends SIGTERM; the daemon must exit with status 0 and leave nothing."""
        self.signal(signal.SIGTERM)
        code = self.wait(timeout or PATIENCE)
        assert code == 0, "%s exited with %d after SIGTERM:\n%s" % (self.name, code, self.log()[-3000:])
        self.check_log()
        assert not self.socket.exists(), "the socket was left behind"
        assert not self.pid_file.exists(), "the pid file was left behind"

    def check_log(self):
        found = SANITIZER.search(self.log())
        assert not found, "a sanitizer spoke up:\n" + self.log()[found.start():][:4000]

    def die(self):
        self.signal(signal.SIGKILL)
        self.wait()
