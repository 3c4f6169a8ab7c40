"""The HTTP side: WhatsApp's endpoint, the page, the JSON, and where to tell it to misbehave."""

from __future__ import annotations

import orjson
from aiohttp import web
from pydantic import BaseModel, ConfigDict, ValidationError

from deploy.providers.faults import Fault, Faults
from deploy.providers.inbox import Inbox
from deploy.providers.page import page
from deploy.providers.whatsapp import PATH, WhatsAppEndpoint

MOST_AT_ONCE = 200_000


class Control(BaseModel):
    """What `POST /control` takes, in this order."""

    model_config = ConfigDict(extra="forbid")

    clear: bool = False
    """Forget the faults told before."""
    forget: bool = False
    """Forget what arrived."""
    honours_keys: bool | None = None
    faults: list[Fault] = []


class Site:
    """All routes over one inbox."""

    def __init__(self, inbox: Inbox, faults: Faults, whatsapp: WhatsAppEndpoint) -> None:
        self._inbox = inbox
        self._faults = faults
        self._whatsapp = whatsapp

    def application(self) -> web.Application:
        app = web.Application(client_max_size=1024 * 1024)
        app.add_routes(
            [
                web.post(PATH, self._whatsapp.post),
                web.get("/", self._page),
                web.get("/messages.json", self._messages),
                web.get("/counts.json", self._counts),
                web.get("/control", self._current),
                web.post("/control", self._control),
            ]
        )
        return app

    async def _page(self, _request: web.Request) -> web.Response:
        return web.Response(
            text=page(self._inbox, self._faults),
            content_type="text/html",
            headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
        )

    async def _messages(self, request: web.Request) -> web.Response:
        """`?after=NUMBER&limit=N&tenant=T&channel=C`: for the next ones ask after the last number."""
        query = request.query
        try:
            after, limit = int(query.get("after", 0)), int(query.get("limit", 1000))
        except ValueError:
            return _json({"error": "after and limit are numbers"}, status=400)
        return _json(
            self._inbox.select(
                after=after,
                limit=min(limit, MOST_AT_ONCE),
                tenant=query.get("tenant"),
                channel=query.get("channel"),
            )
        )

    async def _counts(self, _request: web.Request) -> web.Response:
        return _json(
            {
                **{
                    name: self._inbox.counts[name]
                    for name in ("accepted", "repeated", "key_reused", "refused")
                },
                "faults_taken": self._faults.taken,
                "tenants": dict(self._inbox.by_tenant),
                "complaints": list(self._inbox.complaints),
            }
        )

    async def _current(self, _request: web.Request) -> web.Response:
        return _json({"honours_keys": self._inbox.honours_keys, "faults": self._faults.current()})

    async def _control(self, request: web.Request) -> web.Response:
        # Of JSON only: a page on another site cannot send that without asking first, and is not answered.
        if request.content_type != "application/json":
            return _json({"error": "send application/json"}, status=415)
        try:
            told = Control.model_validate_json(await request.read())
        except ValidationError as error:
            return _json({"error": str(error)}, status=400)
        if told.clear:
            self._faults.clear()
        if told.forget:
            self._inbox.clear()
        if told.honours_keys is not None:
            self._inbox.honours_keys = told.honours_keys
        for fault in told.faults:
            self._faults.tell(fault)
        return await self._current(request)


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(value), content_type="application/json")
