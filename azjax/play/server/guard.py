"""Access control: the host name and the token of each request."""

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
    # The policy of index.html; other sites must not frame this page.
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
    """Middleware that rejects requests with a foreign host name or without the token,
    and adds security headers.

    A client sends the token once, as `?token=TOKEN` or in an `Authorization` header;
    from then on an HTTP-only cookie holds its digest.

    Args:
        app: the application.
        names: allowed host names; IP addresses are always allowed.
        token: required token; None requires none.
    """

    def __init__(self, app: ASGIApp, names: Collection[str], token: str | None):
        self._app, self._names = app, {name.lower() for name in names}
        self._digest = None if token is None else _digest(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forwards or rejects a request."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        rejection = self._rejection(HTTPConnection(scope))
        if rejection is None:
            return await self._app(scope, receive, send_guarded)
        if scope["type"] == "websocket":
            return await WebSocket(scope, receive, send).close()
        return await rejection(scope, receive, send_guarded)

    def _rejection(self, request: HTTPConnection) -> Response | None:
        """Returns the rejecting response, None if the request is allowed."""
        if not self._is_known_host(request.headers.get("host", "")):
            return PlainTextResponse("unknown host name", 421)
        if self._digest is None:
            return None
        if _is_same(request.cookies.get(COOKIE, ""), self._digest):
            return None
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _is_same(_digest(given), self._digest):
            return None
        given = request.query_params.get(PARAMETER, "")
        if _is_same(_digest(given), self._digest):
            return self._accept(request)
        return PlainTextResponse(
            f"a token is required: add ?{PARAMETER}=TOKEN to the address", 401
        )

    def _is_known_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
            if name is None or name in self._names:
                return name is not None
            ipaddress.ip_address(name)  # not a name, so no DNS rebinding
        except ValueError:
            return False
        return True

    def _accept(self, request: HTTPConnection) -> Response:
        """Sets the cookie and redirects to the address without the token."""
        query = request.query_params.multi_items()
        rest = urlencode([(name, text) for name, text in query if name != PARAMETER])
        path = quote(f"/{request.scope['path'].lstrip('/')}")
        response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        response.set_cookie(
            COOKIE,
            self._digest or "",
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="lax",
            secure=request.scope["scheme"] in ("https", "wss"),
        )
        return response


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _is_same(one: str, other: str) -> bool:
    """Compares in constant time."""
    return secrets.compare_digest(one.encode(), other.encode())
