"""The scenario of svix_test.go with Svix's library for Python, of either major line, as it comes from PyPI."""
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

from svix.api import AppPortalAccessIn  # noqa: E402

link = svix.authentication.app_portal_access(uid, AppPortalAccessIn())
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
check(browser.open(link.url).status == 200, "the portal opens")
svix.event_type.create(EventTypeIn(name="invoice.paid." + uid, description="An invoice was paid"))
check(svix.event_type.get("invoice.paid." + uid).description == "An invoice was paid", "an event type is read")
svix.endpoint.delete(uid, "hook")
svix.application.delete(uid)
print("scenario done")
