// Verifies requests with the libraries of Cloudflare.
import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { component, verifySignature, webcrypto } from "http-message-sig";
import { verify } from "web-bot-auth";
import { verifierFromJWK } from "web-bot-auth/crypto";

const { requests, tenant, platform } = JSON.parse(readFileSync(0));
const imported = (jwk) => crypto.subtle.importKey("jwk", { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, "Ed25519", false, ["verify"]);
const keys = { webhook: [tenant, await imported(tenant)], bot: [platform, await imported(platform)] };
const botAuth = await verifierFromJWK(platform);

// A request is read whole, with both signatures; the label says which is verified.
const holds = async (request, label, requiredComponents) => {
  const fields = Object.entries(request.headers).flatMap(([name, values]) => values.map((value) => ({ name: name.toLowerCase(), value })));
  const digest = "sha-256=:" + createHash("sha256").update(request.body).digest("base64") + ":";
  if (request.headers["Content-Digest"][0] !== digest) return false;
  const [jwk, key] = keys[label];
  try {
    await verifySignature({ kind: "request", method: request.method, targetUri: request.url, fields }, {
      label,
      policy: { algorithms: ["ed25519"], requiredComponents, requiredParameters: ["created", "keyid"], maxAge: 300, clockSkew: 5 },
      resolveVerifier: (candidate) => {
        if (candidate.parameters.keyid !== jwk.kid) throw new Error("another key");
        return webcrypto.verifier(key);
      },
    });
    return true;
  } catch {
    return false;
  }
};
const webhook = (request) => holds(request, "webhook", ["@method", "@authority", "@path", "@query", "content-digest", "webhook-id"]);
const bot = (request) => holds(request, "bot", ["@authority", component("signature-agent", { key: "bot" })]);

// The published version of this library reads one signature, and a whole field where one member of it is named.
const byBotAuth = async (request) => {
  const headers = {};
  for (const [name, values] of Object.entries(request.headers)) headers[name] = values.join(", ");
  for (const name of ["Signature", "Signature-Input"])
    headers[name] = headers[name].split(/, (?=\w+=[:(])/).find((member) => member.startsWith("bot="));
  headers["Signature-Agent"] = headers["Signature-Agent"].replace(/^bot=/, "");
  try {
    await verify({ method: request.method, url: request.url, headers }, botAuth);
    return true;
  } catch {
    return false;
  }
};

const counts = { webhook: 0, bot: 0, "web-bot-auth": 0, forged: 0 };
for (const request of requests) {
  if (await webhook(request)) counts.webhook++;
  if (await bot(request)) counts.bot++;
  if (await byBotAuth(request)) counts["web-bot-auth"]++;
  for (const forged of [{ ...request, url: request.url.replace("/hook/", "/other/") }, { ...request, body: request.body + " " }])
    if (await webhook(forged)) counts.forged++;
}
console.log(Object.entries(counts).map((entry) => entry.join(" ")).join(", "));
