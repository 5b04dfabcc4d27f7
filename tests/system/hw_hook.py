#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A web server in a process of its own, which a test can kill: it appends each post to a file, then answers. For a time now and
then it refuses, answers late, or closes the connection without an answer."""
import http.server
import json
import random
import socket
import sys
import time

from hw_process import Server

ANSWERS = (200,) * 12 + (500, 503, 429, "late", "none")


class Hook(Server):
    name = "hook"

    def launch(self):
        self.spawn([sys.executable, __file__, self.port, self.dir / "posts"])

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 5).close()
            return True
        except OSError:
            return False

    @property
    def url(self):
        return "http://127.0.0.1:%d/hook" % self.port

    def posts(self):
        """[(key, body)], the oldest first. The last line may be cut off by a kill."""
        try:
            lines = (self.dir / "posts").read_text().split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [tuple(json.loads(line)) for line in lines if line.endswith("]")]


class Keep(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    path_of_posts = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with open(self.path_of_posts, "a") as f:
            f.write(json.dumps([self.headers["Idempotency-Key"], body]) + "\n")
        answer = random.choice(ANSWERS)
        if answer == "none":
            self.close_connection = True
            return
        if answer == "late":
            time.sleep(0.4)
            answer = 200
        self.send_response(answer)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    Keep.path_of_posts = sys.argv[2]
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Keep).serve_forever()
