import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { ResourceStore } from "./store.ts";

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
    response.end('{"keys":[]}');
  });
  const store = new ResourceStore(ANYWHERE);
  await store.fetch([server.url, server.url]);
  await store.fetch([server.url]);
  assert.deepEqual(store.resources.get(server.url), { text: '{"keys":[]}' });
  assert.equal(asked, 1);
});

test("the problem of a document that cannot be fetched or used says why", async () => {
  assert.equal(await problemOf((_, response) => response.writeHead(404).end("{}")), "it responds with status 404");
  assert.equal(await problemOf((_, response) => response.end("<html>")), "its response is not a JSON object");
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
  assert.deepEqual(store.resources.get(url), { problem: "its URL has a user or a password, which are not sent" });
});

test("documents in use are refreshed; only changed content is reported", async () => {
  const answers = ["[]", "[]", "[]", "[1]"];
  await using server = await serve((_request, response) => response.end(`{"keys":${answers.shift() ?? "[1]"}}`));
  const store = new ResourceStore(ANYWHERE, { refresh: 1, retry: 1 });
  await store.fetch([server.url]);
  await new Promise<void>((resolve) => {
    store.keep([server.url], { changed: accepting(resolve), failed: (_url, problem) => assert.fail(problem) });
  });
  store.close();
  assert.deepEqual(store.resources.get(server.url), { text: '{"keys":[1]}' });
  assert.equal(answers.length, 0);
});

test("a refresh that fails is reported, and retried until it succeeds", async () => {
  const statuses = [200, 503, 503, 200];
  await using server = await serve((_request, response) => {
    const status = statuses.shift() ?? 200;
    response.writeHead(status).end(statuses.length > 0 ? '{"old":1}' : '{"new":1}');
  });
  const store = new ResourceStore(ANYWHERE, { refresh: 1, retry: 1 });
  await store.fetch([server.url]);
  const problems: string[] = [];
  await new Promise<void>((resolve) => {
    store.keep([server.url], {
      changed: accepting(resolve),
      failed: (url, problem) => {
        problems.push(`${url === server.url} ${problem}`);
        assert.deepEqual(store.resources.get(server.url), { text: '{"old":1}' });
      },
    });
  });
  store.close();
  assert.deepEqual(problems, ["true it responds with status 503", "true it responds with status 503"]);
  assert.deepEqual(store.resources.get(server.url), { text: '{"new":1}' });
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
  const answers = ['{"old":1}', '{"wrong":1}', '{"wrong":1}', '{"new":1}'];
  // The wrong one is offered twice: in between the old one is back in place.
  assert.deepEqual(await offersOf(answers, (text) => text === '{"new":1}'), [
    '{"wrong":1}',
    '{"wrong":1}',
    '{"new":1}',
  ]);
});

test("after an unusable document, the one in use is accepted when it returns", async () => {
  const answers = ['{"old":1}', '{"wrong":1}', '{"old":1}'];
  assert.deepEqual(await offersOf(answers, (_text, offers) => offers.length === 2), ['{"wrong":1}', '{"old":1}']);
});

test("documents fetched for a rejected configuration are fetched again for the next", async () => {
  let asked = 0;
  await using server = await serve((_request, response) => {
    asked++;
    response.end("{}");
  });
  const store = new ResourceStore(ANYWHERE);
  await store.fetch([server.url]);
  store.forgetOthers([]);
  await store.fetch([server.url]);
  assert.equal(asked, 2);
});

test("documents that no configuration names are dropped", async () => {
  await using server = await serve((_request, response) => response.end("{}"));
  const store = new ResourceStore(ANYWHERE);
  await store.fetch([server.url]);
  store.keep([], { changed: accepting(() => {}), failed() {} });
  assert.equal(store.resources.size, 0);
  store.close();
});
