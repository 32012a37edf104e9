// A program of pollers_test.go with Svix's library for Node, as it comes from npm: it reads a feed with the first or the
// second version of pollers, and prints the id of each message before it confirms it.
import { AutoConfigConsumer, Svix } from "svix";

const { SVIX_URL, SVIX_TOKEN, SVIX_APP, SVIX_FEED, SVIX_CONSUMER, SVIX_POLLER } = process.env;
let left = Number(process.env.SVIX_TOTAL);

// patient repeats a call while the server is away.
const patient = async (call) => {
  for (;;) {
    try {
      return await call();
    } catch (e) {
      if (e.code && e.code < 500) throw e;
      await new Promise((r) => setTimeout(r, 100));
    }
  }
};

// take prints messages, or waits a moment if there are none.
const take = async (messages) => {
  for (const m of messages) console.log(m.id);
  left -= messages.length;
  if (messages.length === 0) await new Promise((r) => setTimeout(r, 50));
};

if (SVIX_POLLER === "1") {
  const { poller } = new Svix(SVIX_TOKEN, { serverUrl: SVIX_URL }).message;
  for (let iterator = null; left > 0;) {
    const page = await patient(() => poller.consumerPoll(SVIX_APP, SVIX_FEED, SVIX_CONSUMER, { iterator, limit: 100 }));
    await take(page.data);
    ({ iterator } = page);
  }
} else {
  const content = { aid: SVIX_APP, eid: SVIX_FEED, surl: SVIX_URL, esec: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", tok: SVIX_TOKEN };
  const consumer = new AutoConfigConsumer("auto_v1_" + Buffer.from(JSON.stringify(content)).toString("base64"), {});
  while (left > 0) {
    const { data } = await patient(() => consumer.receive(SVIX_CONSUMER, { limit: 100 }));
    await take(data);
    if (data.length > 0) await patient(() => consumer.commit(SVIX_CONSUMER, data[data.length - 1].offset));
  }
}
