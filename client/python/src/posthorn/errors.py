"""What can go wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

    from . import models

_LONGEST_EXCERPT = 300


class PosthornError(Exception):
    """The base of all errors of this package, but for ValueError where an argument can't be right."""


class ConnectionFailed(PosthornError):
    """The server did not respond: the connection failed, or the request timed out. ``__cause__`` has the reason."""


class APIError(PosthornError):
    """The server rejected a request."""

    def __init__(
        self, status: int, code: str, detail: str, fields: list[models.FieldProblem], request_id: str, retry_after: int
    ) -> None:
        super().__init__(f"{code or f'HTTP {status}'}: {detail}" + (f" ({request_id})" if request_id else ""))
        self.status = status
        """HTTP status code."""
        self.code = code
        """Stable code, such as ``not_found``. Empty when something between you and the server responded."""
        self.detail = detail
        """What is wrong and how to fix it."""
        self.fields = fields
        """The fields that are wrong."""
        self.request_id = request_id
        """Quote it when you ask for help."""
        self.retry_after = retry_after
        """Seconds after which the same request can succeed; 0 when the server did not say."""


class BatchError(PosthornError):
    """Some events of ``emit_all`` were rejected. All others were stored."""

    def __init__(self, results: list[models.ItemResult], rejected: list[int]) -> None:
        first = results[rejected[0]]
        super().__init__(
            f"{len(rejected)} of {len(results)} events were rejected; the first has the index {rejected[0]}: "
            f"{first.get('code')}: {first.get('detail')}"
        )
        self.results = results
        """One result per event, in the order of the events."""
        self.rejected = rejected
        """The indexes of the rejected events."""


def error_of(response: httpx.Response) -> APIError:
    """Reads a response that is not a success. The body can be anything: a proxy may have written it."""
    request_id = response.headers.get("X-Request-Id", "")
    after = response.headers.get("Retry-After", "")
    seconds = int(after) if re.fullmatch(r"\d{1,9}", after) else 0
    problem: Any = None
    try:
        problem = response.json()
    except ValueError:
        pass
    if isinstance(problem, dict) and isinstance(problem.get("code"), str) and problem["code"]:
        return APIError(
            response.status_code, problem["code"], problem.get("detail", ""), problem.get("errors") or [],
            problem.get("request_id") or request_id, seconds,
        )
    return APIError(response.status_code, "", " ".join(response.text.split())[:_LONGEST_EXCERPT], [], request_id, seconds)
