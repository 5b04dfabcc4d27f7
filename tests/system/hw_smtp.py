# SPDX-License-Identifier: MIT
"""A mail server that keeps what it gets (RFC 5321), envelope and text, and refuses what violates the protocol."""
import socketserver
import threading


class MailServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self):
        self.mails = []  # {"from", "to", "data"}: data with CR LF, without the dots that were put in
        super().__init__(("127.0.0.1", 0), Session)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return "smtp://127.0.0.1:%d" % self.server_address[1]

    def close(self):
        self.shutdown()
        self.server_close()


class Session(socketserver.StreamRequestHandler):
    timeout = 30

    def say(self, line):
        self.wfile.write(line.encode() + b"\r\n")

    def data(self):
        """The mail after DATA, or None if one of its lines is invalid."""
        self.say("354 go on")
        data, good = b"", True
        while True:
            line = self.rfile.readline(100_000)
            if not line or line == b".\r\n":
                return data if good and line else None
            good &= line.endswith(b"\r\n") and len(line) <= 1000 and b"\r" not in line[:-2]
            data += line[1:] if line.startswith(b".") else line

    def handle(self):
        self.say("220 here")
        mail = {"to": []}
        for line in self.rfile:
            words = line.decode().strip()
            verb = words.split(" ")[0].upper()
            if verb in ("EHLO", "HELO"):
                self.say("250 here")
            elif verb == "MAIL":
                mail["from"] = words.split(":", 1)[1].split(" ")[0]
                self.say("250 ok")
            elif verb == "RCPT":
                mail["to"].append(words.split(":", 1)[1].split(" ")[0])
                self.say("250 ok")
            elif verb == "DATA":
                mail["data"] = self.data()
                if mail["data"] is None:
                    self.say("550 a bare line feed, or too long a line")
                else:
                    self.server.mails.append(mail)
                    self.say("250 ok")
                mail = {"to": []}
            elif verb == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("502 what?")
