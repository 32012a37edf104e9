"""Emits an event, lists and replays its delivery, and verifies what arrives."""

import json
import os
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from posthorn import Posthorn, SignatureError, Verifier, Webhook

verifier: Verifier | None = None
arrived: queue.Queue[Webhook] = queue.Queue()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            if verifier is None:
                raise SignatureError("not_ready", "The endpoint's secret is not known yet.")
            event = verifier.verify(dict(self.headers), body)
        except SignatureError:
            self.respond(401)
            return
        if not event.challenge:
            arrived.put(event)
        self.respond(200, event.challenge)

    def respond(self, status: int, text: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    global verifier
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Posthorn(os.environ["POSTHORN_URL"], os.environ["POSTHORN_API_KEY"]) as posthorn:
        endpoint = posthorn.create_endpoint(
            {"url": f"http://127.0.0.1:{server.server_port}", "event_types": ["order.*"], "verification": "simple"}
        )
        try:
            verifier = Verifier(endpoint["secret"])
            while posthorn.get_endpoint(endpoint["id"])["status"] != "active":
                time.sleep(0.1)
            accepted = posthorn.emit({"type": "order.completed", "data": {"order_id": "ord_1", "total": 4200}})
            print("emitted", accepted["id"])
            event = arrived.get(timeout=60)
            print("verified", event.id, json.dumps(event.data))
            while True:
                delivery = next(posthorn.iterate(posthorn.list_event_deliveries, accepted["id"]))
                if delivery["status"] == "delivered":
                    break
                time.sleep(0.1)
            print("listed", delivery["id"], delivery["status"])
            again = posthorn.replay_delivery(delivery["id"], {"reason": "to see it again"})
            print("replayed as", again["id"])
            print("verified", arrived.get(timeout=60).id)
            print("batch", len(posthorn.emit_all({"type": "invoice.paid", "data": {"n": n}} for n in range(1500))))
        finally:
            posthorn.delete_endpoint(endpoint["id"])


main()
