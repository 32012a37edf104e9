"""Posthorn's SDK: emit events, manage endpoints, read and replay deliveries, verify webhooks."""

from . import models
from ._client import AsyncPosthorn, Posthorn
from .errors import APIError, BatchError, ConnectionFailed, PosthornError
from .webhook import Format, SignatureError, Verifier, Webhook

__all__ = [
    "APIError", "AsyncPosthorn", "BatchError", "ConnectionFailed", "Format", "Posthorn", "PosthornError", "SignatureError",
    "Verifier", "Webhook", "models",
]
