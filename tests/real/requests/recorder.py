"""Keeps what the API is sent, in full: a relay on the loopback interface in front of the stand-in for the Messages API."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ccc_hookspecs.testing.api import Loopback
from ccc_hookspecs.testing.wire import asked
from tests.real.isolation import PORT

_HOP = frozenset({"connection", "transfer-encoding", "content-length", "date", "server"})
"""Headers that are each connection's own, or made anew here."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request for a turn. `at`: when it had arrived, on the monotonic clock. `messages`: as they came."""

    at: float
    messages: list[dict[str, Any]]

    @property
    def asked(self) -> str:
        """The text that it ends with; empty when that is a tool's result."""
        return asked(self.messages)


class Recorder(Loopback):
    """Relays while it is entered. `sent` grows as requests come in."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        server = _Server(("127.0.0.1", 0), _Handler)
        server.recorder = self
        super().__init__(server)

    def note(self, body: bytes) -> None:
        """Keep a request if it is for a turn: streamed, and with tools on offer."""
        at = time.monotonic()
        request = json.loads(body or b"{}")
        if request.get("stream") and request.get("tools"):
            self.sent.append(Sent(at, request["messages"]))

    def for_text(self, text: str, start: int = 0) -> Sent | None:
        """The first request from number `start` on that ends with this text."""
        return next((sent for sent in self.sent[start:] if sent.asked == text), None)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    recorder: Recorder


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._relay(b"")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path.partition("?")[0].endswith("/v1/messages"):
            self.server.recorder.note(body)
        self._relay(body)

    def _relay(self, body: bytes) -> None:
        upstream = http.client.HTTPConnection("127.0.0.1", PORT)
        self.close_connection = True
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP | {"host"}}
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("connection", "close")
            self.end_headers()
            while self.command != "HEAD" and (part := answer.read1()):
                self.wfile.write(part)
        except ConnectionError:
            # Whoever asked has gone, as a process does that is ended in the middle of an answer.
            return
        finally:
            upstream.close()
