"""A server on a real socket that gives the answers it is told to, in turn."""

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type
from urllib.parse import parse_qs, urlsplit

ANSWERED_OUT = {"status": 418, "body": {"error": {"code": "ERR_ANSWERED_OUT", "message": "there are no answers left"}}}


@dataclass
class Seen:
    """A request that arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def query(self) -> Dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """Use it as a context. An answer has a status, headers, and a body of JSON or a text; one with `cut` breaks off
    before it or inside, one with `hang` never comes, and one with `trickle` comes byte by byte and never to an end."""

    def __init__(self, answers: Sequence[Mapping[str, Any]]) -> None:
        self.seen: List[Seen] = []
        self._answers = list(answers)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _next(self, seen: Seen) -> Mapping[str, Any]:
        with self._lock:
            self.seen.append(seen)
            return self._answers.pop(0) if self._answers else ANSWERED_OUT

    def _handler(self) -> Type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = server._next(Seen(self.command, self.path, headers, body))
                if answer.get("hang"):
                    server._ended.wait(30)
                    self.close_connection = True
                elif answer.get("trickle"):
                    self.trickle()
                elif answer.get("cut") == "before":
                    self.close_connection = True
                else:
                    self.write(answer)

            def write(self, answer: Mapping[str, Any]) -> None:
                text: Optional[str] = answer.get("text")
                raw = (json.dumps(answer["body"]) if text is None else text).encode()
                self.send_response(answer["status"])
                self.send_header("Content-Type", "application/json" if text is None else "text/html")
                self.send_header("Content-Length", str(len(raw)))
                for name, value in answer.get("headers", {}).items():
                    self.send_header(name, value)
                self.end_headers()
                if answer.get("cut") == "inside":
                    raw = raw[: len(raw) // 2]
                    self.close_connection = True
                self.wfile.write(raw)

            def trickle(self) -> None:
                self.close_connection = True
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                try:
                    for _ in range(100):
                        server._ended.wait(0.05)
                        self.wfile.write(b".")
                except OSError:
                    pass  # the client has gone

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        return Handler


class Clock:
    """Waits that take no time, and are written down."""

    def __init__(self) -> None:
        self.waits: List[float] = []

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.waits.append(seconds)

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)
