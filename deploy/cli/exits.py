"""How `tellonce` ends; the numbers are those of BSD's sysexits, so that supervisors know what they mean."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes, closed: scripts and supervisors match on them."""

    OK = 0
    PROBLEMS = 1
    """The command did its work and found problems, or what was asked was refused; nothing is half done."""
    USAGE = 2
    """The command line is not one."""
    UNAVAILABLE = 69
    """PostgreSQL, Kafka or Kafka Connect does not answer."""
    DEFECT = 70
    """A fault of tellonce itself; the trace is in a file that the message names."""
    TEMPORARY = 75
    """Busy or interrupted: the same again later is right."""
    CONFIGURATION = 78
    """A setting, a product or the schema's version; again will not help before somebody mends it."""
    INTERRUPTED = 130
    """Ctrl-C."""


EPILOG = (
    "Results go to stdout, everything else to stderr. Exit codes: 0 ok · 1 problems found, or refused · "
    "2 usage · 69 something does not answer · 70 a fault of ours · 75 try again later · 78 configuration · "
    "130 Ctrl-C."
)
