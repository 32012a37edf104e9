"""Verification of webhooks: receivers need no more than this module, which uses the standard library alone but for ed25519
keys."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

Format = Literal["standard", "x-webhook", "t-v1", "body-hex", "raw", "template"]
"""The wire formats of an endpoint: see its ``format`` setting."""

Preset = Literal["svix", "standard-webhooks", "stripe", "github", "shopify", "slack"]
"""How another sender's receivers expect their webhooks: see the endpoint's ``preset`` setting."""

_PRESETS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "svix": ("standard", "", {"body": "payload", "header_prefix": "svix-"}),
    "standard-webhooks": ("standard", "", {"body": "payload"}),
    "stripe": ("t-v1", "Stripe", {"body": "payload"}),
    "github": ("template", "", {
        "body": "payload", "header_prefix": "X-GitHub-", "header_names": {"signature": "X-Hub-Signature-256", "timestamp": ""},
        "signature": {"value": "sha256={hex}", "content": "{body}"},
    }),
    "shopify": ("template", "", {
        "body": "payload", "header_prefix": "X-Shopify-", "signature": {"value": "{base64}", "content": "{body}"},
        "header_names": {
            "signature": "X-Shopify-Hmac-Sha256", "event": "X-Shopify-Topic", "id": "X-Shopify-Event-Id", "delivery": "X-Shopify-Webhook-Id", "timestamp": "",
        },
    }),
    "slack": ("template", "", {
        "body": "payload", "header_prefix": "X-Slack-", "header_names": {"timestamp": "X-Slack-Request-Timestamp"},
        "signature": {"value": "v0={hex}", "content": "v0:{ts}:{body}"},
    }),
}

DEFAULT_TOLERANCE = 300.0


class SignatureError(Exception):
    """A webhook that must not be trusted. Respond with 401, and log it."""

    def __init__(self, code: str, detail: str, header: str = "") -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        """Stable code, such as ``signature_mismatch`` or ``timestamp_too_old``."""
        self.detail = detail
        self.header = header
        """The header concerned."""


@dataclass(frozen=True)
class Webhook:
    """A verified delivery. Fields that the endpoint's format does not carry are empty."""

    id: str
    """The event's id: the same on every attempt and replay. Act on each id once."""
    delivery_id: str
    """The delivery's id, in the formats ``x-webhook`` and ``raw``."""
    type: str
    timestamp: datetime | None
    version: str
    data: Any

    @property
    def challenge(self) -> str:
        """When the endpoint is being verified: respond with status 200 and this text. Empty for every other webhook."""
        if self.type != "endpoint.verification" or not isinstance(self.data, dict):
            return ""
        return str(self.data.get("challenge", ""))


