"""A route for FastAPI and Starlette."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from .webhook import SignatureError, Verifier, Webhook

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def webhook(verifier: Verifier, handle: Callable[[Webhook], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
    """A handler that verifies a request and passes its event on::

        app.add_route("/webhooks", webhook(Verifier(secret), handle), methods=["POST"])

    It responds 200 when your function returns, 401 to a wrong signature. An exception of your function becomes your
    application's 500, and the delivery is retried. It answers the verification of the endpoint by itself."""
    from starlette.responses import PlainTextResponse, Response

    async def respond(request: Request) -> Response:
        try:
            event = verifier.verify(request.headers, await request.body())
        except SignatureError as error:
            return PlainTextResponse(error.code, status_code=401)
        if event.challenge:
            return PlainTextResponse(event.challenge)
        await handle(event)
        return Response(status_code=200)

    return respond
