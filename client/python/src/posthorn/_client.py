from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

import httpx

from . import models
from ._operations import AsyncOperations, Operations
from ._paths import segment
from .errors import APIError, BatchError, ConnectionFailed, error_of

_FIRST_PAUSE = 0.2
_LARGEST_BATCH = 1000
_LARGEST_BATCH_BYTES = 9 << 20


class _Settings:
    def __init__(
        self, url: str, key: str, tenant: str | None, retries: int, max_pause: float, timeout: float, user_agent: str
    ) -> None:
        address = httpx.URL(url.strip())
        if address.scheme not in ("http", "https") or not address.host or address.query or address.fragment or address.userinfo:
            raise ValueError(f"posthorn: {url!r} is not an address such as https://posthorn.example.com")
        if not key.strip():
            raise ValueError("posthorn: no API key given")
        self.url, self.key, self.tenant = url, key.strip(), tenant
        self.retries, self.max_pause, self.timeout, self.user_agent = max(retries, 0), max_pause, timeout, user_agent
        base = str(address).rstrip("/")
        if not base.endswith("/api/v1"):
            base += "/api/v1"
        self.base = base + (f"/tenants/{segment(tenant)}" if tenant else "")
        self.headers = {
            "Authorization": f"Bearer {self.key}",
            "User-Agent": f"{user_agent} posthorn-python/1".strip(),
        }

    def request(
        self, client: httpx.Client | httpx.AsyncClient, method: str, path: str, query: dict[str, Any], header: dict[str, Any], body: Any, answer: str
    ) -> tuple[httpx.Request, bool]:
        headers = {**self.headers, "Accept": "*/*" if answer == "stream" else "application/json"}
        headers |= {k: str(v) for k, v in header.items() if v is not None}
        parameters = httpx.QueryParams([(k, _text(v)) for k, values in query.items() for v in _list(values)])
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = _encode(body)
        timeout = httpx.Timeout(self.timeout, read=None) if answer == "stream" else httpx.Timeout(self.timeout)
        request = client.build_request(
            method, self.base + path, params=parameters, headers=headers, content=content, timeout=timeout
        )
        safe = method == "GET" or "Idempotency-Key" in headers or _keyed(body) or (
            isinstance(body, Mapping) and path == "/events/batch" and all(_keyed(e) for e in body.get("events", []))
        )
        return request, safe

    def pause(self, error: APIError | ConnectionFailed, safe: bool, attempt: int) -> float | None:
        """Seconds to wait before the same request is sent again; None when it must not be."""
        if attempt >= self.retries:
            return None
        pause: float = min(_FIRST_PAUSE * 2.0 ** min(attempt, 20), self.max_pause)
        pause = pause / 2 + random.random() * pause / 2  # so that many clients do not come back at the same time
        if isinstance(error, ConnectionFailed):
            return pause if safe or isinstance(error.__cause__, (httpx.ConnectError, httpx.ConnectTimeout)) else None
        if error.retry_after > self.max_pause:
            return None
        if error.status == 429 or safe and error.status in (500, 502, 503, 504):
            return max(pause, float(error.retry_after))
        return None


