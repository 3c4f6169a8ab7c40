"""Free ports, kept for one stack as long as it runs."""

from __future__ import annotations

import random
import socket

from deploy.local.errors import StackError

LOOPBACK = "127.0.0.1"

RANGE = range(20_000, 32_000)
"""Below Linux's ephemeral range: no outgoing connection takes a port between a choice and its use."""


class NoFreePortError(StackError):
    """Two hundred random ports were all in use."""


class Lease:
    """A port that another stack's lease will not get, though the engine that it is for can listen on it.

    The socket is bound first without SO_REUSEADDR, which fails when anybody holds the port, and gets the
    option then, which lets an engine (they all set it) bind beside it as long as this one never listens.
    """

    def __init__(self) -> None:
        for port in random.sample(RANGE, 200):
            held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                held.bind((LOOPBACK, port))
            except OSError:
                held.close()
                continue
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.port = port
            self._held = held
            return
        raise NoFreePortError(f"no free port found on {LOOPBACK} between {RANGE.start} and {RANGE.stop}")

    def release(self) -> None:
        """Give the port back; what listens on it keeps it."""
        self._held.close()


def listens(port: int) -> bool:
    """Whether something accepts connections on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0
