import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { OwnSockets } from "../../base/own-sockets.ts";
import { checkConfig } from "../../config/check.ts";
import { Egress } from "../../net/egress.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { type MissingDocument, ResourceStore, shownUrl } from "./store.ts";

async function serve(listener: RequestListener): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const KEYS = '{"keys":[{"kty":"EC"}]}';

const accepting = (tell: () => void) => async (): Promise<boolean> => {
  tell();
  return true;
};

async function problemOf(listener: RequestListener): Promise<string> {
  await using server = await serve(listener);
  const store = new ResourceStore(ANYWHERE);
  await store.fetch([server.url]);
  const resource = store.resources.get(server.url);
  return resource !== undefined && "problem" in resource ? resource.problem : "none";
}

test("documents are fetched once, even if they are named twice", async () => {
  let asked = 0;
  await using server = await serve((_request, response) => {
    asked++;
    response.end(KEYS);
  });
  const store = new ResourceStore(ANYWHERE);
  await store.fetch([server.url, server.url]);
  await store.fetch([server.url]);
  assert.deepEqual(store.resources.get(server.url), { text: KEYS });
  assert.equal(asked, 1);
});

test("documents are not fetched from hosts whose lookup is denied", async () => {
  let asked = 0;
  await using server = await serve((_request, response) => {
    asked++;
    response.end(KEYS);
  });
  const url = server.url.replace("127.0.0.1", "LOCALHOST");
  const denied = { denyDomains: [], denyNetworks: ["127.0.0.0/8", "::1/128"] };
  for (const lookupRules of [denied, { denyDomains: ["localhost"], denyNetworks: [] }]) {
    const store = new ResourceStore(new Egress({ provenance: "operator", lookupRules }, new OwnSockets()));
    await store.fetch([url]);
    assert.match(JSON.stringify(store.resources.get(url)), /inside the cluster|may not connect to/);
  }
  // The first fetch of a process follows the rules of its file too.
  const text = `
config: {dns: {denyDomains: [localhost]}}
gateways: {default: {port: 8080}}
routes:
- policies: {jwtAuth: {issuer: i, audiences: [a], jwks: {url: "${url}"}}}
  backends: [{host: "192.0.2.1:80"}]
`;
  const { report } = await checkConfig({ kind: "text", text }, {});
  assert.match(JSON.stringify(report), /is a name inside the cluster/);
  assert.equal(asked, 0);
});

test("a redirect to another host is not followed: a URL in the configuration might not be allowed to name that host", async () => {
  let asked = 0;
  await using inside = await serve((_request, response) => {
    asked++;
    response.end(KEYS);
  });
  const problem = await problemOf((_, response) =>
    response.writeHead(302, { location: inside.url.replace("127.0.0.1", "localhost") }).end(),
  );
  assert.equal(problem, "it redirects to another host, which is not followed; use the URL that it leads to");
  assert.equal(asked, 0);
});

test("the problem of a document that cannot be fetched or used says why", async () => {
  assert.equal(await problemOf((_, response) => response.writeHead(404).end("{}")), "it responds with status 404");
  const neither = "its response is neither a key set nor a discovery document";
  for (const [text, problem] of Object.entries({
    "<html>": neither,
    null: neither,
    '{"error":"try again later"}': neither,
    '{"keys":"none"}': neither,
    '{"keys":[]}': "its response is a key set without keys",
    '{"keys":[null,1]}': "its response is a key set without keys",
    '{"jwks_uri":"https://a.test/keys"}': "none",
    [KEYS]: "none",
  }))
    assert.equal(await problemOf((_, response) => response.end(text)), problem, text);
  assert.equal(
    await problemOf((_, response) => response.end("x".repeat(1024 * 1024 + 1))),
    "the response is longer than 1048576 bytes",
  );
  assert.match(await problemOf((request) => request.socket.destroy()), /closed/);
});

test("the password of a URL is not in the error about it", async () => {
  const url = "http://me:secret@127.0.0.1/";
  const store = new ResourceStore(ANYWHERE);
  await store.fetch([url]);
  assert.deepEqual(store.resources.get(url), {
    problem: "its URL has a user name or password, which would not be sent",
  });
});

test("documents in use are refreshed; only changed content is reported", async () => {
  const answers = ["a", "a", "a", "b"];
  await using server = await serve((_request, response) =>
    response.end(`{"keys":[{"kty":"${answers.shift() ?? "b"}"}]}`),
  );
  const store = new ResourceStore(ANYWHERE, { refresh: 1, retry: 1 });
  await store.fetch([server.url]);
  await new Promise<void>((resolve) => {
    store.keep([server.url], { changed: accepting(resolve), failed: (_url, problem) => assert.fail(problem) });
  });
  store.close();
  assert.deepEqual(store.resources.get(server.url), { text: '{"keys":[{"kty":"b"}]}' });
  assert.equal(answers.length, 0);
});

