"""The scenario of svix_test.go with Svix's library for Python, of either major line, as it comes from PyPI."""
import base64
import datetime
import json
import os
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from svix.api import ApplicationIn, EndpointIn, EndpointSecretRotateIn, EventTypeIn, MessageIn, RecoverIn, Svix, SvixOptions
from svix.webhooks import Webhook, WebhookVerificationError

LINE, TOTAL = os.environ["SVIX_LINE"], int(os.environ["SVIX_MESSAGES"])
webhooks: list = []
arrived: dict = {}
lock = threading.Lock()


def check(ok, what):
    if not ok:
        raise SystemExit("not so: " + what)


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        good = 0
        for w in webhooks:
            try:
                w.verify(body, dict(self.headers.items()))
                good += 1
            except WebhookVerificationError:
                pass
        if good:
            with lock:
                arrived.setdefault(self.headers["svix-id"], []).append((good, body))
        self.send_response(204 if good else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def until(what, yes):
    end = time.monotonic() + 240
    while not yes():
        check(time.monotonic() < end, "in time: " + what)
        time.sleep(0.02)


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_address[1]}/hooks"

svix = Svix(os.environ["SVIX_TOKEN"], SvixOptions(server_url=os.environ["SVIX_URL"]))
uid = "python-" + LINE
app = svix.application.create(ApplicationIn(name="Python", uid=uid))
check(svix.application.get(uid).id == app.id, "an application is found by its uid")
types = {"event_types": ["invoice.paid"]} if LINE == "2" else {"filter_types": ["invoice.paid"]}
endpoint = svix.endpoint.create(uid, EndpointIn(url=url, uid="hook", description="Python", **types))
shown = endpoint.event_types if LINE == "2" else endpoint.filter_types
check(shown == ["invoice.paid"] and not endpoint.disabled, "the endpoint is as it was asked for")
secret = svix.endpoint.get_secret(uid, "hook").key
webhooks = [Webhook(secret)]


def send(n):
    return svix.message.create(uid, MessageIn(event_type="invoice.paid", payload={"n": n, "text": "\u00fc <&>"})).id


with ThreadPoolExecutor(8) as pool:
    ids = list(pool.map(send, range(TOTAL)))
until("every message arrives and verifies", lambda: all(i in arrived for i in ids))
check(json.loads(arrived[ids[0]][0][1])["text"] == "\u00fc <&>", "the body is the payload")

attempts = svix.message_attempt.list_by_msg(uid, ids[0]).data
check(attempts[0].msg_id == ids[0] and int(attempts[0].status) == 0, "the attempt succeeded")
check(len(svix.message_attempt.list_by_endpoint(uid, endpoint.id).data) > 0, "attempts are listed")
svix.message_attempt.resend(uid, ids[0], endpoint.id)
until("the message arrives again under its id", lambda: len(arrived[ids[0]]) >= 2)
since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
check(svix.endpoint.recover(uid, endpoint.id, RecoverIn(since=since)).id != "", "a task recovers")

svix.endpoint.rotate_secret(uid, endpoint.id, EndpointSecretRotateIn())
fresh = svix.endpoint.get_secret(uid, endpoint.id).key
check(fresh != secret, "the secret is another")
webhooks = [Webhook(secret), Webhook(fresh)]


def both_verify():
    """A worker that has read the endpoint before the rotation can sign with the old secret a moment longer."""
    rotated = svix.message.create(uid, MessageIn(event_type="invoice.paid", payload={"rotated": True})).id
    until("a message arrives after the rotation", lambda: rotated in arrived)
    return arrived[rotated][0][0] == 2


until("both secrets verify while they overlap", both_verify)

from svix.api import (  # noqa: E402
    AppPortalAccessIn, ApplicationPatch, EndpointHeadersIn, EndpointHeadersPatchIn, EndpointPatch, EventExampleIn,
    EventTypeDeleteOptions, EventTypePatch, MessageAttemptListByEndpointOptions, MessageAttemptListByMsgOptions, MessageListOptions,
    ReplayIn,
)
from svix.api.message import message_in_raw  # noqa: E402
from svix.api.message_poller import MessagePollerPollOptions  # noqa: E402
from svix.autoconfig import AutoConfigConsumer  # noqa: E402
from svix import models  # noqa: E402
from svix.exceptions import HttpError  # noqa: E402

