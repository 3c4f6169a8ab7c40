"""The one error that starting and stopping a stack raises, so that a command can show its message and end."""

from __future__ import annotations


class StackError(Exception):
    """The stack cannot do what was asked; the message says why, with the end of the logs if that helps."""
