"""The host names a server answers to.

The owner of a website can make its name resolve to this machine (DNS rebinding); browsers then let
that site read the answers of a server here. The Host header of such a request has the website's
name, so that the gate can recognise and refuse it.
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
    """The host names of one server, in addition to `localhost` and the loopback addresses."""

    names: frozenset[str] = frozenset()

    def allow(self, header: str) -> bool:
        """Whether a Host header, with a port or without, names this server.

        >>> Hosts().allow("localhost:8000"), Hosts().allow("evil.example")
        (True, False)
        """
        name = name_in(header)
        return name != "" and (name in self.names or is_loopback(name))


def hosts_of(host: str, address: str, allowed: frozenset[str]) -> Hosts | None:
    """The allowed hosts of a server started with `--host`, bound to `address`; None allows any.

    A server that other machines can reach cannot know all of its names. Its host names are
    checked only if some were given as `allowed`.
    """
    if not allowed and not is_loopback(address):
        return None
    return Hosts(allowed | {_plain(host)})


def host_names(given: Iterable[str]) -> frozenset[str]:
    """Names in the form that `Hosts` compares; ConfigError if one is not a name or an address."""
    return frozenset(map(_checked, given))


def name_in(header: str) -> str:
    """The name or address in a Host header, without the port; empty if the header is malformed.

    >>> name_in("KG.example.org:8000"), name_in("[::1]:8000"), name_in("a:b")
    ('kg.example.org', '::1', '')
    """
    found = _HEADER.fullmatch(header)
    return "" if found is None else _plain(found[1])


def is_loopback(host: str) -> bool:
    """Whether a host name or address can be reached from this machine only.

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
    """A host in normal form: lower case, no brackets, no final dot, addresses at their shortest."""
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
