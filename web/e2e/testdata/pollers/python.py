"""A program of pollers_test.go with Svix's library for Python, as it comes from PyPI: see node.mjs."""
import base64
import json
import os
import time

import httpx
from svix import models
from svix.api import Svix, SvixOptions
from svix.api.message_poller import MessagePollerConsumerPollOptions
from svix.api_internal.message_pollerv2 import MessagePollerv2ConsumerPollOptions
from svix.autoconfig import AutoConfigConsumer
from svix.exceptions import HttpError

url, key = os.environ["SVIX_URL"], os.environ["SVIX_TOKEN"]
app, feed, name = os.environ["SVIX_APP"], os.environ["SVIX_FEED"], os.environ["SVIX_CONSUMER"]
left = int(os.environ["SVIX_TOTAL"])


def patient(call):
    """Repeats a call while the server is away."""
    while True:
        try:
            return call()
        except HttpError as e:
            if e.status_code < 500:
                raise
        except (httpx.TransportError, ValueError):
            pass  # no connection, or a proxy's response that is no JSON, which the library tries to read
        time.sleep(0.1)


def take(messages):
    """Prints messages, or waits a moment if there are none."""
    for m in messages:
        print(m.id, flush=True)
    if not messages:
        time.sleep(0.05)
    return len(messages)


if os.environ["SVIX_POLLER"] == "1":
    poller, iterator = Svix(key, SvixOptions(server_url=url)).message.poller, None
    while left > 0:
        options = MessagePollerConsumerPollOptions(limit=100, iterator=iterator)
        page = patient(lambda: poller.consumer_poll(app, feed, name, options))
        left -= take(page.data)
        iterator = page.iterator
else:
    content = {"aid": app, "eid": feed, "surl": url, "esec": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "tok": key}
    token = "auto_v1_" + base64.b64encode(json.dumps(content).encode()).decode()
    consumer = AutoConfigConsumer(token, models.SinkInCommon())
    if not hasattr(consumer, "_httpx_client"):
        consumer._httpx_client = None  # the library reads it before it sets it
    while left > 0:
        page = patient(lambda: consumer.receive(name, MessagePollerv2ConsumerPollOptions(limit=100)))
        left -= take(page.data)
        if page.data:
            patient(lambda: consumer.commit(name, page.data[-1].offset))
