"""A server that speaks with a channel by signed messages, as Standard Webhooks has them. With `sign` it prints the headers of one.

What has the words of the file HELD in it is taken, and not answered as long as that file is there."""

import base64
import hashlib
import hmac
import http.server
import json
import pathlib
import sys
import time as clock


def signature(key, name, time, body):
    key = base64.b64decode(key.removeprefix("whsec_"))
    mac = hmac.new(key, f"{name}.{time}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(mac.digest()).decode()


def is_held(body):
    try:
        return HELD.read_text() in body
    except FileNotFoundError:
        return False


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # What was answered to what came under a name: one that comes again is the same.
    answers = {}

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        name, time = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        is_signed = self.headers["webhook-signature"] == signature(KEY, name, time, body)
        is_again = name in Server.answers
        message = Server.answers.setdefault(name, f"m{len(Server.answers) + 1}")
        line = json.dumps(
            {
                "signed": is_signed,
                "path": self.path,
                "id": name,
                "again": is_again,
                "answered": message,
                "body": json.loads(body),
            }
        )
        # One write: lines of two requests at once stay two lines.
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        while is_held(body.decode()):
            clock.sleep(0.01)
        answer = json.dumps({"id": message}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


if sys.argv[1] == "sign":
    _, _, key, name, time = sys.argv
    print(signature(key, name, time, sys.stdin.buffer.read()))
else:
    KEY, HELD = sys.argv[2], pathlib.Path(sys.argv[3])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    print(server.server_port, flush=True)
    server.serve_forever()