def _encode(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _keyed(body: Any) -> bool:
    return isinstance(body, Mapping) and bool(body.get("idempotency_key"))


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _with_key(event: models.Emission) -> models.Emission:
    if event.get("idempotency_key"):
        return event
    keyed = event.copy()
    keyed["idempotency_key"] = "sdk_" + secrets.token_hex(16)
    return keyed


def _batches(events: Iterable[models.Emission]) -> Iterator[list[models.Emission]]:
    batch: list[models.Emission] = []
    size = 0
    for each in events:
        event = _with_key(each)
        length = len(_encode(event))
        if batch and (len(batch) == _LARGEST_BATCH or size + length > _LARGEST_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += length
    if batch:
        yield batch


def _checked(results: list[models.ItemResult]) -> list[models.ItemResult]:
    rejected = [i for i, r in enumerate(results) if not r.get("id")]
    if rejected:
        raise BatchError(results, rejected)
    return results


def _same_number(got: models.BatchResult, batch: list[models.Emission]) -> list[models.ItemResult]:
    if len(got["results"]) != len(batch):
        raise ConnectionFailed("posthorn: the response to a batch has another number of results than it has events")
    return got["results"]


def _failed(request: httpx.Request, cause: httpx.TransportError) -> ConnectionFailed:
    error = ConnectionFailed(f"posthorn: {request.method} {request.url}: {type(cause).__name__}: {cause}")
    error.__cause__ = cause
    return error


def _read(response: httpx.Response, answer: str) -> Any:
    if answer == "stream":
        return response
    return None if answer == "none" or response.status_code == 204 else response.json()


class Posthorn(Operations):
    """A client of one Posthorn server with one key. It has a method for each operation of the API. It can be used by many
    threads, and as a context manager."""

    def __init__(
        self, url: str, key: str, *, tenant: str | None = None, retries: int = 5, max_pause: float = 30, timeout: float = 30,
        user_agent: str = "", http_client: httpx.Client | None = None,
    ) -> None:
        """``url`` is the server's address, ``key`` a tenant's key (``phk_...``) or a platform key (``php_...``, with ``tenant``).
        ``retries`` is how often a request is repeated at most, ``max_pause`` the longest pause between two tries and ``timeout``
        the time limit of one try, both in seconds."""
        self._settings = _Settings(url, key, tenant, retries, max_pause, timeout, user_agent)
        self._http = http_client or httpx.Client(follow_redirects=False)

    def tenant(self, tenant_id: str) -> Posthorn:
        """The same client acting within one tenant, for a platform key."""
        s = self._settings
        return Posthorn(
            s.url, s.key, tenant=tenant_id, retries=s.retries, max_pause=s.max_pause, timeout=s.timeout,
            user_agent=s.user_agent, http_client=self._http,
        )

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Posthorn:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def emit(self, event: models.Emission) -> models.Accepted:
        """Emits an event. When it returns, the event and its deliveries are stored. An event without an ``idempotency_key`` gets
        a random one, so a repeated request creates no second event. To be safe across a crash of your own program too, set a key
        that you can create again, such as the id of the row that the event is about."""
        return self.emit_event(_with_key(event))

    def emit_all(self, events: Iterable[models.Emission]) -> list[models.ItemResult]:
        """Emits any number of events, as many per request as the API takes. Raises a BatchError with all results if some were
        rejected; the others are stored."""
        results: list[models.ItemResult] = []
        for batch in _batches(events):
            results += _same_number(self.emit_events({"events": batch}), batch)
        return _checked(results)

    def iterate(self, list_operation: Callable[..., Any], *ids: str, **filters: Any) -> Iterator[Any]:
        """Iterates over a list, page after page: ``for d in posthorn.iterate(posthorn.list_deliveries, status="failed")``."""
        cursor: str | None = None
        while True:
            page = list_operation(*ids, **filters, **({"cursor": cursor} if cursor else {}))
            yield from page["data"]
            cursor = page.get("next_cursor")
            if not cursor:
                return

    def _call(self, method: str, path: str, query: dict[str, Any], header: dict[str, Any], body: Any, answer: str) -> Any:
        request, safe = self._settings.request(self._http, method, path, query, header, body, answer)
        attempt = 0
        while True:
            error: APIError | ConnectionFailed
            try:
                response = self._http.send(request, stream=answer == "stream")
                if response.is_success:
                    return _read(response, answer)
                if answer == "stream":
                    response.read()
                    response.close()
                error = error_of(response)
            except httpx.TransportError as cause:
                error = _failed(request, cause)
            pause = self._settings.pause(error, safe, attempt)
            if pause is None:
                _raise(error)
            time.sleep(pause)
            attempt += 1


class AsyncPosthorn(AsyncOperations):
    """Posthorn for asyncio: the same methods, to be awaited."""

    def __init__(
        self, url: str, key: str, *, tenant: str | None = None, retries: int = 5, max_pause: float = 30, timeout: float = 30,
        user_agent: str = "", http_client: httpx.AsyncClient | None = None,
    ) -> None:
        """Takes what Posthorn takes."""
        self._settings = _Settings(url, key, tenant, retries, max_pause, timeout, user_agent)
        self._http = http_client or httpx.AsyncClient(follow_redirects=False)

    def tenant(self, tenant_id: str) -> AsyncPosthorn:
        """The same client acting within one tenant, for a platform key."""
        s = self._settings
        return AsyncPosthorn(
            s.url, s.key, tenant=tenant_id, retries=s.retries, max_pause=s.max_pause, timeout=s.timeout,
            user_agent=s.user_agent, http_client=self._http,
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncPosthorn:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def emit(self, event: models.Emission) -> models.Accepted:
        """See Posthorn.emit."""
        return await self.emit_event(_with_key(event))

    async def emit_all(self, events: Iterable[models.Emission]) -> list[models.ItemResult]:
        """See Posthorn.emit_all."""
        results: list[models.ItemResult] = []
        for batch in _batches(events):
            results += _same_number(await self.emit_events({"events": batch}), batch)
        return _checked(results)

    async def iterate(self, list_operation: Callable[..., Any], *ids: str, **filters: Any) -> AsyncIterator[Any]:
        """See Posthorn.iterate."""
        cursor: str | None = None
        while True:
            page = await list_operation(*ids, **filters, **({"cursor": cursor} if cursor else {}))
            for row in page["data"]:
                yield row
            cursor = page.get("next_cursor")
            if not cursor:
                return

    async def _call(self, method: str, path: str, query: dict[str, Any], header: dict[str, Any], body: Any, answer: str) -> Any:
        request, safe = self._settings.request(self._http, method, path, query, header, body, answer)
        attempt = 0
        while True:
            error: APIError | ConnectionFailed
            try:
                response = await self._http.send(request, stream=answer == "stream")
                if response.is_success:
                    return _read(response, answer)
                if answer == "stream":
                    await response.aread()
                    await response.aclose()
                error = error_of(response)
            except httpx.TransportError as cause:
                error = _failed(request, cause)
            pause = self._settings.pause(error, safe, attempt)
            if pause is None:
                _raise(error)
            await asyncio.sleep(pause)
            attempt += 1


def _raise(error: APIError | ConnectionFailed) -> NoReturn:
    raise error
