import assert from "node:assert/strict";
import { type TestContext as NodeTest, suite, test } from "node:test";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import type { CalloutHead } from "../../upstream/callouts/callout.ts";
import { contextOf } from "../testing/context.ts";
import { AnswerCache } from "./cache.ts";

const cacheWith = (more: { readonly key?: string[]; readonly ignore?: string[]; readonly ttl?: string } = {}) =>
  new AnswerCache<string>(
    { key: [], ignore: [], ttl: "1m", maxEntries: 1000, ...more },
    "request",
    STANDARD_ENVIRONMENT,
  );

/** A call as the service receives it. */
const sent = (more: Partial<CalloutHead> = {}): CalloutHead => ({
  method: "GET",
  scheme: "http",
  authority: "auth.example",
  path: "/a",
  search: "?q=1",
  version: "HTTP/1.1",
  headers: ["authorization", "Bearer alice", "cookie", "s=1"],
  body: Buffer.from("one"),
  ...more,
});

const { variables } = contextOf();

/** The cached response to a call; with `answer`, stores one first. */
function ask(cache: AnswerCache<string>, head: CalloutHead, answer?: string, bytes = 10): string | undefined {
  const lookup = cache.lookup(variables);
  const known = lookup?.recall(head);
  if (answer !== undefined) lookup?.keep(answer, bytes, undefined, variables);
  return known;
}

suite("a decision is found again", () => {
  const others: Readonly<Record<keyof CalloutHead, Partial<CalloutHead>>> = {
    method: { method: "DELETE" },
    scheme: { scheme: "https" },
    authority: { authority: "other.example" },
    path: { path: "/b" },
    search: { search: "?q=2" },
    version: { version: "HTTP/2" },
    headers: { headers: ["authorization", "Bearer bob", "cookie", "s=1"] },
    body: { body: Buffer.from("two") },
  };
  for (const [part, change] of Object.entries(others))
    test(`not by a request that differs in its ${part}`, () => {
      const cache = cacheWith();
      assert.equal(ask(cache, sent(), "yes"), undefined);
      assert.equal(ask(cache, sent(change)), undefined);
      assert.equal(ask(cache, sent()), "yes");
    });

  test("not where a field is missing, or the same text is split in another way", () => {
    const cache = cacheWith();
    ask(cache, sent({ headers: ["x-a", "1", "x-b", ""] }), "yes");
    assert.equal(ask(cache, sent({ headers: ["x-a", "1"] })), undefined);
    assert.equal(ask(cache, sent({ headers: ["x-a", "1,x-b,"] })), undefined);
  });

  test("whatever the ids of the request are", () => {
    const cache = cacheWith();
    const ids = (id: string) => sent({ headers: ["x-request-id", id, "traceparent", id, "tracestate", id] });
    ask(cache, ids("1"), "yes");
    assert.equal(ask(cache, ids("2")), "yes");
  });

  test("without the parts that the configuration leaves out, and no others", () => {
    const changes: Readonly<Record<string, Partial<CalloutHead>>> = {
      method: { method: "PUT" },
      path: { path: "/b", search: "" },
      query: { search: "?q=2" },
      body: { body: Buffer.from("two") },
      "headers.cookie": { headers: ["authorization", "Bearer alice", "cookie", "s=2"] },
    };
    for (const ignored of Object.keys(changes))
      for (const [part, change] of Object.entries(changes)) {
        const cache = cacheWith({ ignore: [ignored] });
        ask(cache, sent(), "yes");
        const same = part === ignored || (ignored === "path" && part === "query");
        assert.equal(ask(cache, sent(change)), same ? "yes" : undefined, `${part} without ${ignored}`);
      }
  });

  test("only with the same values of `cache.key`", () => {
    const cache = cacheWith({ key: ["request.path", "request.method"] });
    const asked = (path: string, method: string, answer?: string): string | undefined => {
      const lookup = cache.lookup(contextOf({ path, method }).variables);
      const known = lookup?.recall(sent());
      if (answer !== undefined) lookup?.keep(answer, 1, undefined, variables);
      return known;
    };
    asked("/a", "GET", "yes");
    assert.equal(asked("/aG", "ET"), undefined);
    assert.equal(asked("/a", "PUT"), undefined);
    assert.equal(asked("/a", "GET"), "yes");
    assert.equal(cacheWith({ key: ["jwt.sub"] }).lookup(variables), undefined);
  });

  test("until it has expired", (t: NodeTest) => {
    let now = 1000;
    t.mock.method(performance, "now", () => now);
    const cache = cacheWith({ ttl: "1m" });
    ask(cache, sent(), "yes");
    now += 59_999;
    assert.equal(ask(cache, sent()), "yes");
    now += 1;
    assert.equal(ask(cache, sent()), undefined);
  });

  test("unless responses fill the memory", () => {
    const cache = cacheWith();
    const mebibyte = 1024 * 1024;
    for (let i = 0; i < 100; i++) ask(cache, sent({ path: `/${i}` }), "yes", mebibyte);
    const known = Array.from({ length: 100 }, (_, i) => ask(cache, sent({ path: `/${i}` })));
    assert.ok(known.filter((each) => each !== undefined).length <= 16);
    assert.equal(known.at(-1), "yes");
    ask(cache, sent({ path: "/huge" }), "yes", 9 * mebibyte);
    assert.equal(ask(cache, sent({ path: "/huge" })), undefined);
  });
});
