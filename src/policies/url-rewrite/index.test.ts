import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { GatewayError } from "../../base/errors.ts";
import { contextOf, creatorOf, RecordedTrace } from "../testing/context.ts";
import { urlRewrite } from "./index.ts";
import type { UrlRewrite } from "./schema.ts";

const create = creatorOf(urlRewrite);

function rewrittenPath(config: UrlRewrite, path: string, matchedPrefix: string | undefined, search = ""): string {
  const context = contextOf({ path, search }, { matchedPrefix });
  assert.equal(create(config).onRequest?.(context), undefined);
  return context.request.path + context.request.search;
}

test("prefix: the table of Gateway API's HTTPPathModifier", () => {
  const table = [
    ["/foo/bar", "/foo", "/xyz", "/xyz/bar"],
    ["/foo/bar", "/foo", "/xyz/", "/xyz/bar"],
    ["/foo", "/foo", "/xyz", "/xyz"],
    ["/foo/", "/foo", "/xyz", "/xyz/"],
    ["/foo/bar", "/foo", "", "/bar"],
    ["/foo/", "/foo", "", "/"],
    ["/foo", "/foo", "", "/"],
    ["/foo/", "/foo", "/", "/"],
    ["/foo", "/foo", "/", "/"],
    ["/foo", "/foo", "/xyz/", "/xyz/"],
    ["/", "/", "/xyz", "/xyz"],
    ["/bar", "/", "/xyz", "/xyz/bar"],
    ["/bar", "/", "/", "/bar"],
  ] as const;
  for (const [path, matched, prefix, expected] of table)
    assert.equal(rewrittenPath({ path: { prefix } }, path, matched), expected, `${path} ${matched} → ${prefix}`);
});

test("full replaces the path; the query is kept, after a configured one", () => {
  assert.equal(rewrittenPath({ path: { full: "/new" } }, "/old", undefined, "?a=1"), "/new?a=1");
  assert.equal(rewrittenPath({ path: { full: "" } }, "/old", undefined, "?a=1"), "/?a=1");
  assert.equal(rewrittenPath({ path: { full: "/new?x=1" } }, "/old", undefined, "?a=1"), "/new?x=1&a=1");
  assert.equal(rewrittenPath({ path: { full: "/new?x=1" } }, "/old", undefined), "/new?x=1");
});

test("prefix needs a prefix match that the path still begins with", () => {
  const policy = create({ path: { prefix: "/new" } });
  for (const matchedPrefix of [undefined, "/other", "/sho"])
    assert.throws(
      () => policy.onRequest?.(contextOf({}, { matchedPrefix })),
      (error) =>
        error instanceof GatewayError &&
        error.code === "TG_FILTER_FAILED" &&
        error.message === "failed to apply filters: prefix redirect requires prefix match",
    );
});

test("OPTIONS * keeps its target", () => {
  const context = contextOf({ method: "OPTIONS", path: "*", search: "" });
  create({ path: { full: "/new" }, authority: { host: "b" } }).onRequest?.(context);
  assert.equal(context.request.path, "*");
  assert.equal(context.request.authority, "b");
});

test("authority: what each form makes of it, and whether the backend's name may replace it", () => {
  const table = [
    [{ full: "new:81" }, "new:81", "fixed"],
    [{ host: "new" }, "new", "fixed"],
    [{ port: 9000 }, "example.com:9000", "fixed"],
    [{ port: 80 }, "example.com", "fixed"],
    ["none", "example.com:8080", "fixed"],
    ["auto", "example.com:8080", "auto"],
    [undefined, "example.com:8080", "auto"],
  ] as const;
  for (const [authority, expected, mode] of table) {
    const context = contextOf();
    create(authority === undefined ? {} : { authority }).onRequest?.(context);
    assert.equal(context.request.authority, expected);
    assert.equal(context.authorityMode, mode);
  }
  const ipv6 = contextOf({ authority: "[::1]:8080" });
  create({ authority: { port: 9000 } }).onRequest?.(ipv6);
  assert.equal(ipv6.request.authority, "[::1]:9000");
});

test("values that are invalid in a request are rejected at load", () => {
  assert.throws(() => create({ path: { full: "new" } }), /urlRewrite.path.full: "new" must begin with "\/"/);
  assert.throws(() => create({ path: { full: "/a b" } }), /percent-encode what a URL cannot hold/);
  assert.throws(() => create({ path: { prefix: "/a/../b" } }), /urlRewrite.path.prefix: "\/a\/\.\.\/b": dot segment/);
  assert.throws(() => create({ path: { prefix: "/a?b" } }), /only path.full may have one/);
  assert.throws(() => create({ authority: { full: "http://x" } }), /"http:\/\/x" is not host\[:port\]/);
  assert.throws(() => create({ authority: { port: 70000 } }), /urlRewrite.authority.port/);
});

test("reports the URL before and after", () => {
  const trace = new RecordedTrace();
  create({ path: { prefix: "/" } }).onRequest?.(contextOf({}, { trace }));
  assert.deepEqual(trace.events, [
    {
      kind: "url_rewrite",
      details: { path: { prefix: "/" } },
      before: { host: "example.com:8080", pathAndQuery: "/shop/cart?page=2" },
      after: { host: "example.com:8080", pathAndQuery: "/cart?page=2" },
    },
  ]);
});

test("a prefix rewrite never doubles a slash, keeps what follows and the query", () => {
  const segment = fc.stringMatching(/^[a-z0-9_~-]{1,5}$/);
  const segments = fc.array(segment, { maxLength: 4 });
  const path = (parts: readonly string[], slash: boolean): string =>
    parts.length === 0 ? "/" : `/${parts.join("/")}${slash ? "/" : ""}`;
  const query = fc.constantFrom("", "?", "?a=1", "?a=//b&c=%2f");
  fc.assert(
    fc.property(
      segments,
      segments,
      segments,
      query,
      fc.boolean(),
      fc.boolean(),
      (prefix, rest, to, search, end, slash) => {
        const result = rewrittenPath(
          { path: { prefix: path(to, slash) } },
          path([...prefix, ...rest], end),
          path(prefix, false),
          search,
        );
        assert.ok(result.endsWith(search));
        const pathname = result.slice(0, result.length - search.length);
        assert.ok(!pathname.includes("//"), pathname);
        assert.deepEqual(pathname.split("/").filter(Boolean), [...to, ...rest]);
      },
    ),
  );
});
