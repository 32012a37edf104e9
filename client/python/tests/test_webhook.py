import asyncio
import base64
import hmac
import json
from pathlib import Path

import pytest

from posthorn import SignatureError, Verifier

# Signatures that other implementations made. The server's own tests read the same file.
CORPUS = json.loads((Path(__file__).parents[3] / "domain/signature/testdata/vectors.json").read_text())
SCHEMES = {
    "standard_webhooks_v1": ("standard", "", "webhook-signature", ""),
    "standard_webhooks_v1a_ed25519": ("standard", "", "webhook-signature", ""),
    "x_webhook_signature_v1_hex": ("x-webhook", "", "X-Webhook-Signature", ""),
    "stripe_style_t_v1": ("t-v1", "X-Webhook", "X-Webhook-Signature", ""),
    "body_only_hex": ("body-hex", "Hub", "X-Hub-Signature", "raw_hex"),
}
PAID = b'{"type":"invoice.paid","timestamp":"2026-01-02T03:04:05.678901Z","data":{"id":"inv_1","amount":1250}}'
BASES = {
    "standard_webhooks_v1": (
        "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
        {
            "webhook-id": "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", "webhook-timestamp": "1700000000",
            "webhook-signature": "v1,wp6vdYhzfYxt4p5UcvB0o8yICTSmkjc3RrOACvT/2Lk=",
        },
    ),
    "stripe_style_t_v1": (
        "whsec_c2VjcmV0LW9uZQ",
        {"x-webhook-signature": "t=1700000000,v1=a8e30efce62a4457c1fa3486410ec51e14cda21247c3d1461c41a1730cac6789"},
    ),
}


def body_of(body):
    if "utf8" in body:
        return body["utf8"].encode()
    if "b64" in body:
        return base64.b64decode(body["b64"])
    return (body["repeat"]["unit"] * body["repeat"]["count"]).encode()


VECTORS = [(name, v) for name, scheme in CORPUS["schemes"].items() for v in scheme["vectors"]]


@pytest.mark.parametrize(("scheme", "v"), VECTORS, ids=[f"{n}-{v['name']}" for n, v in VECTORS])
def test_signatures_of_other_implementations_verify(scheme, v):
    format, prefix, name, source = SCHEMES[scheme]
    headers = {k: str(x) for k, x in v["headers"].items()} | {"x-webhook-timestamp": str(v.get("timestamp", ""))}
    headers[name] = v["headers"][source or name]
    seconds = int(v["headers"].get("webhook-timestamp") or v.get("timestamp") or 0)
    secrets = [s for key in ("secrets", "symmetric_secrets", "secret_keys", "public_keys") for s in v.get(key, [])]
    assert secrets
    for secret in secrets:
        verifier = Verifier(secret, format=format, prefix=prefix, now=lambda: seconds)
        verifier.check(headers, body_of(v["body"]))
        with pytest.raises(SignatureError) as raised:
            verifier.check(headers, body_of(v["body"]) + b" ")
        assert raised.value.code == "signature_mismatch"


