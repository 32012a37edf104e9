"""A view for Django."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from .webhook import SignatureError, Verifier, Webhook


def webhook(verifier: Verifier, handle: Callable[[Webhook], Any]) -> Callable[[Any], Any]:
    """A view that verifies a request and passes its event on::

        path("webhooks", webhook(Verifier(settings.WEBHOOK_SECRET), handle))

    It responds 200 when your function returns, 401 to a wrong signature. An exception of your function becomes your
    application's 500, and the delivery is retried. It answers the verification of the endpoint by itself."""
    from django.http import HttpResponse  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from django.views.decorators.csrf import csrf_exempt  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from django.views.decorators.http import require_POST  # type: ignore[import-not-found, import-untyped, unused-ignore]

    @csrf_exempt  # type: ignore[untyped-decorator, unused-ignore]
    @require_POST  # type: ignore[untyped-decorator, unused-ignore]
    def view(request: Any) -> Any:
        try:
            event = verifier.verify(request.headers, request.body)
        except SignatureError as error:
            return HttpResponse(error.code, status=401, content_type="text/plain")
        if event.challenge:
            return HttpResponse(event.challenge, content_type="text/plain")
        handle(event)
        return HttpResponse(status=200)

    return cast(Callable[[Any], Any], view)
