"""A stand-in for the Messages API on the loopback interface, so that the real Claude Code can be tested without a network.

    python -m ccc_hookspecs.testing.api PORT LOGFILE [--port-file FILE]

It answers what the simulator's model answers (`ccc_hookspecs.testing.simulator.model`): it recites every user text it was
sent, which makes a process's memory visible, and calls tools when a text asks for it. Port 0 takes a free one, which
`--port-file` receives. Each request becomes one line in LOGFILE: `{"at", "method", "path", "model", "stream", "texts",
"tools", "asked", "answers"}`, the texts in full. A POST to `/release` lets every slow answer under way come to its end at once.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from ccc_hookspecs.testing.simulator import model
from ccc_hookspecs.testing.wire import Json, Request, asked, content, message, model_texts, reply_to, user_texts

FAILURES = 2
"""How often `FAIL500` fails before it is answered."""


class Loopback:
    """A server on the loopback interface, in this process: a context manager that listens while it is entered."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on, on 127.0.0.1."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """What `ANTHROPIC_BASE_URL` must be."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class MessagesApi(Loopback):
    """The stand-in in this process: a context manager that listens while it is entered. `requests` grows as they come in."""

    def __init__(self, *, port: int = 0, log: Path | None = None) -> None:
        self.requests: list[Request] = []
        self.failures: Counter[str] = Counter()
        self._log = log
        self._lock = threading.Lock()
        self._released = threading.Condition()
        self._releases = 0
        server = _Server(("127.0.0.1", port), _Handler)
        server.api = self
        super().__init__(server)

    def serve_forever(self) -> None:
        """Serve on this thread until it is interrupted."""
        self._server.serve_forever()

    def note(self, request: Request) -> None:
        """Keep a request, and append it to the log."""
        with self._lock:
            self.requests.append(request)
            if self._log is not None:
                with self._log.open("a") as file:
                    file.write(json.dumps(asdict(request)) + "\n")

    def release(self) -> None:
        """Let every slow answer under way come to its end at once."""
        with self._released:
            self._releases += 1
            self._released.notify_all()

    @property
    def releases(self) -> int:
        """How often slow answers were released."""
        return self._releases

    def pause(self, seconds: float, releases: int) -> None:
        """Wait so long, or until slow answers were released more often than this."""
        with self._released:
            self._released.wait_for(lambda: self._releases > releases, seconds)

    def fails(self, text: str) -> bool:
        """True for the first few times that this text asks for a server error."""
        with self._lock:
            self.failures[text] += 1
            return self.failures[text] <= FAILURES


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    api: MessagesApi


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    _releases = 0

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed; requests are in the log."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def do_GET(self) -> None:
        self.server.api.note(Request(at=time.time(), method=self.command, path=self.path))
        self._json({})

    do_HEAD = do_GET

    def do_POST(self) -> None:
        # Whoever sees a request in the log and then releases it must not come too early.
        self._releases = self.server.api.releases
        body = _object(self.rfile.read(int(self.headers.get("content-length") or 0)))
        messages = [message for message in body.get("messages") or [] if isinstance(message, dict)]
        request = Request(
            at=time.time(),
            method="POST",
            path=self.path,
            model=body.get("model"),
            stream=bool(body.get("stream")),
            texts=tuple(user_texts(messages)),
            tools=tuple(str(tool.get("name")) for tool in body.get("tools") or []),
            asked=asked(messages),
            answers=tuple(model_texts(messages)),
        )
        if self.path == "/release":
            self.server.api.release()
            self._json({})
            return
        self.server.api.note(request)
        if "count_tokens" in self.path:
            self._json({"input_tokens": 100})
        elif "/v1/messages" in self.path:
            self._answer(request)
        else:
            self._json({})

    def _answer(self, request: Request) -> None:
        reply = reply_to(request)
        if isinstance(reply, model.Refused) and (reply.status < 500 or self.server.api.fails(request.asked)):
            kind = "invalid_request_error" if reply.status < 500 else "api_error"
            self._json({"type": "error", "error": {"type": kind, "message": reply.message}}, reply.status)
        elif request.stream:
            self._stream(request, reply)
        else:
            said = reply.text if isinstance(reply, model.Say) else model.recite(list(request.texts))
            self._json(message(request) | {"content": [{"type": "text", "text": said}], "stop_reason": "end_turn"})

    def _stream(self, request: Request, reply: model.Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        self._send("message_start", message=message(request))
        tools = isinstance(reply, model.UseTools)
        for index, (block, deltas) in enumerate(content(request, reply)):
            self._send("content_block_start", index=index, content_block=block)
            for delta, seconds in deltas:
                self._send("content_block_delta", index=index, delta=delta)
                self.server.api.pause(seconds, self._releases)
            self._send("content_block_stop", index=index)
        delta = {"stop_reason": "tool_use" if tools else "end_turn", "stop_sequence": None}
        self._send("message_delta", delta=delta, usage={"output_tokens": 10})
        self._send("message_stop")

    def _send(self, kind: str, **fields: Any) -> None:
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode())
        self.wfile.flush()

    def _json(self, answer: Json, status: int = 200) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _object(raw: bytes) -> Json:
    try:
        body = json.loads(raw)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until an interrupt; returns the exit code, 0. `arguments`: those of the command line by default."""
    parser = argparse.ArgumentParser(prog="python -m ccc_hookspecs.testing.api", description="A loopback stand-in for the Messages API.")
    parser.add_argument("port", type=int, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("log", type=Path, help="file that gets one JSON line a request")
    parser.add_argument("--port-file", type=Path, help="file that gets the port once it listens")
    given = parser.parse_args(arguments)
    api = MessagesApi(port=given.port, log=given.log)
    if given.port_file is not None:
        given.port_file.write_text(f"{api.port}\n")
    try:
        api.serve_forever()
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