link = svix.authentication.app_portal_access(uid, AppPortalAccessIn())
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
check(browser.open(link.url).status == 200, "the portal opens")


def either(of, *names):
    """The method of an object that was renamed between the lines."""
    return next(getattr(of, n) for n in names if hasattr(of, n))


def refused(what, call):
    try:
        call()
    except HttpError as e:
        check(e.status_code == 400 and e.code == "not_supported", f"{what} is refused: {e.status_code} {e.code}")
        return
    check(False, what + " is refused")


# One call of each row of docs/svix.md that the calls above have left out.
second = LINE == "2"
svix.health.get()
urllib.request.urlopen(os.environ["SVIX_URL"] + "/api/v1/health/ping")
check(any(a.uid == uid for a in svix.application.list().data), "applications are listed")
gold = svix.application.patch(uid, ApplicationPatch(metadata={"plan": "gold"}))
check(gold.metadata == {"plan": "gold"}, "an application keeps its metadata")
either(svix.application, "upsert", "update")(uid, ApplicationIn(name="Python", uid=uid, metadata={"plan": "gold"}))
check(len(svix.endpoint.list(uid).data) == 1 and svix.endpoint.get(uid, "hook").id == endpoint.id, "the endpoint is found")
svix.endpoint.patch(uid, "hook", EndpointPatch(description="Patched"))
update = models.EndpointUpsertIn if second else models.EndpointUpdate
either(svix.endpoint, "upsert", "update")(uid, "hook", update(url=url, uid="hook", **types))
either(svix.endpoint, "set_headers", "update_headers")(uid, "hook", EndpointHeadersIn(headers={"X-Team": "a"}))
svix.endpoint.patch_headers(uid, "hook", EndpointHeadersPatchIn(headers={"X-Region": "eu"}))
check(svix.endpoint.get_headers(uid, "hook").headers == {"X-Team": "a", "X-Region": "eu"}, "headers are kept")
svix.endpoint.transformation.get(uid, "hook") if second else svix.endpoint.transformation_get(uid, "hook")
check(svix.endpoint.get_stats(uid, "hook").success >= TOTAL, "attempts are counted")

kind = "invoice.paid." + uid
schema = {"type": "object", "properties": {"total": {"type": "number"}}, "example": {"total": 7}}
svix.event_type.create(EventTypeIn(name=kind, description="An invoice was paid", schemas={"1": schema}))
check(svix.event_type.get(kind).description == "An invoice was paid", "an event type is read")
check(any(t.name == kind for t in svix.event_type.list().data), "event types are listed")
svix.event_type.patch(kind, EventTypePatch(description="Paid"))
update = {"description": "Is paid", "schemas": {"1": schema}}
svix.event_type.upsert(kind, models.EventTypeUpsertIn(**update)) if second else svix.event_type.update(kind, models.EventTypeUpdate(**update))
example = svix.endpoint.send_example(uid, "hook", EventExampleIn(event_type=kind))
until("the example arrives", lambda: example.id in arrived)
check(json.loads(arrived[example.id][0][1]) == {"total": 7}, "the example is the schema's")

first = svix.message.create(uid, MessageIn(event_type="invoice.paid", event_id="order.1", payload={"n": 1}))
until("a message arrives under its own id, not its eventId", lambda: first.id in arrived)
check(svix.message.get(uid, "order.1").id == first.id, "a message is found by its eventId")
two = MessageListOptions(event_types=["invoice.paid", kind], limit=5)
check(first.id in [m.id for m in svix.message.list(uid, two).data], "messages of two types are listed")
until("its attempt is listed", lambda: len(svix.message_attempt.list_by_msg(uid, first.id).data) > 0)
one = svix.message_attempt.list_by_msg(uid, first.id, MessageAttemptListByMsgOptions(endpoint_id=endpoint.id, status_code_class=200)).data
check(len(one) == 1 and svix.message_attempt.get(uid, first.id, one[0].id).id == one[0].id, "an attempt is read")
failed = MessageAttemptListByEndpointOptions(status=models.MessageStatus.FAIL, limit=250)
check(svix.message_attempt.list_by_endpoint(uid, endpoint.id, failed).data == [], "no attempt failed")
check(len(svix.message_attempt.list_attempted_messages(uid, endpoint.id).data) > 0, "messages of the endpoint are listed")
check(svix.message_attempt.list_attempted_destinations(uid, first.id).data[0].id == endpoint.id, "endpoints of the message are listed")
raw = svix.message.create(uid, message_in_raw("invoice.paid", '{"n" : 1.50}'))
until("a raw payload arrives", lambda: raw.id in arrived)
check(arrived[raw.id][0][1] == b'{"n" : 1.50}', "byte for byte")
task = svix.endpoint.replay_missing(uid, endpoint.id, ReplayIn(since=since))
check(svix.background_task.get(task.id).id == task.id, "a task is read")
svix.message.expunge_content(uid, first.id)

