"""What a message is on each channel, as JSON values: what is frozen at a delivery's first claim."""

from __future__ import annotations

import re
from typing import NotRequired, TypedDict

from schemas.products.audience import Channel


class Email(TypedDict):
    """`subject` is one line; `html` is there when the product has it, always beside the text."""

    subject: str
    text: str
    html: NotRequired[str]


class Text(TypedDict):
    """In-app, push, SMS, chat, and WhatsApp within its 24-hour window; `title` is one line."""

    text: str
    title: NotRequired[str]


class WhatsAppTemplate(TypedDict):
    """A template that Meta approved, by name and language, and what fills it in."""

    name: str
    language: str
    parameters: list[str]


class WhatsApp(TypedDict):
    """A WhatsApp message outside the 24-hour window."""

    template: WhatsAppTemplate


Rendered = Email | Text | WhatsApp

LIMITS = {
    Channel.EMAIL: 256 * 1024,  # providers cut longer ones off; 102 KiB is what large mailboxes show
    Channel.WHATSAPP: 4096,  # Cloud API: text.body
    Channel.SMS: 1530,  # ten concatenated GSM-7 parts of 153
    Channel.PUSH: 1024,  # of 4 KiB for everything, in up to four bytes each
    Channel.INAPP: 4096,
    Channel.CHAT: 4096,
    Channel.WEBHOOK: 64 * 1024,
}
"""Characters of a rendered text, by channel."""
LINE_LIMIT = 200
"""Characters of a subject or title; more is cut, for a long name must not keep a message back."""
PARAMETER_LIMIT = 1024
"""Characters of one WhatsApp parameter; the whole body they go into has no more."""

# Not the no-break spaces: amounts and dates are written with them.
_BREAKS = re.compile(r"(?:[^\S\xa0\u202f]|[\x00-\x1f\x7f-\x9f])+")


def one_line(text: str) -> str:
    """The text with every run of white space, line ends and control characters as one space.

    So a value cannot begin a header of its own (RFC 5322, 2.2), and WhatsApp takes it as a parameter.
    """
    return _BREAKS.sub(" ", text).strip()


def header(text: str) -> str:
    """One line of at most `LINE_LIMIT` characters."""
    line = one_line(text)
    return line if len(line) <= LINE_LIMIT else f"{line[: LINE_LIMIT - 1].rstrip()}…"
