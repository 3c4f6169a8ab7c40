"""One kind on one channel in one language: its parts compiled together, rendered together."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.products.audience import Channel
from schemas.templates.context import NAMES
from schemas.templates.failure import TemplateFailure
from schemas.templates.rendered import LIMITS, Email, Rendered, Text, header
from schemas.templates.sandbox import Compiled
from schemas.templates.whatsapp import TemplateMessage

PARTS: Mapping[Channel, tuple[frozenset[str], frozenset[str]]] = {
    Channel.EMAIL: (frozenset({"subject", "txt"}), frozenset({"html"})),
    Channel.WHATSAPP: (frozenset(), frozenset({"txt", "json"})),  # one of the two
    Channel.INAPP: (frozenset({"txt"}), frozenset({"subject"})),
    Channel.PUSH: (frozenset({"txt"}), frozenset({"subject"})),
    Channel.SMS: (frozenset({"txt"}), frozenset()),
    Channel.CHAT: (frozenset({"txt"}), frozenset()),
    Channel.WEBHOOK: (frozenset({"txt"}), frozenset()),
}
"""The parts that a message needs, and those it may have, by channel."""


class Message:
    """Compiled parts. Immutable; safe to share between threads."""

    __slots__ = ("_channel", "_html", "_subject", "_template", "_text")

    def __init__(self, place: str, channel: Channel, locale: str, parts: Mapping[str, str]) -> None:
        """`place`: the files' common beginning, such as `collect/email.en.`. Raises `TemplateFailure`."""
        needed, possible = PARTS[channel]
        for part in sorted(needed - set(parts)):
            raise TemplateFailure(
                f"is missing; {channel} needs it beside the other parts", _file(place, part)
            )
        for part in sorted(set(parts) - needed - possible):
            raise TemplateFailure(f"is no part of a message on {channel}", _file(place, part))
        if channel is Channel.WHATSAPP and len(parts) != 1:
            raise TemplateFailure(
                "is there beside a text; a message is one or the other", _file(place, "json")
            )
        self._channel = channel
        self._text = _compiled(place, "txt", parts)
        self._subject = _compiled(place, "subject", parts)
        self._html = _compiled(place, "html", parts, escape=True)
        self._template: TemplateMessage | None = None
        if "json" in parts:
            self._template = TemplateMessage(parts["json"], _file(place, "json"), locale, NAMES)
        if "\n" in parts.get("subject", "").strip():
            raise TemplateFailure("is one line", _file(place, "subject"), 2)

    def render(self, names: dict[str, object]) -> Rendered:
        """The message of these names; raises `TemplateFailure`."""
        if self._template is not None:
            return self._template.render(names)
        assert self._text is not None, "every channel without a template has a text"
        text = self._rendered(self._text, names)
        if self._subject is None:
            return Text(text=text)
        subject = header(self._rendered(self._subject, names))
        if not subject:
            raise TemplateFailure("says nothing", self._subject.file)
        if self._channel is not Channel.EMAIL:
            return Text(text=text, title=subject)
        email = Email(subject=subject, text=text)
        if self._html is not None:
            email["html"] = self._rendered(self._html, names)
        return email

    def _rendered(self, part: Compiled, names: dict[str, object]) -> str:
        text = part.render(names, LIMITS[self._channel])
        if not text or text.isspace():
            raise TemplateFailure("says nothing", part.file)
        return text


def _file(place: str, part: str) -> str:
    return f"{place}{part}.j2"


def _compiled(place: str, part: str, parts: Mapping[str, str], *, escape: bool = False) -> Compiled | None:
    if part not in parts:
        return None
    return Compiled(parts[part], _file(place, part), names=NAMES, escape=escape)