# A feed, which Posthorn's own API creates, is read by both versions of pollers.
began = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=1)
urllib.request.urlopen(urllib.request.Request(
    os.environ["SVIX_URL"].removesuffix("/svix") + f"/api/v1/tenants/{uid}/endpoints",
    json.dumps({"kind": "feed", "external_id": "feed"}).encode(),
    {"Authorization": "Bearer " + os.environ["SVIX_TOKEN"], "Content-Type": "application/json"},
))
fed = svix.message.create(uid, MessageIn(event_type="invoice.paid", payload={"n": 2})).id
poller, consumer_name = svix.message.poller, "warehouse"
since_began = MessagePollerPollOptions(after=began)
until("the poller has the message", lambda: fed in [m.id for m in poller.poll(uid, "feed", since_began).data])
poller.consumer_poll(uid, "feed", consumer_name)
poller.consumer_seek(uid, "feed", consumer_name, models.PollingEndpointConsumerSeekIn(after=began))
until("the consumer has the message", lambda: fed in [m.id for m in poller.consumer_poll(uid, "feed", consumer_name).data])
content = {"aid": uid, "eid": "feed", "surl": os.environ["SVIX_URL"], "esec": secret, "tok": os.environ["SVIX_TOKEN"]}
auto = AutoConfigConsumer("auto_v1_" + base64.b64encode(json.dumps(content).encode()).decode(), models.SinkInCommon())
auto._httpx_client = getattr(auto, "_httpx_client", None)  # the library reads it before it sets it
until("the second version has the message", lambda: fed in [m.id for m in auto.receive("second").data])
auto.commit("second", next(m.offset for m in auto.receive("second").data if m.id == fed))
check(fed not in [m.id for m in auto.receive("second").data], "a message that was committed does not come again")
refused("a subscription", auto.subscribe)

soon = since + datetime.timedelta(minutes=1)
refused("a list of tasks", lambda: svix.background_task.list())
refused("statistics of event types", lambda: svix.statistics.aggregate_event_types())
refused("statistics of applications", lambda: svix.statistics.aggregate_app_stats(models.AppUsageStatsIn(since=since, until=soon)))
refused("expiry of all tokens", lambda: svix.authentication.expire_all(uid, models.ApplicationTokenExpireIn()))
refused("an import of OpenAPI", lambda: svix.event_type.import_openapi(models.EventTypeImportOpenApiIn(spec={})))
refused("integrations", lambda: svix.integration.list(uid))
refused("an integration", lambda: svix.integration.create(uid, models.IntegrationIn(name="x")))
refused("expunging all", lambda: svix.message.expunge_all_contents(uid))
refused("a replay of many", lambda: svix.endpoint.bulk_replay(uid, "hook", models.BulkReplayIn(since=since)))
refused("operational webhooks", lambda: svix.operational_webhook.endpoint.list())
refused("an operational webhook", lambda: svix.operational_webhook.endpoint.create(models.OperationalWebhookEndpointIn(url=url)))
refused("streams", lambda: svix.streaming.stream.list())
refused("a stream", lambda: svix.streaming.stream.create(models.StreamIn(name="x")))
refused("an export", lambda: svix.environment.export())
refused("an import", lambda: svix.environment.import_(models.EnvironmentIn(version=1, created_at=since)))
refused("expunging an attempt", lambda: svix.message_attempt.expunge_content(uid, first.id, one[0].id))
patch = models.EndpointTransformationPatch(enabled=False)
refused("a transformation", lambda: svix.endpoint.transformation.patch(uid, "hook", patch) if second else svix.endpoint.patch_transformation(uid, "hook", patch))

svix.event_type.delete(kind, EventTypeDeleteOptions(expunge=True))
svix.authentication.logout()
svix.endpoint.delete(uid, "hook")
svix.application.delete(uid)
print("scenario done")
