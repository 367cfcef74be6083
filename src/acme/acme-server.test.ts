import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import type { Fetch } from "../upstream/callouts/fetch.ts";
import { type AccountKey, AcmeError, AcmeServer, accountKey } from "./acme-server.ts";

const DIRECTORY = "https://acme.example/directory";
const NEVER = new AbortController().signal;

/** A server whose answers are released one by one, and what it was asked. */
function heldServer() {
  const asked: string[] = [];
  const held: (() => void)[] = [];
  let most = 0;
  const fetch: Fetch = async (url) => {
    asked.push(url);
    await new Promise<void>((resolve) => {
      held.push(resolve);
      most = Math.max(most, held.length);
    });
    const body = { newNonce: "n", newAccount: "a", newOrder: "o", renewalInfo: "https://acme.example/renewal" };
    return { status: 200, headers: [], body: Buffer.from(JSON.stringify(body)) };
  };
  const release = async (): Promise<void> => {
    while (held.length > 0) {
      held.shift()?.();
      await new Promise(setImmediate);
    }
  };
  return { asked, release, most: () => most, server: new AcmeServer(DIRECTORY, undefined, fetch, NEVER) };
}

test("a thousand certificates that ask at once read the directory once, and few at a time ask further", async () => {
  const { asked, release, most, server } = heldServer();
  const asking = Array.from({ length: 1000 }, async (_, i) => {
    await server.directory();
    await server.get(`https://acme.example/renewal/${i}`);
  });
  await new Promise(setImmediate);
  assert.deepEqual(asked, [DIRECTORY]);
  await release();
  await Promise.all(asking);
  assert.equal(asked.length, 1001);
  assert.equal(new Set(asked).size, 1001);
  assert.equal(most(), 4);
});

test("a directory that cannot be read is not asked for again at once, but later", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let asked = 0;
  const refusing: Fetch = async () => {
    asked++;
    return { status: 404, headers: [], body: Buffer.from("not here") };
  };
  const server = new AcmeServer(DIRECTORY, undefined, refusing, NEVER);
  for (let i = 0; i < 3; i++) await assert.rejects(server.directory(), AcmeError);
  assert.equal(asked, 1);
  t.mock.timers.tick(60_000);
  await assert.rejects(server.directory(), /status 404/);
  assert.equal(asked, 2);
});

const URLS = { newNonce: "https://acme.example/nonce", newAccount: "a", newOrder: "https://acme.example/order" };
const NONCE = ["replay-nonce", "n0"];

const keyOf = (): Promise<AccountKey> => accountKey(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey);

/** A server with a directory and nonces, whose answers to signed requests are these, one after the other; the last one stays. */
function scripted(...answers: { status: number; headers?: string[]; body: string }[]) {
  const nonces: string[] = [];
  const fetch: Fetch = async (url, { body }) => {
    if (url === DIRECTORY) return { status: 200, headers: [], body: Buffer.from(JSON.stringify(URLS)) };
    if (url === URLS.newNonce) return { status: 204, headers: NONCE, body: Buffer.of() };
    const { protected: head } = JSON.parse(Buffer.from(body ?? []).toString()) as { protected: string };
    nonces.push((JSON.parse(Buffer.from(head, "base64url").toString()) as { nonce: string }).nonce);
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === undefined) throw new Error("the response is longer than 1048576 bytes");
    return { status: answer.status, headers: answer.headers ?? [], body: Buffer.from(answer.body) };
  };
  return { nonces, server: new AcmeServer(DIRECTORY, undefined, fetch, NEVER) };
}

const problem = (type: string, more: object = {}): string =>
  JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail: "why", ...more });

test("a rejected nonce is replaced by that of the rejection, each is used once, and the tries are limited", async () => {
  const bad = (nonce: string) => ({ status: 400, headers: ["replay-nonce", nonce], body: problem("badNonce") });
  const key = await keyOf();
  const good = scripted(bad("n1"), { status: 200, body: "{}" });
  await good.server.post(URLS.newOrder, key, "account", {});
  await good.server.post(URLS.newOrder, key, "account", {});
  assert.deepEqual(good.nonces, ["n0", "n1", "n0"]);
  const never = scripted(bad("n1"));
  await assert.rejects(never.server.post(URLS.newOrder, key, "account", {}), { type: "badNonce", status: 400 });
  assert.equal(never.nonces.length, 10);
});

test("an error has its type, its reasons for single names, and when to come back; its text is limited", async () => {
  const subproblems = [{ type: "urn:ietf:params:acme:error:dns", detail: "no such name" }, { type: "caa" }, 7];
  const refused = { status: 429, headers: ["retry-after", "120"], body: problem("rateLimited", { subproblems }) };
  const late = {
    status: 503,
    headers: ["retry-after", new Date(Date.now() + 3_600_000).toUTCString()],
    body: "<html>",
  };
  const past = { status: 503, headers: ["retry-after", new Date(0).toUTCString()], body: "[]" };
  const odd = { status: 500, headers: ["retry-after", "soon"], body: problem("x", { detail: "a".repeat(100_000) }) };
  const { server, nonces } = scripted(refused, late, past, odd);
  const key = await keyOf();
  const next = (): Promise<AcmeError> =>
    server.post(URLS.newOrder, key, "account", {}).then(
      () => assert.fail("no error"),
      (error: unknown) => error as AcmeError,
    );
  const { type, status, message, retryAfter } = await next();
  assert.deepEqual([type, status, message], ["rateLimited", 429, "rateLimited: why; no such name; caa"]);
  assert.equal(retryAfter, 120_000);
  const [later, passed, huge] = [await next(), await next(), await next()];
  assert.equal(later.message, "the server responds with status 503");
  assert.ok((later.retryAfter ?? 0) > 3_500_000 && (later.retryAfter ?? 0) <= 3_600_000, `${later.retryAfter}`);
  assert.equal(passed.retryAfter, 0);
  assert.deepEqual([huge.retryAfter, huge.message.length], [undefined, 1000]);
  // A signed request is sent once, whatever fails.
  assert.equal(nonces.length, 4);
});

test("a response that is too long, that is not JSON, or whose URL is wrong says so", async () => {
  const key = await keyOf();
  await assert.rejects(scripted().server.post(URLS.newOrder, key, "account", {}), {
    message: "no response from acme.example: the response is longer than 1048576 bytes",
  });
  const page = scripted({ status: 200, headers: ["content-type", "text/html"], body: "<html>" }).server;
  assert.equal((await page.post(URLS.newOrder, key, "account", {})).body, undefined);
  const html: Fetch = async () => ({ status: 200, headers: [], body: Buffer.from("<html>") });
  await assert.rejects(
    new AcmeServer(DIRECTORY, undefined, html, NEVER).directory(),
    /is not the directory of an ACME server/,
  );
  await assert.rejects(scripted().server.post("not a URL", key, "account", {}), /no response from not a URL: /);
});
