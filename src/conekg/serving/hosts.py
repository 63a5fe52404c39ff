"""The host names a server answers to.

Whoever owns a page of the web can let its name lead to this machine (DNS rebinding), and
browsers then let the page read what a server here answers. The Host header of such a request
still has the page's name, by which the gate refuses it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from conekg.errors import ConfigError

_HEADER = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::[0-9]*)?")
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")


@dataclass(frozen=True)
class Hosts:
    """The names of one server, besides those that every machine has for itself."""

    names: frozenset[str] = frozenset()

    def allow(self, header: str) -> bool:
        """Whether a Host header, with a port or without, names this server.

        >>> Hosts().allow("localhost:8000"), Hosts().allow("evil.example")
        (True, False)
        """
        name = name_in(header)
        return name != "" and (name in self.names or is_loopback(name))


def hosts_of(host: str, address: str, allowed: frozenset[str]) -> Hosts | None:
    """The hosts of a server started for `host`, which is bound to `address`; None allows all.

    A server that others can reach may have names that it cannot know: they are checked only where
    some were given.
    """
    if not allowed and not is_loopback(address):
        return None
    return Hosts(allowed | {_plain(host)})


def host_names(given: Iterable[str]) -> frozenset[str]:
    """Names as `Hosts` compares them; a ConfigError where one is more than a name or address."""
    return frozenset(map(_checked, given))


def name_in(header: str) -> str:
    """The name or address in a Host header; empty where the header is malformed.

    >>> name_in("KG.example.org:8000"), name_in("[::1]:8000"), name_in("a:b")
    ('kg.example.org', '::1', '')
    """
    found = _HEADER.fullmatch(header)
    return "" if found is None else _plain(found[1])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    if host == "localhost" or host.endswith(".localhost"):  # the latter by RFC 6761
        return True
    address = _address(host)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address is not None and address.is_loopback


def _plain(host: str) -> str:
    """A host in the one way it is compared: small letters, no brackets, the shortest address."""
    bare = host.lower().removeprefix("[").removesuffix("]").removesuffix(".")
    address = _address(bare)
    return bare if address is None else str(address)


def _checked(host: str) -> str:
    plain = _plain(host)
    if _address(plain) is None and _NAME.fullmatch(plain) is None:
        raise ConfigError(
            f"{host!r} is not a host name; give one such as kg.example.org, or an address, "
            "without a scheme, a port or a star",
            key="allow_host",
        )
    return plain


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