test("a refresh that fails is reported, and retried until it succeeds", async () => {
  const statuses = [200, 503, 503, 200];
  await using server = await serve((_request, response) => {
    const status = statuses.shift() ?? 200;
    response.writeHead(status).end(statuses.length > 0 ? '{"jwks_uri":"old"}' : '{"jwks_uri":"new"}');
  });
  const store = new ResourceStore(ANYWHERE, { refresh: 1, retry: 1 });
  await store.fetch([server.url]);
  const problems: string[] = [];
  await new Promise<void>((resolve) => {
    store.keep([server.url], {
      changed: accepting(resolve),
      failed: (url, problem) => {
        problems.push(`${url === server.url} ${problem}`);
        assert.deepEqual(store.resources.get(server.url), { text: '{"jwks_uri":"old"}' });
      },
    });
  });
  store.close();
  assert.deepEqual(problems, ["true it responds with status 503", "true it responds with status 503"]);
  assert.deepEqual(store.resources.get(server.url), { text: '{"jwks_uri":"new"}' });
});

/**
 * The texts that a store offers while a server answers with `answers` one after the other, the last one again and again, up to
 * the first text that `usable` accepts.
 */
async function offersOf(
  answers: readonly string[],
  usable: (text: string, offers: readonly string[]) => boolean,
): Promise<string[]> {
  let next = 0;
  await using server = await serve((_request, response) => response.end(answers[next++] ?? answers.at(-1)));
  const store = new ResourceStore(ANYWHERE, { refresh: 1, retry: 1 });
  await store.fetch([server.url]);
  const offers: string[] = [];
  await new Promise<void>((resolve) => {
    store.keep([server.url], {
      async changed() {
        const offer = store.resources.get(server.url);
        assert.ok(offer !== undefined && "text" in offer);
        offers.push(offer.text);
        const accepted = usable(offer.text, offers);
        if (accepted) resolve();
        return accepted;
      },
      failed: (_url, problem) => assert.fail(problem),
    });
  });
  store.close();
  return offers;
}

test("a document that makes the configuration invalid does not replace the previous one, and is fetched again", async () => {
  const answers = ['{"jwks_uri":"old"}', '{"jwks_uri":"wrong"}', '{"jwks_uri":"wrong"}', '{"jwks_uri":"new"}'];
  // The wrong one is offered twice: in between the old one is back in place.
  assert.deepEqual(await offersOf(answers, (text) => text === '{"jwks_uri":"new"}'), [
    '{"jwks_uri":"wrong"}',
    '{"jwks_uri":"wrong"}',
    '{"jwks_uri":"new"}',
  ]);
});

test("after an unusable document, the one in use is accepted when it returns", async () => {
  const answers = ['{"jwks_uri":"old"}', '{"jwks_uri":"wrong"}', '{"jwks_uri":"old"}'];
  assert.deepEqual(await offersOf(answers, (_text, offers) => offers.length === 2), [
    '{"jwks_uri":"wrong"}',
    '{"jwks_uri":"old"}',
  ]);
});

/** Whether the store itself sets the timer, not a fetch that it has just begun. */
function isOfStore(): boolean {
  const { stack = "" } = new Error();
  return stack.includes("store.ts") && !stack.includes("fetch-document.ts");
}

test("pauses between failures double up to a minute, with jitter, and start again after a success", async (t) => {
  const statuses = [...Array(9).fill(503), 200, 503];
  await using server = await serve((_request, response) => response.writeHead(statuses.shift() ?? 503).end(KEYS));
  const pauses: number[] = [];
  const { setTimeout: real } = globalThis;
  // Pauses of the store pass at once; other timers are short of them or belong to connections.
  t.mock.method(globalThis, "setTimeout", (run: () => void, delay: number) => {
    const own = isOfStore();
    if (own) pauses.push(delay);
    return real(run, own ? 0 : delay);
  });
  for (const [random, share] of [
    [0, 0.5],
    [1, 1],
  ] as const) {
    statuses.splice(0, statuses.length, ...Array(9).fill(503), 200, 503);
    pauses.length = 0;
    t.mock.method(Math, "random", () => random);
    const store = new ResourceStore(ANYWHERE);
    await store.fetch([server.url]);
    const done = Promise.withResolvers<void>();
    store.keep([server.url], { changed: async () => true, failed: () => statuses.length === 0 && done.resolve() });
    await done.promise;
    store.close();
    const doubled = [1, 2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1000 * share);
    assert.deepEqual(pauses.slice(0, 11), [...doubled, 15 * 60_000, 1000 * share]);
  }
});