class Verifier:
    """Checks the webhooks of one endpoint. It can be used by many threads."""

    def __init__(
        self, secret: str | Sequence[str], *, format: Format = "standard", prefix: str = "Webhook",
        preset: Preset | None = None, wire: Mapping[str, Any] | None = None,
        tolerance: float = DEFAULT_TOLERANCE, now: Callable[[], float] = time.time,
    ) -> None:
        """``secret`` is the endpoint's secret, or several: during a rotation, list the old and the new one. ``tolerance`` is how
        far the signature's time can be from this machine's clock, in seconds; negative: any time. ``preset`` takes the place of
        ``format`` and ``prefix``. ``wire`` is the endpoint's setting of that name, as the API shows it."""
        shape: Mapping[str, Any] = {}
        kind: str = format
        if preset is not None:
            if preset not in _PRESETS:
                raise SignatureError("preset_unknown", f"There is no preset {preset!r}. Use {', '.join(_PRESETS)}.")
            kind, prefix, shape = _PRESETS[preset]
        if wire is not None:
            shape = wire
        if kind not in ("standard", "x-webhook", "t-v1", "body-hex", "raw", "template"):
            raise SignatureError("format_unknown", "Use standard, x-webhook, t-v1, body-hex, raw or template.")
        self._template = _Template(shape.get("signature")) if kind == "template" else None
        secrets = [secret] if isinstance(secret, str) else list(secret)
        if not secrets:
            raise SignatureError("secret_refused", "Give at least one secret to verify with.")
        self._format, self._prefix, self._tolerance, self._now = kind, prefix or "Webhook", tolerance, now
        self._keys = [self._template.key(s) if self._template else _parse_key(kind, s) for s in secrets]
        self._names = _names(kind, self._prefix, shape)
        self._bare = kind == "raw" or shape.get("body", "payload" if kind == "template" else "") == "payload"

    def verify(self, headers: Mapping[str, str], body: bytes) -> Webhook:
        """Verifies a request and returns its event. ``body`` is the bytes received, before any parsing. Raises a SignatureError."""
        self.check(headers, body)
        return self._open({k.lower(): v for k, v in headers.items()}, body)

    def check(self, headers: Mapping[str, str], body: bytes) -> None:
        """Verifies the signature alone, for a body that is no event of Posthorn. Raises a SignatureError."""
        lower = {k.lower(): v for k, v in headers.items()}
        id_name, stamp_name, signature_name = self._names["id"], self._names["timestamp"], self._names["signature"]

        def need(name: str) -> str:
            value = lower.get(name.lower(), "")
            if not value:
                raise SignatureError(
                    "header_missing",
                    f"The request has no {name} header. Check whether a proxy removed it, and whether the format is the right one.",
                    name,
                )
            return value

        signature, event_id, stamp = need(signature_name), "", ""
        if self._template is not None:
            self._check_template(self._template, signature, need, body)
            return
        if self._format == "t-v1":
            stamp = next((s[2:] for s in (p.strip() for p in signature.split(",")) if s.startswith("t=")), "")
            if not stamp:
                raise SignatureError("timestamp_malformed", "The signature has no t=<unix seconds>.", signature_name)
        elif self._format != "body-hex":
            stamp = need(stamp_name)
        if self._format == "standard":
            event_id = need(id_name)
            if "." in event_id:
                raise SignatureError("id_malformed", "The message id contains a full stop, which the specification forbids.", id_name)
        if self._format != "body-hex":
            self._check_age(stamp, stamp_name or signature_name)
        self._match(signature, signature_name, event_id, stamp, body)

    def _check_template(self, template: _Template, signature: str, need: Callable[[str], str], body: bytes) -> None:
        shown = template.read(signature)
        if shown is None:
            raise SignatureError("signature_scheme_unknown", f"The signature has not the shape {template.value}.", self._names["signature"])
        event_id = need(self._names["id"]) if "{id}" in template.content else ""
        stamp = shown
        if "{ts}" in template.content and "{ts}" not in template.value:
            stamp = need(self._names["timestamp"])
        if stamp:
            self._check_age(stamp, self._names["timestamp"] or self._names["signature"])
        for key in self._keys:
            if hmac.compare_digest(template.sign(key, event_id, stamp, body).encode(), signature.encode()):
                return
        raise SignatureError(
            "signature_mismatch", "No signature matches. Check that the secret is this endpoint's, and that the body is the exact bytes received.",
            self._names["signature"],
        )

    def _check_age(self, stamp: str, header: str) -> None:
        if not re.fullmatch(r"[0-9]{1,12}", stamp):
            raise SignatureError("timestamp_malformed", "The timestamp is not a whole number of seconds since 1970.", header)
        if self._tolerance < 0:
            return
        age = int(self._now()) - int(stamp)
        if age > self._tolerance:
            raise SignatureError("timestamp_too_old", f"The request was signed {age} seconds ago, more than the {self._tolerance:g} allowed.", header)
        if -age > self._tolerance:
            raise SignatureError("timestamp_too_new", f"The request was signed {-age} seconds in the future, more than the {self._tolerance:g} allowed.", header)

    def _match(self, header: str, name: str, event_id: str, stamp: str, body: bytes) -> None:
        head = {"standard": f"{event_id}.{stamp}.", "body-hex": ""}.get(self._format, f"{stamp}.")
        content, known = head.encode() + body, False
        for part in header.split(" " if self._format == "standard" else ","):
            item = part if self._format == "standard" else part.strip()
            if not self._knows(item):
                continue
            known = True
            if any(self._matches(key, item, content) for key in self._keys):
                return
        if not known:
            raise SignatureError("signature_scheme_unknown", f"No signature in this header has the shape of the {self._format} format.", name)
        raise SignatureError(
            "signature_mismatch", "No signature matches. Check that the secret is this endpoint's, and that the body is the exact bytes received.", name
        )

    def _knows(self, item: str) -> bool:
        if self._format == "standard":
            return item.startswith(("v1,", "v1a,"))
        if self._format in ("x-webhook", "t-v1"):
            return item.startswith("v1=")
        return item != "" and "=" not in item and "," not in item

    def _matches(self, key: _Key, item: str, content: bytes) -> bool:
        if key.public:
            signature = _strict_base64(item[4:]) if item.startswith("v1a,") else None
            return signature is not None and _ed25519(key.secret, signature, content)
        digest = hmac.new(key.secret, content, hashlib.sha256)
        if self._format == "standard":
            want = "v1," + base64.b64encode(digest.digest()).decode()
        elif self._format in ("x-webhook", "t-v1"):
            want = "v1=" + digest.hexdigest()
        else:
            want = digest.hexdigest()
        return hmac.compare_digest(want.encode(), item.encode())

    def _open(self, headers: Mapping[str, str], body: bytes) -> Webhook:
        def named(role: str) -> str:
            return headers.get(self._names[role].lower(), "") if self._names[role] else ""

        x = f"x-{self._prefix.lower()}-"
        parsed = json.loads(body)
        if self._bare:
            return Webhook(named("id"), named("delivery"), named("event"), None, "", parsed)
        moment = parsed.get("created_at" if self._format == "x-webhook" else "timestamp")
        hexed = self._format == "body-hex"
        return Webhook(
            id=headers.get(x + "event-id", "") if hexed else parsed.get("id", ""),
            delivery_id=headers.get("x-delivery-id", "") if self._format == "x-webhook" else "",
            type=parsed.get("event", "") if hexed else parsed.get("type") or parsed.get("event", ""),
            timestamp=_moment(moment) if moment else None,
            version=parsed.get("version") or "",
            data=parsed.get("data"),
        )