@pytest.mark.parametrize("case", CORPUS["verify_cases"], ids=lambda c: f"{c['scheme']}-{c['change']}")
def test_changed_requests(case):
    format, prefix, _, _ = SCHEMES[case["scheme"]]
    secret, headers = BASES[case["scheme"]]
    headers = dict(headers)
    for name, value in case["headers"].items():
        headers.pop(name.lower(), None)
        if value is not None:
            headers[name.lower()] = value
    body = bytearray(PAID)
    if case["change"] == "one byte of body changed":
        body[len(body) // 2] ^= 1
    verifier = Verifier(secret, format=format, prefix=prefix, now=lambda: case["now"])
    if case["expect"] == "accept":
        verifier.check(headers, bytes(body))
    else:
        with pytest.raises(SignatureError):
            verifier.check(headers, bytes(body))


@pytest.mark.parametrize("case", CORPUS["secret_format_cases"], ids=lambda c: c["why"])
def test_secrets(case):
    if case["expect"] == "accept":
        Verifier(case["secret"])
        return
    with pytest.raises(SignatureError) as raised:
        Verifier(case["secret"])
    assert len(case["secret"]) <= 10 or case["secret"][6:] not in str(raised.value)


SECRET, HEADERS = BASES["standard_webhooks_v1"]


def verifier():
    return Verifier(SECRET, now=lambda: 1_700_000_000)


def test_an_event_has_its_parts():
    event = verifier().verify(HEADERS, PAID)
    assert (event.type, event.data, event.challenge) == ("invoice.paid", {"id": "inv_1", "amount": 1250}, "")
    assert event.timestamp is not None and event.timestamp.isoformat() == "2026-01-02T03:04:05.678901+00:00"


def test_fastapi_route():
    fastapi = pytest.importorskip("fastapi")
    import httpx

    from posthorn.fastapi import webhook

    seen = []

    async def handle(event):
        seen.append(event.type)

    app = fastapi.FastAPI()
    app.add_route("/webhooks", webhook(verifier(), handle), methods=["POST"])

    async def run():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://receiver") as client:
            return [(await client.post("/webhooks", content=body, headers=HEADERS)).status_code for body in (PAID, PAID + b" ")]

    assert asyncio.run(run()) == [200, 401]
    assert seen == ["invoice.paid"]


def test_django_view():
    django = pytest.importorskip("django")
    from django.conf import settings

    if not settings.configured:
        settings.configure(SECRET_KEY="test", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__)
        django.setup()
    from django.test import RequestFactory

    from posthorn.django import webhook

    seen = []
    view = webhook(verifier(), lambda event: seen.append(event.type))
    post = lambda body: view(RequestFactory().post("/", data=body, content_type="application/json", headers=HEADERS))  # noqa: E731
    assert [post(PAID).status_code, post(PAID + b" ").status_code] == [200, 401]
    assert seen == ["invoice.paid"]


PRESETS = json.loads((Path(__file__).parents[3] / "domain/signature/testdata/presets.json").read_text())["vectors"]


@pytest.mark.parametrize("v", PRESETS, ids=[v["name"] for v in PRESETS])
def test_published_vectors_of_other_senders_pass(v):
    verifier = Verifier(v["secret"], preset=v["preset"], now=lambda: v["at"])
    verifier.check(v["headers"], v["body"].encode())
    with pytest.raises(SignatureError) as raised:
        verifier.check(v["headers"], v["body"].encode() + b" ")
    assert raised.value.code == "signature_mismatch"
    if v["at"]:
        with pytest.raises(SignatureError) as raised:
            Verifier(v["secret"], preset=v["preset"], now=lambda: v["at"] + 301).check(v["headers"], v["body"].encode())
        assert raised.value.code == "timestamp_too_old"


def test_an_endpoints_wire_settings_are_known():
    wire = {
        "body": "payload", "header_names": {"signature": "X-Convoy-Signature", "id": "X-Convoy-Idempotency-Key", "event": "X-Topic"},
        "signature": {"value": "t={ts},v1={hex}", "content": "{ts},{body}", "algorithm": "hmac-sha512"},
    }
    body = b'{"n": 1}'
    digest = hmac.new(b"a secret", b"1700000000," + body, "sha512").hexdigest()
    headers = {"x-convoy-signature": f"t=1700000000,v1={digest}", "X-Convoy-Idempotency-Key": "order-1", "X-Topic": "order.paid"}
    verifier = Verifier(["another", "a secret"], format="template", wire=wire, now=lambda: 1_700_000_000)
    got = verifier.verify(headers, body)
    assert (got.id, got.type, got.data) == ("order-1", "order.paid", {"n": 1})
    for change, code in (
        ({"x-convoy-signature": digest}, "signature_scheme_unknown"), ({"x-convoy-signature": ""}, "header_missing"),
        ({"x-convoy-signature": f"t=1699999000,v1={digest}"}, "timestamp_too_old"), ({"x-convoy-signature": f"t=1700000001,v1={digest}"}, "signature_mismatch"),
    ):
        with pytest.raises(SignatureError) as raised:
            verifier.verify(headers | change, body)
        assert raised.value.code == code
    with pytest.raises(SignatureError) as raised:
        Verifier("x", format="template")
    assert raised.value.code == "wire_template_missing"
    with pytest.raises(SignatureError) as raised:
        Verifier("x", preset="nobody")
    assert raised.value.code == "preset_unknown"
