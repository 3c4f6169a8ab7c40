"""Where an account may connect to: https, and no address inside our own network unless the account says so.

A name is vetted when it is resolved for a connection, not only when it is configured: what a name means may change
between the two (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""IPv4 inside IPv6 (RFC 6052): public by its own prefix, whatever it leads to."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForbiddenAddressError(OSError, ValueError):
    """An account would have reached where it may not."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Which addresses beside the public ones an account may use."""

    loopback: bool = False
    private: bool = False

    def allows(self, address: str) -> bool:
        """Whether this IP address may be called. Link-local ones (where clouds keep credentials) never."""
        ip = _innermost(ipaddress.ip_address(address.partition("%")[0]))
        if ip.is_loopback:
            return self.loopback
        if ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip.is_reserved:
            return False
        return ip.is_global or self.private


def vet_host(host: str, reach: Reach) -> str:
    """The host, if it may be configured: a literal address is vetted now, a name when it is resolved."""
    try:
        allowed = reach.allows(host)
    except ValueError:
        return host
    if not allowed:
        raise ForbiddenAddressError(f"{host} is not an address this account may reach")
    return host


def vet_url(url: str, reach: Reach) -> str:
    """The URL without a slash at its end, if it may be called.

    Plain http is for this machine alone, where the account allows loopback: anywhere else it shows the token.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host or parts.username or parts.password or parts.query or parts.fragment:
        raise ForbiddenAddressError("a base URL is scheme, host, port and path: no user, query or fragment")
    if parts.scheme != "https" and not (parts.scheme == "http" and reach.loopback and is_loopback(host)):
        raise ForbiddenAddressError(f"{parts.scheme}://{host} is not https")
    vet_host(host, reach)
    return url.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether the host is this machine by its very name."""
    if host == "localhost":
        return True
    try:
        return _innermost(ipaddress.ip_address(host)).is_loopback
    except ValueError:
        return False


async def resolve(host: str, port: int, reach: Reach, family: int = socket.AF_UNSPEC) -> list[ResolveResult]:
    """The allowed addresses of a host; `ForbiddenAddressError` when it has others only, OSError when none."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
    allowed = [
        ResolveResult(
            hostname=host,
            host=str(sockaddr[0]),
            port=port,
            family=kind,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for kind, _, protocol, _, sockaddr in found
        if reach.allows(str(sockaddr[0]))
    ]
    if not allowed:
        raise ForbiddenAddressError(f"{host} has no address that this account may reach")
    return allowed


class VettedResolver(AbstractResolver):
    """Names for aiohttp, without the addresses an account may not reach."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return await resolve(host, port, self._reach, family)

    async def close(self) -> None:
        """Nothing is held."""


def _innermost(ip: Address) -> Address:
    """The IPv4 address that an IPv6 one wraps, else itself."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return ip.ipv4_mapped
        if ip.sixtofour is not None:
            return ip.sixtofour
        if ip in NAT64:
            return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip
