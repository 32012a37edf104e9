// The scenario of svix_test.go with Svix's library for Node, of either major line, as it comes from npm.
import { createServer } from "node:http";
import { MessageStatus, Svix, Webhook, messageInRaw } from "svix";

const { SVIX_URL, SVIX_TOKEN, SVIX_LINE, SVIX_MESSAGES } = process.env;
const total = Number(SVIX_MESSAGES);
const second = SVIX_LINE === "2";
const check = (ok, what) => { if (!ok) throw new Error("not so: " + what); };

let webhooks = [];
const arrived = new Map(); // verified arrivals by message id
const receiver = createServer((req, res) => {
  const chunks = [];
  req.on("data", (c) => chunks.push(c));
  req.on("end", () => {
    const body = Buffer.concat(chunks).toString();
    const good = webhooks.filter((w) => { try { w.verify(body, req.headers); return true; } catch { return false; } }).length;
    res.statusCode = good > 0 ? 204 : 401;
    if (good > 0) {
      const id = req.headers["svix-id"];
      arrived.set(id, { count: (arrived.get(id)?.count ?? 0) + 1, good, body });
    }
    res.end();
  });
});
await new Promise((r) => receiver.listen(0, "127.0.0.1", r));
const url = `http://127.0.0.1:${receiver.address().port}/hooks`;
const until = async (what, yes) => {
  for (const end = Date.now() + 240_000; !yes();) {
    if (Date.now() > end) throw new Error("in vain: " + what);
    await new Promise((r) => setTimeout(r, 20));
  }
};

const svix = new Svix(SVIX_TOKEN, { serverUrl: SVIX_URL });
const uid = "node-" + SVIX_LINE;
const app = await svix.application.create({ name: "Node", uid, metadata: { plan: "gold" }, [second ? "throttleRate" : "rateLimit"]: 900 });
check(app.metadata.plan === "gold" && app[second ? "throttleRate" : "rateLimit"] === 900, "an application is kept");
check((await svix.application.get(uid)).id === app.id, "an application is found by its uid");
check((await svix.application.getOrCreate({ name: "Node", uid })).id === app.id, "getOrCreate finds it");
const types = second ? { eventTypes: ["invoice.paid"] } : { filterTypes: ["invoice.paid"] };
const endpoint = await svix.endpoint.create(uid, { url, uid: "hook", description: "Node", metadata: { team: "a" }, ...types });
check((second ? endpoint.eventTypes : endpoint.filterTypes)[0] === "invoice.paid" && !endpoint.disabled, "the endpoint is as it was asked for");
check((await svix.endpoint.list(uid)).data.length === 1, "the endpoint is listed");
const secret = (await svix.endpoint.getSecret(uid, "hook")).key;
webhooks = [new Webhook(secret)];

const ids = [];
let n = 0;
await Promise.all(Array.from({ length: 20 }, async () => {
  while (n < total) {
    const m = await svix.message.create(uid, { eventType: "invoice.paid", payload: { n: n++, text: "ü <&>" } });
    ids.push(m.id);
  }
}));
check(ids.length === total, "all are acknowledged");
await until("every message arrives and verifies", () => ids.every((id) => arrived.has(id)));
check([...arrived.values()].every((a) => JSON.parse(a.body).text === "ü <&>"), "the body is the payload");

// An attempt is on record a moment after its answer.
let attempts = 0;
for (const end = Date.now() + 240_000; attempts < total;) {
  if (Date.now() > end) throw new Error(`in vain: attempts are listed: ${attempts}`);
  attempts = 0;
  for (let iterator = null, done = false; !done;) {
    const page = await svix.messageAttempt.listByEndpoint(uid, endpoint.id, { limit: 100, iterator });
    attempts += page.data.length;
    ({ iterator, done } = page);
  }
}
const [attempt] = (await svix.messageAttempt.listByMsg(uid, ids[0])).data;
check(attempt.msgId === ids[0] && attempt.status === 0 && attempt.responseStatusCode === 204, "the attempt succeeded");
check((await svix.messageAttempt.get(uid, ids[0], attempt.id)).id === attempt.id, "an attempt is read");
check((await svix.message.get(uid, ids[0], { withContent: true })).payload.text === "ü <&>", "a message is read");

await svix.messageAttempt.resend(uid, ids[0], endpoint.id);
await until("the message arrives again under its id", () => arrived.get(ids[0]).count >= 2);
const failed = await svix.messageAttempt.listByEndpoint(uid, endpoint.id, { status: MessageStatus.Fail });
check(failed.data.length === 0, "no attempt failed");
const two = await svix.message.list(uid, { eventTypes: ["invoice.paid", "invoice.lost"], limit: 3 });
check(two.data.length === 3, "messages of two types are listed");
const raw = await svix.message.create(uid, messageInRaw("invoice.paid", '{"n" : 1.50, "text": "ü <&>"}'));
await until("a raw payload arrives", () => arrived.has(raw.id));
check(arrived.get(raw.id).body === '{"n" : 1.50, "text": "ü <&>"}', "byte for byte");
const example = await svix.endpoint.sendExample(uid, endpoint.id, { eventType: "invoice.paid" });
await until("an example arrives", () => arrived.has(example.id));
const task = await svix.endpoint.recover(uid, endpoint.id, { since: new Date(Date.now() - 3600_000) });
check(task.task === "endpoint.recover", "a task recovers");

await svix.endpoint.rotateSecret(uid, endpoint.id, {});
const fresh = (await svix.endpoint.getSecret(uid, endpoint.id)).key;
check(fresh !== secret, "the secret is another");
webhooks = [new Webhook(secret), new Webhook(fresh)];
// A worker that has read the endpoint before the rotation can sign with the old secret a moment longer.
for (let good = 0, end = Date.now() + 240_000; good !== 2;) {
  if (Date.now() > end) throw new Error("in vain: both secrets verify while they overlap");
  const rotated = await svix.message.create(uid, { eventType: "invoice.paid", payload: { rotated: true } });
  await until("a message arrives after the rotation", () => arrived.has(rotated.id));
  good = arrived.get(rotated.id).good;
}

const link = await svix.authentication.appPortalAccess(uid, {});
const opened = await fetch(link.url, { redirect: "manual" });
check(opened.status >= 300 && opened.status < 400 && opened.headers.get("set-cookie"), "the portal opens: " + opened.status);
try {
  await svix.application.get("nobody");
  check(false, "an unknown application is an error");
} catch (e) {
  check(e.code === 404, "it is 404: " + e);
}
await svix.eventType.create({ name: "invoice.paid." + uid, description: "An invoice was paid" });
check((await svix.eventType.get("invoice.paid." + uid)).description === "An invoice was paid", "an event type is read");
await svix.endpoint.delete(uid, "hook");
await svix.application.delete(uid);
receiver.close();
console.log("scenario done");
process.exit(0);
