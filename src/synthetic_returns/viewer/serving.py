"""One page on localhost, for browsers that cannot open files of this machine."""

import contextlib
import http.server
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

__all__ = ["page_server"]

NAMES = ("localhost", "127.0.0.1", "::1")  # of this machine; ports may be forwarded


@contextlib.contextmanager
def page_server(page: Path, port: int = 0) -> Iterator[http.server.ThreadingHTTPServer]:
    """A server of this one file, and of nothing else, on the loopback interface.

    Args:
      page: the file; read again at every request.
      port: where to listen; by default any free port.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not _asks_for_this_machine(self.headers.get("Host", "")):
                self.send_error(403)
                return
            if self.path != "/":
                self.send_error(404)
                return
            content = page.read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: the terminal shows where the page is."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        yield server


def _asks_for_this_machine(host: str) -> bool:
    """Whether a request names this machine.

    A page from elsewhere can let its own name point to this machine, and its scripts could then
    read what is served here; they cannot choose the name that their browser sends.
    """
    try:
        return urllib.parse.urlsplit(f"//{host}").hostname in NAMES
    except ValueError:
        return False
