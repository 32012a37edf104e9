import asyncio
import json

import httpx
import pytest

from posthorn import APIError, AsyncPosthorn, BatchError, ConnectionFailed, Posthorn

URL, KEY = "https://posthorn.example.com", "phk_x"


class Server:
    """Answers each request with the next of the responses: (status, body, headers)."""

    def __init__(self, *responses):
        self.responses, self.requests = responses, []

    def __call__(self, request):
        self.requests.append(request)
        response = self.responses[min(len(self.requests), len(self.responses)) - 1]
        if isinstance(response, Exception):
            raise response
        status, body, headers = response
        return httpx.Response(status, json=body, headers=headers)

    def client(self, **options):
        return Posthorn(URL, KEY, max_pause=0.01, http_client=httpx.Client(transport=httpx.MockTransport(self)), **options)

    def body(self, index):
        return json.loads(self.requests[index].content)


def problem(status, code, **more):
    return {"type": "/docs/errors", "title": "x", "status": status, "code": code, "detail": "What to do.", "request_id": "req_1"} | more


def test_an_emission_without_a_key_gets_one_and_keeps_it_when_it_is_repeated():
    server = Server((503, problem(503, "busy"), {"Retry-After": "0"}), (202, {"id": "evt_1"}, {}))
    assert server.client().emit({"type": "order.completed", "data": {"n": 1}})["id"] == "evt_1"
    assert len(server.requests) == 2 and server.body(0) == server.body(1)
    assert server.body(0)["idempotency_key"].startswith("sdk_")
    assert server.requests[0].headers["Authorization"] == "Bearer phk_x"
    assert server.requests[0].url.path == "/api/v1/events"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_has_a_key_is_repeated_after_an_error_of_the_server(status):
    server = Server((status, problem(status, "internal"), {}), (202, {"id": "evt_1"}, {}))
    assert server.client().emit({"type": "order.completed", "data": {}})["id"] == "evt_1"
    assert server.body(0) == server.body(1)


def test_an_error_has_its_code_fields_and_request_id():
    server = Server((400, problem(400, "invalid", errors=[{"field": "url", "code": "url_scheme", "detail": "Use https."}]), {}))
    with pytest.raises(APIError) as raised:
        server.client().create_endpoint({"url": "ftp://x"})
    e = raised.value
    assert (e.status, e.code, e.request_id, e.fields[0]["field"]) == (400, "invalid", "req_1", "url")


def test_what_is_not_safe_is_not_repeated_after_an_error_of_the_server():
    server = Server((502, None, {}))
    with pytest.raises(APIError):
        server.client().create_endpoint({"url": "https://example.com"})
    assert len(server.requests) == 1


def test_a_server_that_is_away_is_an_error_of_its_own_and_never_sent_means_safe():
    server = Server(httpx.ConnectError("refused"))
    with pytest.raises(ConnectionFailed):
        server.client(retries=2).create_endpoint({"url": "https://example.com"})
    assert len(server.requests) == 3


def test_lists_are_iterated_page_after_page():
    server = Server((200, {"data": [{"id": "dlv_1"}], "next_cursor": "c1"}, {}), (200, {"data": [{"id": "dlv_2"}], "next_cursor": None}, {}))
    posthorn = server.client(tenant="ten_1")
    assert [d["id"] for d in posthorn.iterate(posthorn.list_deliveries, status="failed")] == ["dlv_1", "dlv_2"]
    assert server.requests[0].url.path == "/api/v1/tenants/ten_1/deliveries"
    assert server.requests[1].url.params["cursor"] == "c1" and server.requests[1].url.params["status"] == "failed"


def test_a_batch_is_split_and_says_which_events_were_rejected():
    stored = [{"status": 202, "id": f"evt_{i}"} for i in range(1000)]
    rejected = {"status": 400, "code": "type_malformed", "detail": "No."}
    server = Server((202, {"results": stored}, {}), (207, {"results": [{"status": 202, "id": "evt_x"}, rejected]}, {}))
    with pytest.raises(BatchError) as raised:
        server.client().emit_all({"type": "a.b", "data": i} for i in range(1002))
    assert raised.value.rejected == [1001] and len(raised.value.results) == 1002
    assert len(server.body(0)["events"]) == 1000


def test_ids_that_would_name_another_path_are_rejected():
    with pytest.raises(ValueError):
        Server().client().get_event("..")


def test_the_asynchronous_client_does_the_same():
    server = Server((503, problem(503, "busy"), {}), (202, {"id": "evt_1"}, {}), (200, {"data": [{"id": "dlv_1"}], "next_cursor": None}, {}))

    async def run():
        async with AsyncPosthorn(URL, KEY, max_pause=0.01, http_client=httpx.AsyncClient(transport=httpx.MockTransport(server))) as posthorn:
            accepted = await posthorn.emit({"type": "a.b", "data": 1})
            return accepted["id"], [d["id"] async for d in posthorn.iterate(posthorn.list_deliveries)]

    assert asyncio.run(run()) == ("evt_1", ["dlv_1"])