@dataclass(frozen=True, repr=False)
class _Key:
    secret: bytes
    public: bool = False


def _parse_key(format: str, secret: str) -> _Key:
    def refuse(detail: str) -> SignatureError:
        return SignatureError("secret_refused", detail)

    if format != "standard":
        raw = secret.encode()
        if not 1 <= len(raw) <= 256:
            raise refuse(f"A secret of this format has 1 to 256 bytes; this one has {len(raw)}.")
        if any(c < 0x20 or c == 0x7F for c in raw):
            raise refuse("The secret contains a line break or another control character.")
        return _Key(raw)
    if secret.startswith("whsec_"):
        found = _strict_base64(secret[6:])
        if found is None:
            raise refuse("What follows whsec_ is not base64. Paste the secret whole.")
        if not 24 <= len(found) <= 64:
            raise refuse(f"After whsec_ this secret has {len(found)} bytes; 24 to 64 are needed.")
        return _Key(found)
    for prefix, size in (("whpk_", 32), ("whsk_", 64)):
        if secret.startswith(prefix):
            found = _strict_base64(secret[5:])
            if found is None or len(found) != size:
                raise refuse(f"What follows {prefix} is not base64 of {size} bytes. Paste the key whole.")
            return _Key(found[-32:], public=True)
    raise refuse("A secret of the standard format begins with whsec_ (or whpk_ for an ed25519 public key).")


