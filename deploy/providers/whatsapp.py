"""The messages endpoint of WhatsApp's Cloud API, as strict as the real one in what this platform uses of it."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Mapping

import orjson
from aiohttp import web

from deploy.providers.faults import Fault, Faults
from deploy.providers.inbox import Inbox, KeyReusedError

PATH = r"/{version:v\d+\.\d}/{phone:\d+}/messages"
NUMBER = re.compile(r"\+?[1-9]\d{6,14}")
MOST_TEXT = 4096


class BadRequestError(Exception):
    """What the API would not take."""

    def __init__(self, status: int, code: int, details: str) -> None:
        super().__init__(details)
        self.status = status
        self.code = code


class WhatsAppEndpoint:
    """One phone number and the token that may use it."""

    def __init__(self, inbox: Inbox, faults: Faults, *, phone_number_id: str, token: str) -> None:
        self._inbox = inbox
        self._faults = faults
        self._phone = phone_number_id
        self._authorization = f"Bearer {token}".encode()

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Check, take, answer; or misbehave as told."""
        try:
            body = await request.read()
            message = self._checked(request, body)
        except ConnectionResetError:
            return web.Response(status=400)  # to nobody: the caller left before it had said all
        except BadRequestError as error:
            self._inbox.complain("whatsapp", str(error))
            return _refusal(error.status, error.code, str(error))
        tenant, _, delivery = str(message.get("biz_opaque_callback_data", "")).partition("/")
        to = str(message["to"])
        fault = self._faults.take("whatsapp", tenant=tenant, to=to)
        if fault is not None and fault.kind == "stall" and not fault.accepted:
            await asyncio.sleep(fault.seconds)
        if fault is not None and fault.kind != "stall" and not fault.accepted:
            return _misbehave(request, fault)
        try:
            arrival = self._inbox.accept(
                "whatsapp",
                key=request.headers.get("Idempotency-Key", delivery),
                tenant=tenant,
                delivery=delivery,
                to=to,
                content={part: message[part] for part in ("text", "template") if part in message},
                traceparent=request.headers.get("traceparent"),
                same=body,
            )
        except KeyReusedError:
            return _refusal(422, 100, "the idempotency key was used for another message")
        if fault is not None and fault.accepted:
            if fault.kind != "stall":
                return _misbehave(request, fault)
            await asyncio.sleep(fault.seconds)
        return _json(
            200,
            {
                "messaging_product": "whatsapp",
                "contacts": [{"input": to, "wa_id": to.removeprefix("+")}],
                "messages": [{"id": arrival.reference, "message_status": "accepted"}],
            },
        )

    def _checked(self, request: web.Request, body: bytes) -> Mapping[str, object]:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._authorization):
            raise BadRequestError(401, 190, "the access token is not ours")
        if request.match_info["phone"] != self._phone:
            raise BadRequestError(400, 33, "no such phone number id")
        if request.content_type != "application/json":
            raise BadRequestError(400, 100, f"the body is {request.content_type}, not application/json")
        try:
            message = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise BadRequestError(400, 100, "the body is not JSON") from None
        if not isinstance(message, dict):
            raise BadRequestError(400, 100, "the body is not an object")
        _check_message(message)
        return message


def _check_message(message: Mapping[str, object]) -> None:
    if message.get("messaging_product") != "whatsapp":
        raise BadRequestError(400, 131008, "messaging_product is not whatsapp")
    if not NUMBER.fullmatch(str(message.get("to", ""))):
        raise BadRequestError(400, 131009, "to is not a phone number")
    match message:
        case {"type": "text", "text": {"body": str(text)}} if 0 < len(text) <= MOST_TEXT:
            return
        case {"type": "template", "template": {"name": str(name), "language": {"code": str(code)}, **rest}}:
            if not name or not code:
                raise BadRequestError(400, 131008, "a template needs a name and a language")
            _check_components(rest.get("components", []))
        case {"type": "text" | "template"}:
            raise BadRequestError(400, 131008, "text needs a body, template a name and a language")
        case _:
            raise BadRequestError(400, 131051, "type is neither text nor template")


def _check_components(components: object) -> None:
    for component in components if isinstance(components, list) else [None]:
        match component:
            case {"type": "body", "parameters": [*parameters]}:
                for parameter in parameters:
                    match parameter:
                        case {"type": "text", "text": str(text)} if text and not re.search(
                            r"[\n\t]| {5}", text
                        ):
                            continue
                    raise BadRequestError(400, 132012, "a parameter is not a text on one line")
            case _:
                raise BadRequestError(400, 132012, "components are a list of bodies with parameters")


def _misbehave(request: web.Request, fault: Fault) -> web.StreamResponse:
    match fault.kind:
        case "status":
            headers = {"Retry-After": fault.retry_after} if fault.retry_after is not None else {}
            if fault.code is None:
                return web.Response(status=fault.status, headers=headers, text="as told")
            return _refusal(fault.status, fault.code, "as told", headers)
        case "nonsense":
            return web.Response(status=200, text="<html>everything is fine</html>")
        case "garbage" | "cut" | "stall":
            if request.transport is not None:
                if fault.kind == "garbage":
                    request.transport.write(b"\x00\xff no HTTP at all\r\n\r\n")
                    request.transport.close()
                else:
                    request.transport.abort()
            return web.Response(status=500)  # written to nobody: the connection has ended


def _refusal(status: int, code: int, details: str, headers: Mapping[str, str] | None = None) -> web.Response:
    error = {
        "message": f"(#{code}) {details}",
        "type": "OAuthException",
        "code": code,
        "error_data": {"messaging_product": "whatsapp", "details": details},
        "fbtrace_id": "local",
    }
    return _json(status, {"error": error}, headers)


def _json(status: int, body: object, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status, body=orjson.dumps(body), content_type="application/json", headers=dict(headers or {})
    )
