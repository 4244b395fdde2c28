"""``--serve``: one page, to this machine, and nothing else."""

import http.client
import threading

import pytest

from synthetic_returns.viewer.serving import page_server


@pytest.fixture
def server(tmp_path):
    (tmp_path / "view.html").write_text("<p>the page</p>")
    (tmp_path / "secret.txt").write_text("not for you")
    with page_server(tmp_path / "view.html") as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def ask(server, method: str, path: str, host: str = "localhost") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.putrequest(method, path, skip_accept_encoding=True, skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_the_page_is_served(server):
    assert ask(server, "GET", "/") == (200, b"<p>the page</p>")


@pytest.mark.parametrize(
    "path",
    ["/secret.txt", "/view.html", "/../secret.txt", "/%2e%2e/secret.txt", "/?x", "/./", "*"],
)
def test_nothing_else_is_served(server, path):
    status, body = ask(server, "GET", path)
    assert status in (400, 404)
    assert b"not for you" not in body
    assert b"the page" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_can_be_sent(server, method):
    assert ask(server, method, "/")[0] == 501


def test_only_this_machine_can_ask(server):
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
def test_this_machine_goes_by_its_names_and_by_any_port(server, host):
    assert ask(server, "GET", "/", host)[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80", "", "[::1", "@"])
def test_a_page_that_takes_its_own_name_for_this_machine_is_refused(server, host):
    status, body = ask(server, "GET", "/", host)
    assert status == 403
    assert b"the page" not in body
