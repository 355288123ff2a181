"""Who may ask the server: by which names, and with which token."""

import hashlib
import ipaddress
import secrets
from collections.abc import Collection
from urllib.parse import quote, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

COOKIE = "azjax-token"
PARAMETER = "token"
COOKIE_SECONDS = 30 * 24 * 3600
HEADERS = {
    # The policy of index.html, and nobody else's page may show this one in a frame.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
        "img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class Guard:
    """Refuses requests under a foreign name or without the token; adds the headers of
    every answer.

    A visitor gives the token once, as `?token=TOKEN` or in an `Authorization` header;
    a cookie that no script can read holds a digest of it from then on.

    Args:
        app: what is guarded.
        names: by which the server may be called, beside IP addresses.
        token: which visitors must know; None asks for none.
    """

    def __init__(self, app: ASGIApp, names: Collection[str], token: str | None):
        self._app, self._names = app, {name.lower() for name in names}
        self._digest = None if token is None else _digest(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or has it answered."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(HTTPConnection(scope))
        if refusal is None:
            return await self._app(scope, receive, send_guarded)
        if scope["type"] == "websocket":
            return await WebSocket(scope, receive, send).close()
        return await refusal(scope, receive, send_guarded)

    def _refusal(self, asked: HTTPConnection) -> Response | None:
        """Returns what is answered instead, None if the request is let through."""
        if not self._is_called_by_name(asked.headers.get("host", "")):
            return PlainTextResponse("this server has other names", 421)
        if self._digest is None:
            return None
        if _is_same(asked.cookies.get(COOKIE, ""), self._digest):
            return None
        scheme, _, given = asked.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _is_same(_digest(given), self._digest):
            return None
        given = asked.query_params.get(PARAMETER, "")
        if _is_same(_digest(given), self._digest):
            return self._welcome(asked)
        return PlainTextResponse(
            f"this server needs its token: open it with ?{PARAMETER}=TOKEN", 401
        )

    def _is_called_by_name(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
            if name is None or name in self._names:
                return name is not None
            ipaddress.ip_address(name)  # no name, so that it cannot lead elsewhere
        except ValueError:
            return False
        return True

    def _welcome(self, asked: HTTPConnection) -> Response:
        """Returns an answer that leads to the same address without the token."""
        query = asked.query_params.multi_items()
        rest = urlencode([(name, text) for name, text in query if name != PARAMETER])
        path = quote(f"/{asked.scope['path'].lstrip('/')}")
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        answer.set_cookie(
            COOKIE,
            self._digest or "",
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="lax",
            secure=asked.scope["scheme"] in ("https", "wss"),
        )
        return answer


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _is_same(one: str, other: str) -> bool:
    """Compares in a time that does not depend on where the texts differ."""
    return secrets.compare_digest(one.encode(), other.encode())
