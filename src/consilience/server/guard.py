"""What stands before every request: who may ask, from where, and how much; and what the answer forbids the browser.

Plain ASGI, so that it can be read without knowing a framework. Refusals are short and plain text.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

MOST_QUERY, MOST_BODY = 16_384, 1_048_576
"""Bytes of an address's query and of a request's body."""
SLOWEST_BODY = 30.0
"""Seconds for a body to come."""
HEADER = "x-consilience"
"""Every request that changes something must carry this header; a form of another site cannot set it."""
LOCAL = {"127.0.0.1", "localhost", "::1"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
ALWAYS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Refusal(Exception):
    """A request that is not let in: the status and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass
class Guard:
    """Wraps an ASGI app. `hosts` are names that the Host header may have; None where a token protects any name."""

    app: App
    hosts: set[str] | None
    token: str | None = None
    cookie: str = field(default="consilience", init=False)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Check, then hand on."""
        if scope["type"] != "http":  # the app's start and end; sockets there are none
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        try:
            if redirect := self._check(scope, headers):
                await _answer(send, 303, "", redirect)
                return
            receive = await _limited(headers, receive)
        except Refusal as refusal:
            await _answer(send, refusal.status, f"{refusal}\n")
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_encoded(ALWAYS)]
            await send(message)

        await self.app(scope, receive, sealed)

    def _check(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, str] | None:
        """Raise a Refusal, or give the headers of a redirect that sets the cookie, or let it pass."""
        host = headers.get("host", "")
        if self.hosts is not None and _name(host) not in self.hosts:
            raise Refusal(
                421, "This address is not served here: open the one that `consilience serve` printed."
            )
        query = scope.get("query_string", b"")
        if len(query) > MOST_QUERY:
            raise Refusal(414, f"The query has {len(query):,} bytes; at most {MOST_QUERY:,} are read.")
        if scope["method"] not in ("GET", "HEAD"):
            _check_origin(host, headers)
        return None if self.token is None else self._check_token(scope, query, headers)

    def _check_token(
        self, scope: Mapping[str, Any], query: bytes, headers: Mapping[str, str]
    ) -> dict[str, str] | None:
        assert self.token is not None
        # First: so that the token goes from the address bar, whoever asks.
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        if scope["method"] == "GET" and any(name == "token" and _equal(v, self.token) for name, v in pairs):
            rest = urlencode([(name, value) for name, value in pairs if name != "token"])
            path = "/" + quote(scope["path"].lstrip("/\\"))  # never another host
            attributes = "HttpOnly; SameSite=Strict; Path=/"
            return {
                "location": path + (f"?{rest}" if rest else ""),
                "set-cookie": f"{self.cookie}={_pass(self.token)}; {attributes}",
            }
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _equal(given.strip(), self.token):
            return None
        try:
            crumb = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            crumb = None
        if crumb is not None and _equal(crumb.value, _pass(self.token)):
            return None
        raise Refusal(401, "A token is needed: open the address that `consilience serve` printed.")


def allowed_hosts(host: str) -> set[str] | None:
    """Names that a server bound to this address answers to; None for every address of the machine."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return LOCAL | {host.lower()} if host.lower() == "localhost" else {host.lower()}
    if address.is_unspecified:
        return None
    return LOCAL | {str(address)} if address.is_loopback else {str(address)}


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server bound to this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _check_origin(host: str, headers: Mapping[str, str]) -> None:
    """A change must come from our own pages, or from a program that says so in a header."""
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin")
    if site not in ("same-origin", "none") or (origin is not None and origin.partition("://")[2] != host):
        raise Refusal(403, "Another site must not change anything here.")
    if headers.get(HEADER) != "1":
        raise Refusal(403, "A request that changes something needs the header X-Consilience: 1.")


async def _limited(headers: Mapping[str, str], receive: Receive) -> Receive:
    """The body, read whole before anybody works on it; a Refusal if it is too large or too slow."""
    too_large = Refusal(413, f"The body has more than {MOST_BODY:,} bytes.")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > MOST_BODY:
        raise too_large
    body = b""
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    break
                body += message.get("body", b"")
                if len(body) > MOST_BODY:
                    raise too_large
                if not message.get("more_body"):
                    break
    except TimeoutError:
        raise Refusal(408, f"The body did not come within {SLOWEST_BODY:g} seconds.") from None
    whole = {"type": "http.request", "body": body, "more_body": False}
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return whole

    return again


async def _answer(send: Send, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
    plain = {"content-type": "text/plain; charset=utf-8", **(headers or {}), **ALWAYS}
    await send({"type": "http.response.start", "status": status, "headers": _encoded(plain)})
    await send({"type": "http.response.body", "body": text.encode()})


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def _name(host: str) -> str:
    """The name in a Host header, without the port and the brackets of an IPv6 address."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _pass(token: str) -> str:
    """What the cookie holds: it opens the door as the token does, and does not give the token away."""
    return hmac.new(token.encode(), b"consilience cookie", hashlib.sha256).hexdigest()


def _equal(a: str, b: str) -> bool:
    """Whether two secrets are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(a.encode("utf-8", "replace"), b.encode("utf-8", "replace"))