test("however often a document is requested, it is fetched once within the cooldown, and then again", async (t) => {
  let asked = 0;
  const arrivals: (() => void)[] = [];
  await using server = await serve((_request, response) => {
    asked++;
    response.end(`{"keys":[{"kty":"${asked}"}]}`);
    arrivals.shift()?.();
  });
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  const store = new ResourceStore(ANYWHERE, { refresh: 60_000, retry: 1, cooldown: 30_000 });
  await store.fetch([server.url]);
  const changed: (() => void)[] = [];
  store.keep([server.url], { changed: accepting(() => changed.shift()?.()), failed: () => assert.fail() });
  const pauses: number[] = [];
  const { setTimeout: real } = globalThis;
  t.mock.method(globalThis, "setTimeout", (run: () => void, delay: number) => {
    if (isOfStore()) pauses.push(delay);
    return real(run, delay);
  });
  now += 30_000;
  for (const _ of [1, 2]) {
    const fetched = new Promise<void>((resolve) => changed.push(resolve));
    for (let i = 0; i < 1000; i++) store.refetch(server.url);
    await fetched;
    await new Promise((resolve) => setImmediate(resolve));
    // Within the cooldown: another fetch is due at its end.
    now += 10_000;
    for (let i = 0; i < 1000; i++) store.refetch(server.url);
    now += 20_000;
    // The test does not wait for this fetch.
    store.keep([], { changed: accepting(() => {}), failed() {} });
    await store.fetch([server.url]);
    store.keep([server.url], { changed: accepting(() => changed.shift()?.()), failed: () => assert.fail() });
    now += 30_000;
  }
  // At once, then refreshed as usual, then at the end of the cooldown; twice.
  assert.deepEqual(
    pauses.filter((pause) => pause < 60_000),
    [0, 20_000, 0, 20_000],
  );
  assert.equal(asked, 5);
  store.refetch("http://127.0.0.1:1/unknown");
  assert.equal(store.resources.size, 1);
  store.close();
});

test("a missing document is listed with its problem, the time of the first failure, and the time of the next attempt", async () => {
  const statuses = [503, 503, 200, 503];
  await using server = await serve((_request, response) => response.writeHead(statuses.shift() ?? 503).end(KEYS));
  const url = `${server.url}?token=secret`;
  const store = new ResourceStore(ANYWHERE, { refresh: 1, retry: 1 });
  await store.fetch([url]);
  assert.deepEqual(store.missing, []);
  const seen: MissingDocument[][] = [];
  await new Promise<void>((resolve) => {
    store.keep([url], {
      changed: accepting(() => {
        seen.push([...store.missing]);
        resolve();
      }),
      failed: () => seen.push([...store.missing]),
    });
    seen.push([...store.missing]);
  });
  store.close();
  const [missing] = seen[0] ?? [];
  assert.equal(missing?.url, `${server.url}?<redacted>`);
  assert.equal(missing?.problem, "it responds with status 503");
  assert.ok(Date.parse(missing?.since ?? "") <= Date.parse(missing?.nextAttemptAt ?? ""));
  assert.equal(seen[1]?.[0]?.since, missing?.since);
  assert.deepEqual(
    seen.map((each) => each[0]?.formerInUse),
    [false, false, undefined],
  );
});

test("documents fetched for a rejected configuration are fetched again for the next", async () => {
  let asked = 0;
  await using server = await serve((_request, response) => {
    asked++;
    response.end(KEYS);
  });
  const store = new ResourceStore(ANYWHERE);
  await store.fetch([server.url]);
  store.forgetOthers([]);
  await store.fetch([server.url]);
  assert.equal(asked, 2);
});

test("documents that no configuration names are dropped", async () => {
  await using server = await serve((_request, response) => response.end(KEYS));
  const store = new ResourceStore(ANYWHERE);
  await store.fetch([server.url]);
  store.keep([], { changed: accepting(() => {}), failed() {} });
  assert.equal(store.resources.size, 0);
  store.close();
});

test("the URL of a status shows no secret in its path either", () => {
  assert.equal(shownUrl("http://a.test/k;token=s3cret?x=1"), "http://a.test/k;token=<redacted>?<redacted>");
});
