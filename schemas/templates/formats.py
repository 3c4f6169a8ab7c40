"""The filters of templates: `money`, `number`, `date`, `datetime` as the reader writes them, and a few on text.

None of them can make a value much longer than it was; a value of another type is refused, never printed somehow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from babel import Locale, dates, numbers
from jinja2 import TemplateRuntimeError, Undefined, pass_context
from jinja2.filters import do_default
from jinja2.runtime import Context as Names

LOCALE, ZONE = "_locale", "_zone"
"""Where the filters find the reader's conventions; templates cannot name these."""
_STYLES = ("short", "medium", "long", "full")


class Unprintable(TemplateRuntimeError):  # noqa: N818 it is said of the value
    """A value that a filter cannot take or that stands for nothing people read."""


def _known(value: object) -> None:
    if isinstance(value, Undefined):
        str(value)  # raises the failure that names it


def _named(value: object) -> str:
    return "nothing (null)" if value is None else f"a {type(value).__name__}"


@pass_context
def money(names: Names, amount: object, currency: str) -> str:
    """A whole number in the currency's minor unit (cents), or a decimal in its major one, with the currency."""
    _known(amount)
    locale = names[LOCALE]
    if not isinstance(currency, str) or currency not in locale.currencies:
        raise Unprintable("money: no such currency; write its ISO 4217 code, such as money('EUR')")
    if isinstance(amount, Decimal) and amount.is_finite():
        value = amount
    elif isinstance(amount, int) and not isinstance(amount, bool):
        value = Decimal(amount).scaleb(-numbers.get_currency_precision(currency))
    else:
        raise Unprintable(f"money: takes a whole number of minor units or a decimal, not {_named(amount)}")
    return _written_amount(value, currency, locale)


# Babel takes 20 to 40 µs for each; a text and its HTML say the same, and people of one day the same date.
@lru_cache(maxsize=4096)
def _written_amount(value: Decimal, currency: str, locale: Locale) -> str:
    return numbers.format_currency(value, currency, locale=locale)


@lru_cache(maxsize=4096)
def _written_day(value: date, style: Any, locale: Locale) -> str:
    return dates.format_date(value, style, locale=locale)


@pass_context
def number(names: Names, value: object) -> str:
    """A number with the reader's separators, at most three digits behind the point."""
    _known(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not _is_finite(value):
        raise Unprintable(f"number: takes a finite number, not {_named(value)}")
    return numbers.format_decimal(value, locale=names[LOCALE])


def _is_finite(value: int | float | Decimal) -> bool:
    return Decimal(value).is_finite()


@pass_context
def day(names: Names, value: object, style: str = "medium") -> str:
    """The filter `date`: an instant's day where the reader is, or a day as it is."""
    moment = _moment(value, "date")
    if isinstance(moment, datetime):
        moment = (moment if moment.tzinfo is None else moment.astimezone(names[ZONE])).date()
    return _written_day(moment, _style(style, "date"), names[LOCALE])


@pass_context
def instant(names: Names, value: object, style: str = "medium") -> str:
    """The filter `datetime`: an instant where the reader is; a wall time, which has no zone, as it is."""
    moment = _moment(value, "datetime")
    if not isinstance(moment, datetime):
        raise Unprintable("datetime: this is a day without a time; use date")
    zone = names[ZONE] if moment.tzinfo is not None else None
    return dates.format_datetime(moment, _style(style, "datetime"), tzinfo=zone, locale=names[LOCALE])


def _moment(value: object, name: str) -> date:
    _known(value)
    if isinstance(value, date):  # a datetime is one
        return value
    if isinstance(value, str):
        try:
            return (
                date.fromisoformat(value)
                if len(value) == len("2026-03-29")
                else datetime.fromisoformat(value)
            )
        except ValueError:
            raise Unprintable(
                f"{name}: takes an instant or a day in RFC 3339's form, not this text"
            ) from None
    raise Unprintable(f"{name}: takes an instant or a day, not {_named(value)}")


def _style(style: str, name: str) -> Any:  # Babel spells the four out as a Literal
    if style not in _STYLES:
        raise Unprintable(f"{name}: the styles are {', '.join(_STYLES)}")
    return style


def _text(value: object, name: str) -> str:
    _known(value)
    if not isinstance(value, str):
        raise Unprintable(f"{name}: takes a text, not {_named(value)}")
    return value


def _on_text(name: str, change: Callable[[str], str]) -> Callable[[object], str]:
    return lambda value: change(_text(value, name))


def truncate(value: object, length: int) -> str:
    """At most `length` characters, the last of them an ellipsis when something was cut."""
    text = _text(value, "truncate")
    if not isinstance(length, int) or length < 1:
        raise Unprintable("truncate: takes a length from 1")
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def length(value: object) -> int:
    """How many items a list has, or characters a text."""
    _known(value)
    if not isinstance(value, str | list | tuple | Mapping):
        raise Unprintable(f"length: takes a list or a text, not {_named(value)}")
    return len(value)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "money": money,
    "number": number,
    "date": day,
    "datetime": instant,
    "upper": _on_text("upper", str.upper),
    "lower": _on_text("lower", str.lower),
    "capitalize": _on_text("capitalize", str.capitalize),
    "trim": _on_text("trim", str.strip),
    "truncate": truncate,
    "length": length,
    "default": do_default,
}
"""All filters there are. Jinja's others are left out: some multiply their input, some switch escaping off."""