def _strict_base64(text: str) -> bytes | None:
    """The standard alphabet with padding, and nothing else: the decoder itself skips stray bits at the end."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == text else None


def _ed25519(public: bytes, signature: bytes, content: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as missing:
        raise SignatureError("secret_refused", "ed25519 keys need the package cryptography: pip install posthorn[ed25519].") from missing
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _names(format: str, prefix: str, shape: Mapping[str, Any]) -> dict[str, str]:
    x = f"X-{prefix}-"
    names = {role: "" for role in ("id", "timestamp", "signature", "event", "delivery")}
    if format == "standard":
        names |= {"id": "webhook-id", "timestamp": "webhook-timestamp", "signature": "webhook-signature"}
    elif format == "x-webhook":
        names |= {"id": "X-Webhook-Id", "timestamp": "X-Webhook-Timestamp", "signature": "X-Webhook-Signature", "delivery": "X-Delivery-Id"}
    elif format == "t-v1":
        names |= {"id": f"{prefix}-Event-Id", "signature": f"{prefix}-Signature", "event": f"{prefix}-Event-Type"}
    else:
        names |= {"id": x + "Event-Id", "timestamp": x + "Timestamp", "signature": x + "Signature", "event": x + "Event"}
        if format != "body-hex":
            names["delivery"] = x + "Delivery"
    start = shape.get("header_prefix") or ""
    if start:
        names = {role: name and start + (role if start == start.lower() else role.capitalize()) for role, name in names.items()}
    return names | {role: name for role, name in (shape.get("header_names") or {}).items() if role in names}


class _Template:
    """A signature in a sender's own notation, such as ``sha256={hex}`` over ``{body}``."""

    def __init__(self, settings: Mapping[str, Any] | None) -> None:
        if not settings:
            raise SignatureError("wire_template_missing", "The format template needs wire: its signature's value and content.")
        self.value, self.content = str(settings["value"]), str(settings["content"])
        self._base64_key = settings.get("key") == "base64"
        self._algorithm = str(settings.get("algorithm") or "hmac-sha256").removeprefix("hmac-")
        if self._algorithm not in ("sha1", "sha256", "sha512"):
            raise SignatureError("wire_template_malformed", "The algorithm is hmac-sha256, hmac-sha512 or hmac-sha1.")
        pattern = re.escape(self.value)
        for name, inside in (("ts", "(?P<ts>.+?)"), ("hex", "(?:.+?)"), ("base64", "(?:.+?)")):
            pattern = pattern.replace(re.escape("{" + name + "}"), inside)
        self._pattern = re.compile(pattern)

    def key(self, secret: str) -> _Key:
        if not self._base64_key:
            return _parse_key("template", secret)
        raw = _strict_base64(secret.removeprefix("whsec_"))
        if not raw or len(raw) > 256:
            raise SignatureError("secret_refused", "The secret is not base64 of 1 to 256 bytes. Paste the secret whole.")
        return _Key(raw)

    def read(self, value: str) -> str | None:
        """The time in a header's value, or empty where there is none; None where it has not the template's shape."""
        found = self._pattern.fullmatch(value)
        return None if found is None else found.groupdict().get("ts") or ""

    def sign(self, key: _Key, event_id: str, stamp: str, body: bytes) -> str:
        before, after = self.content.split("{body}")
        fill = {"{id}": event_id, "{ts}": stamp}

        def filled(text: str) -> bytes:
            return re.sub(r"\{id\}|\{ts\}", lambda m: fill[m[0]], text).encode()

        digest = hmac.new(key.secret, filled(before) + body + filled(after), self._algorithm)
        value = self.value.replace("{ts}", stamp)
        return value.replace("{hex}", digest.hexdigest()).replace("{base64}", base64.b64encode(digest.digest()).decode())


def _moment(text: str) -> datetime:
    # Before Python 3.11 fromisoformat knows neither Z nor a fraction of another length than 3 or 6 digits.
    text = re.sub(r"\.(\d+)", lambda m: "." + m[1][:6].ljust(6, "0"), text.replace("Z", "+00:00"))
    return datetime.fromisoformat(text)
