"""Accounts reach https and public addresses, and others only where they say so."""

from __future__ import annotations

import asyncio

import pytest

from connectors.providers.vetting import (
    ForbiddenAddressError,
    Reach,
    VettedResolver,
    resolve,
    vet_host,
    vet_url,
)

PUBLIC, LOOPBACK, PRIVATE = Reach(), Reach(loopback=True), Reach(private=True)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"],
)
def test_loopback_only_where_allowed(address: str) -> None:
    assert not PUBLIC.allows(address)
    assert not PRIVATE.allows(address)
    assert LOOPBACK.allows(address)


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "172.16.3.4", "192.168.1.1", "100.64.0.1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"],
)
def test_private_only_where_allowed(address: str) -> None:
    assert not PUBLIC.allows(address)
    assert not LOOPBACK.allows(address)
    assert PRIVATE.allows(address)


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1%eth0", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"],
)
def test_some_never(address: str) -> None:
    assert not Reach(loopback=True, private=True).allows(address)


@pytest.mark.parametrize("address", ["157.240.1.1", "2a03:2880::1"])
def test_public_ones_always(address: str) -> None:
    assert PUBLIC.allows(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://graph.facebook.com",
        "ftp://graph.facebook.com",
        "https://user:secret@graph.facebook.com",
        "https://graph.facebook.com?x=1",
        "https://graph.facebook.com#x",
        "https://",
        "graph.facebook.com",
        "https://10.0.0.1",
        "https://[::1]",
        "http://127.0.0.1:8080",
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(ForbiddenAddressError) as caught:
        vet_url(url, PUBLIC)
    assert "secret" not in str(caught.value)


def test_plain_http_is_for_an_allowed_loopback_alone() -> None:
    assert vet_url("http://127.0.0.1:8080/", LOOPBACK) == "http://127.0.0.1:8080"
    assert vet_url("http://localhost:8080", LOOPBACK) == "http://localhost:8080"
    with pytest.raises(ForbiddenAddressError):
        vet_url("http://example.org", LOOPBACK)
    with pytest.raises(ForbiddenAddressError):
        vet_url("http://10.0.0.1", Reach(loopback=True, private=True))


def test_a_name_is_vetted_when_it_is_resolved() -> None:
    assert vet_host("localhost", PUBLIC) == "localhost"
    with pytest.raises(ForbiddenAddressError):
        asyncio.run(resolve("localhost", 25, PUBLIC))
    with pytest.raises(ForbiddenAddressError):
        asyncio.run(VettedResolver(PUBLIC).resolve("localhost", 443))
    assert asyncio.run(resolve("localhost", 25, LOOPBACK))[0]["port"] == 25
