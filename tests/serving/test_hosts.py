"""Host names: which Host headers are allowed, by the address that the server listens on."""

from __future__ import annotations

import socket

import pytest

from conekg.errors import ConfigError
from conekg.serving.hosts import Hosts, host_names, hosts_of, is_loopback

OWN = ("localhost", "LocalHost.", "kg.localhost", "127.0.0.1", "127.9.8.7", "[::1]")
FOREIGN = (
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil.example",
    "localhost:80@evil.example",
    "localhost:http",
    "notlocalhost",
    "192.168.0.7",
    "[2001:db8::1]",
    "[::1",
    "::1",
    "0.0.0.0",
    "",
)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.0.1.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("a.localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("x", False),
    ],
)
def test_loopback_is_recognised(host, local):
    assert is_loopback(host) is local


@pytest.mark.parametrize("port", ["", ":", ":8000"])
def test_loopback_names_are_allowed_on_any_port(port):
    assert [name for name in OWN if not Hosts().allow(name + port)] == []
    assert [name for name in FOREIGN if Hosts().allow(name + port)] == []


def test_given_names_are_allowed_however_they_are_written():
    hosts = Hosts(host_names(["KG.example.org", "2001:DB8:0::1", "[2001:db8::2]", "192.168.0.7"]))
    for given in ("kg.example.org:443", "KG.EXAMPLE.ORG.", "[2001:db8::1]", "[2001:db8::2]:80"):
        assert hosts.allow(given), given
    for given in ("example.org", "a.kg.example.org", "[2001:db8::3]", "192.168.0.70"):
        assert not hosts.allow(given), given
    assert hosts.allow("192.168.0.7:8000")


def test_an_empty_or_malformed_host_header_is_refused():
    hosts = hosts_of("", "0.0.0.0", frozenset({"kg.example"}))
    assert hosts.allow("kg.example")
    assert not any(map(hosts.allow, ("", ":8000", "a:b")))
    assert hosts.allow("localhost")


@pytest.mark.parametrize(
    "name", ["kg.example:80", "https://kg.example", "kg.example/x", "*", "*.example", "", "a b"]
)
def test_a_text_that_is_not_a_host_name_is_refused(name):
    with pytest.raises(ConfigError, match="is not a host name") as refused:
        host_names([name])
    assert repr(name) in str(refused.value)
    assert "kg.example.org" in str(refused.value)


def test_only_a_loopback_server_checks_host_names_by_default():
    assert hosts_of("0.0.0.0", "0.0.0.0", frozenset()) is None
    assert hosts_of("example.org", "93.184.216.34", frozenset()) is None
    own = hosts_of("127.0.0.1", "127.0.0.1", frozenset())
    assert own is not None
    assert not own.allow("evil.example")
    # The server must answer to the address that it prints.
    named = hosts_of("Desk", "127.0.1.1", frozenset())
    assert named is not None
    assert named.allow("desk:8000")
    assert not named.allow("evil.example")
    public = hosts_of("0.0.0.0", "0.0.0.0", frozenset({"kg.example"}))
    assert public is not None
    assert public.allow("kg.example")
    assert public.allow("0.0.0.0:8000")
    assert not public.allow("evil.example")


PATHS = ("/", "/static/main.js", "/api/about", "/health", "/metrics", "/docs", "/nowhere")


def test_a_request_by_dns_rebinding_is_refused(start_server, answerer):
    with start_server(answerer, hosts=Hosts(host_names(["kg.example"]))) as served:
        for path in PATHS:
            response = served.client.get(path, headers={"host": "evil.example:8000"})
            assert response.status_code == 421, path
            error = response.json()["error"]
            assert (error["status"], error["kind"]) == (421, "host_not_allowed")
            assert "'evil.example:8000'" in error["message"]
            assert "--allow-host evil.example`" in error["hint"]
            assert response.headers["x-content-type-options"] == "nosniff"
        asked = {"query": "France.borders"}
        foreign = {"host": "evil.example"}
        assert served.client.post("/api/ask", json=asked, headers=foreign).status_code == 421
        for host in ("kg.example", "localhost:1", served.url.removeprefix("http://")):
            given = {"host": host}
            assert served.client.post("/api/ask", json=asked, headers=given).status_code == 200
            assert served.client.get("/health", headers=given).status_code == 200
        metrics = served.get("/metrics").text
        assert 'conekg_requests_total{method="POST",route="/api/ask",status="421"} 1' in metrics


def test_a_foreign_host_is_refused_before_its_key_is_checked(start_server, answerer):
    with start_server(answerer, hosts=Hosts(), api_key="s3same") as served:
        response = served.client.get("/api/about", headers={"host": "evil.example"})
        assert response.json()["error"]["kind"] == "host_not_allowed"
        assert served.get("/api/about").json()["error"]["kind"] == "missing_key"


def status_of(url: str, request: bytes) -> bytes:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(request)
        return raw.recv(100).split(b" ")[1]


def test_no_host_header_may_be_foreign_and_a_missing_one_is_allowed(start_server, answerer):
    with start_server(answerer, hosts=Hosts()) as served:
        both = b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
        assert status_of(served.url, both) in (b"400", b"421")
        assert status_of(served.url, b"GET /health HTTP/1.0\r\n\r\n") == b"200"


def test_without_a_list_every_host_is_allowed(served):
    assert served.client.get("/health", headers={"host": "evil.example"}).status_code == 200
