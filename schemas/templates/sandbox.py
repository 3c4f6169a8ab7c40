"""One template text, compiled: a function from names to a text that is never longer than it may be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from functools import partial
from types import TracebackType
from typing import Any

from jinja2 import (
    StrictUndefined,
    Template,
    TemplateRuntimeError,
    TemplateSyntaxError,
    Undefined,
    UndefinedError,
)
from jinja2.runtime import Context as Names
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from schemas.names import did_you_mean
from schemas.templates import rules
from schemas.templates.failure import TemplateFailure
from schemas.templates.formats import FILTERS, Unprintable

SOURCE_LIMIT = 64 * 1024
"""Characters of one template; a long letter has 5,000, and compiling costs about as much again in Python code."""
_TESTS = ("defined", "undefined", "none", "number", "string", "even", "odd")
_LOOP = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length"})
_FAILURES = (TemplateRuntimeError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError)


class _NotThere(UndefinedError):  # noqa: N818
    """A name that the context does not have."""

    def __init__(self, name: object, message: str) -> None:
        super().__init__(message)
        self.name = str(name)


class _Missing(StrictUndefined):
    """Fails as soon as it is used, with its name; only `is defined` and `default` may look at it."""

    __slots__ = ()

    def __init__(
        self,
        hint: str | None = None,
        obj: object = None,
        name: str | None = None,
        exc: Callable[[str], TemplateRuntimeError] | None = None,
    ) -> None:
        super().__init__(hint or f"there is no {name}", obj, name)
        self._undefined_exception: Any = exc or partial(_NotThere, name)  # called with the hint


class _Sandbox(ImmutableSandboxedEnvironment):
    """Values are data: a mapping has its keys and nothing has attributes, so a payload field may be called `items`."""

    # Else a product such as "a" * 10**9 is one small operation.
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self, *, escape: bool) -> None:
        super().__init__(
            autoescape=escape, undefined=_Missing, finalize=_printable, trim_blocks=True, lstrip_blocks=True
        )
        self.filters = dict(FILTERS)
        self.tests = {name: self.tests[name] for name in _TESTS}

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A mapping's value; of a loop, where it stands."""
        if isinstance(obj, Mapping):
            if attribute in obj:
                return obj[attribute]
            known = [key for key in obj if isinstance(key, str)]
            return _Missing(f"there is no {attribute} here{did_you_mean(attribute, known)}", name=attribute)
        if isinstance(obj, StrictUndefined):
            str(obj)  # raises the failure that names it
        if isinstance(obj, LoopContext) and attribute in _LOOP:
            return getattr(obj, attribute)
        return _Missing(f"there is no {attribute} here", name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """A mapping's value or a list's item, else what fails when it is used."""
        if isinstance(obj, StrictUndefined):
            str(obj)
        if isinstance(obj, Mapping | list | tuple | str):
            try:
                return obj[argument]
            except (TypeError, LookupError):
                pass
        # What was asked for may be a payload's value, and this is logged.
        return _Missing("there is no such item here", name="[]")

    def call_binop(self, context: Names, operator: str, left: Any, right: Any) -> Any:
        """Arithmetic is for numbers, and a power of numbers may be as large as memory."""
        for value in (left, right):
            if isinstance(value, StrictUndefined):
                str(value)
            if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
                raise Unprintable(f"{operator} is for numbers; write texts beside one another")
        return super().call_binop(context, operator, left, right)


def _printable(value: Any) -> Any:
    """What an expression puts into the text. Null, yes and no, and structures are nothing people read."""
    kind = type(value)
    if kind is str or kind is int or kind is Markup or isinstance(value, Undefined):
        return (
            value  # an `if` expression without `else` prints nothing, a missing name fails as it is printed
        )
    if value is None:
        raise Unprintable("is nothing (null); say what stands in its place, such as {{ name or 'there' }}")
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unprintable(
            f"a {kind.__name__} is no text; choose from it, or use a filter: date, datetime, money"
        )
    return value


PLAIN, ESCAPED = _Sandbox(escape=False), _Sandbox(escape=True)


class Compiled:
    """A compiled template. Immutable; safe to share between threads."""

    __slots__ = ("_line", "_template", "file")

    def __init__(
        self, source: str, file: str, *, names: Collection[str] | None, escape: bool = False, line: int = 0
    ) -> None:
        """Raises `TemplateFailure`. `line`: where the source stands in its file when it is not the whole of it."""
        self.file, self._line = file, line
        if len(source) > SOURCE_LIMIT:
            raise TemplateFailure(f"is longer than {SOURCE_LIMIT} characters", file)
        sandbox = ESCAPED if escape else PLAIN
        try:
            tree = sandbox.parse(source, file, file)
            rules.check(tree, names)
            code = sandbox.compile(tree, file, file)
        except TemplateSyntaxError as error:
            raise TemplateFailure(error.message or "is no template", file, line or error.lineno) from None
        except (*_FAILURES, SyntaxError, MemoryError) as error:
            raise TemplateFailure(f"does not compile: {error}", file, line) from None
        self._template = Template.from_code(sandbox, code, {}, None)  # {}: without Jinja's own globals

    def render(self, names: dict[str, object], limit: int) -> str:
        """The text; raises `TemplateFailure`, also as soon as it is longer than `limit` characters."""
        template = self._template
        chunks, size = [], 0
        try:
            for chunk in template.root_render_func(template.new_context(names, shared=True)):
                size += len(chunk)
                if size > limit:
                    raise TemplateFailure(f"is longer than {limit} characters", self.file, self._line)
                chunks.append(chunk)
        except _NotThere as error:
            raise TemplateFailure(str(error), self.file, self._where(error), missing=error.name) from None
        except Unprintable as error:
            raise TemplateFailure(str(error), self.file, self._where(error)) from None
        except _FAILURES as error:  # its text may quote a value
            what = f"does not render ({type(error).__name__})"
            raise TemplateFailure(what, self.file, self._where(error)) from None
        return "".join(chunks)

    def _where(self, error: BaseException) -> int:
        if self._line:
            return self._line
        line, at = 0, error.__traceback__
        while isinstance(at, TracebackType):
            if at.tb_frame.f_code.co_filename == self.file:
                line = self._template.get_corresponding_lineno(at.tb_lineno)
            at = at.tb_next
        return line
