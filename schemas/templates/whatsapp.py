"""A WhatsApp template message: JSON whose parameters are templates, so no value can leave its string."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from schemas.templates.failure import TemplateFailure
from schemas.templates.rendered import PARAMETER_LIMIT, WhatsApp, one_line
from schemas.templates.sandbox import SOURCE_LIMIT, Compiled

_NAME = re.compile(r"[a-z0-9_]{1,512}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(_[A-Za-z]{2,4})?")


class TemplateMessage:
    """`{"name": …, "language": …, "parameters": […]}` compiled; without a language, the file's locale."""

    __slots__ = ("_file", "_language", "_name", "_parameters")

    def __init__(self, source: str, file: str, locale: str, names: Collection[str]) -> None:
        """Raises `TemplateFailure`."""
        if len(source) > SOURCE_LIMIT:
            raise TemplateFailure(f"is longer than {SOURCE_LIMIT} characters", file)
        try:
            value = json.loads(source)
        except json.JSONDecodeError as error:
            raise TemplateFailure(f"is not JSON: {error.msg}", file, error.lineno) from None
        except (RecursionError, ValueError):
            raise TemplateFailure("is not JSON: nested too deeply, or a number too long", file) from None
        if not isinstance(value, dict) or not {"name"} <= set(value) <= {"name", "language", "parameters"}:
            raise TemplateFailure("must be an object of name, parameters and maybe language", file, 1)
        name, language = value["name"], value.get("language", locale.replace("-", "_"))
        parameters = value.get("parameters", [])
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise TemplateFailure("name: lower-case letters, digits and _", file, _line(source, '"name"'))
        if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
            raise TemplateFailure("language: such as en or en_GB", file, _line(source, '"language"'))
        if not isinstance(parameters, list) or not all(isinstance(each, str) for each in parameters):
            raise TemplateFailure("parameters: a list of texts", file, _line(source, '"parameters"'))
        self._file, self._name, self._language = file, name, language
        self._parameters = [
            Compiled(each, file, names=names, line=_line(source, json.dumps(each, ensure_ascii=False)))
            for each in parameters
        ]

    def render(self, names: dict[str, object]) -> WhatsApp:
        """The message; an empty parameter is a failure here, as it would be one at Meta."""
        values = [one_line(each.render(names, PARAMETER_LIMIT)) for each in self._parameters]
        if not all(values):
            raise TemplateFailure(f"parameter {values.index('') + 1} is empty", self._file)
        return {"template": {"name": self._name, "language": self._language, "parameters": values}}


def _line(source: str, text: str) -> int:
    return source.count("\n", 0, max(source.find(text), 0)) + 1
