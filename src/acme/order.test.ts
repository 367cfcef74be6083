import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import type { Fetch } from "../upstream/callouts/fetch.ts";
import { AcmeServer, accountKey } from "./acme-server.ts";
import { order } from "./order.ts";

const SERVER = "https://acme.example";
const HOOK = "https://dns.example";

/** A server that offers dns-01, and a hook; `override`: what differs, by the path of a request. */
async function scene(override: Readonly<Record<string, () => Reply | Promise<Reply>>> = {}, replaces?: string) {
  const asked: string[] = [];
  const lines: string[] = [];
  const stop = new AbortController();
  const replies: Readonly<Record<string, () => Reply | Promise<Reply>>> = {
    [`${SERVER}/directory`]: () => ({
      body: { newNonce: `${SERVER}/nonce`, newAccount: `${SERVER}/account`, newOrder: `${SERVER}/new` },
    }),
    [`${SERVER}/nonce`]: () => ({}),
    [`${SERVER}/new`]: () => ({
      headers: ["location", `${SERVER}/order`],
      body: { authorizations: [`${SERVER}/authorization`], finalize: `${SERVER}/finalize` },
    }),
    [`${SERVER}/authorization`]: () => ({
      body: {
        status: asked.includes(`${SERVER}/challenge`) ? "valid" : "pending",
        identifier: { value: "shop.example" },
        challenges: [{ type: "dns-01", token: "t", url: `${SERVER}/challenge` }],
      },
    }),
    [`${SERVER}/order`]: () => ({ body: { status: "valid", certificate: `${SERVER}/certificate` } }),
    [`${SERVER}/certificate`]: () => ({ body: "PEM" }),
  };
  const fetch: Fetch = async (url) => {
    asked.push(url);
    const { status = 200, headers = [], body = {} } = (await (override[url] ?? replies[url])?.()) ?? {};
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return { status, headers: ["replay-nonce", "n", ...headers], body: Buffer.from(text) };
  };
  const key = await accountKey(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey);
  const settings = {
    directory: `${SERVER}/directory`,
    storage: "/nowhere",
    challenge: "dns-01",
    dns: { hook: { url: HOOK }, propagation: 0 },
  } as const;
  const ordered = order(
    { name: "shop.example", settings },
    {
      server: new AcmeServer(settings.directory, undefined, fetch, stop.signal),
      account: { key, url: `${SERVER}/accounts/1` },
      fetch,
      log: new LogOutput(parseLogFilter("info"), "text", (line) => lines.push(line)).logger("acme"),
      replaces,
      signal: stop.signal,
    },
  );
  return { asked, lines, stop, ordered };
}

interface Reply {
  readonly status?: number;
  readonly headers?: readonly string[];
  readonly body?: unknown;
}

test("a TXT record that cannot be removed is a warning: the order succeeds", async () => {
  const { asked, lines, ordered } = await scene({ [`${HOOK}/cleanup`]: () => ({ status: 500 }) });
  assert.equal((await ordered).cert, "PEM");
  assert.deepEqual(
    asked.filter((url) => url.startsWith(HOOK)),
    [`${HOOK}/present`, `${HOOK}/cleanup`],
  );
  assert.match(lines.join("\n"), /a TXT record was not removed.*_acme-challenge\.shop\.example\..*status 500/);
});

test("a hook that fails is asked to clean up, and its error is that of the order", async () => {
  const failing = { [`${HOOK}/present`]: () => ({ status: 403 }), [`${HOOK}/cleanup`]: () => ({ status: 500 }) };
  const { asked, ordered } = await scene(failing);
  await assert.rejects(ordered, /the DNS hook responds to present with status 403/);
  assert.ok(asked.includes(`${HOOK}/cleanup`) && !asked.includes(`${SERVER}/challenge`));
});

test("a hook that hangs is ended with the order, but still removes its record", async () => {
  const called = Promise.withResolvers<void>();
  const { asked, stop, ordered } = await scene({
    [`${HOOK}/present`]: () => {
      called.resolve();
      return new Promise<Reply>(() => {});
    },
  });
  await called.promise;
  stop.abort();
  await assert.rejects(ordered, /the DNS hook failed/);
  assert.equal(asked.at(-1), `${HOOK}/cleanup`);
});

test("the reasons of an authorization that fails are those of its challenges", async () => {
  const invalid = { type: "dns-01", token: "t", url: `${SERVER}/challenge`, error: { type: "x", detail: "no record" } };
  let reads = 0;
  const { asked, ordered } = await scene({
    [`${SERVER}/authorization`]: () => ({
      body: {
        status: reads++ === 0 ? "pending" : "invalid",
        identifier: { value: "shop.example" },
        challenges: [invalid],
      },
    }),
  });
  await assert.rejects(ordered, { message: "the validation of shop.example failed: x: no record" });
  assert.equal(asked.at(-1), `${HOOK}/cleanup`);
});

test("a server that says to come back at once is not asked without a pause", async () => {
  const asked = Promise.withResolvers<void>();
  let reads = 0;
  const made = await scene({
    [`${SERVER}/order`]: () => {
      reads++;
      asked.resolve();
      return { headers: ["retry-after", "0"], body: { status: "processing" } };
    },
  });
  const failed = assert.rejects(made.ordered);
  await asked.promise;
  // A timer of a tenth of the pause that starts with it: without a pause there would be many reads by then.
  await delay(20);
  assert.equal(reads, 1);
  made.stop.abort();
  await failed;
});

test("an order whose predecessor was replaced already is placed without it", async () => {
  let orders = 0;
  const { ordered } = await scene(
    {
      [`${SERVER}/new`]: () =>
        orders++ === 0
          ? { status: 409, body: { type: "urn:ietf:params:acme:error:alreadyReplaced" } }
          : {
              headers: ["location", `${SERVER}/order`],
              body: { authorizations: [], finalize: `${SERVER}/finalize` },
            },
    },
    "former",
  );
  assert.equal((await ordered).cert, "PEM");
  assert.equal(orders, 2);
});
