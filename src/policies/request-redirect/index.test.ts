import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { GatewayError } from "../../base/errors.ts";
import type { HttpRequest } from "../../http/message/message.ts";
import { contextOf, creatorOf, RecordedTrace, replyOf } from "../testing/context.ts";
import { requestRedirect } from "./index.ts";
import type { RequestRedirect } from "./schema.ts";
import { schema } from "./schema.ts";

const create = creatorOf(requestRedirect);

function locationOf(config: RequestRedirect, request: Partial<HttpRequest> = {}): string {
  const reply = replyOf(create(config), contextOf(request));
  assert.equal(reply.headers[0], "location");
  return reply.headers[1] ?? "";
}

test("responds with 302 unless configured, without a body", () => {
  assert.deepEqual(replyOf(create({ authority: { host: "new" } }), contextOf()), {
    status: 302,
    headers: ["location", "http://new:8080/shop/cart?page=2"],
    body: "",
  });
  assert.equal(replyOf(create({ status: 308 }), contextOf()).status, 308);
});

test("the port: the configured one, else the scheme's, else the request's; defaults are left out", () => {
  const at = (config: RequestRedirect, authority: string, scheme: "http" | "https" = "http"): string =>
    locationOf(config, { authority, scheme, path: "/", search: "" });
  assert.equal(at({ scheme: "https" }, "a"), "https://a/");
  assert.equal(at({ scheme: "https" }, "a:8080"), "https://a/");
  assert.equal(at({ scheme: "https", authority: { port: 8443 } }, "a:8080"), "https://a:8443/");
  assert.equal(at({ scheme: "https", authority: { port: 443 } }, "a:8080"), "https://a/");
  assert.equal(at({ authority: { port: 443 } }, "a"), "http://a:443/");
  assert.equal(at({ authority: { port: 80 } }, "a:8080"), "http://a/");
  assert.equal(at({ authority: { host: "b" } }, "a:8080"), "http://b:8080/");
  assert.equal(at({ authority: { host: "b" } }, "a:80"), "http://b/");
  assert.equal(at({ authority: { host: "b" } }, "a:443", "https"), "https://b/");
  assert.equal(at({ scheme: "https", authority: { full: "b:443" } }, "a"), "https://b:443/");
  assert.equal(at({ authority: "auto" }, "[::1]:8080"), "http://[::1]:8080/");
});

test("the path: kept, replaced whole, or by prefix; the query stays", () => {
  assert.equal(locationOf({ path: { full: "/new" } }), "http://example.com:8080/new?page=2");
  assert.equal(locationOf({ path: { prefix: "/new/" } }), "http://example.com:8080/new/cart?page=2");
  assert.equal(locationOf({}, { path: "*", search: "" }), "http://example.com:8080/");
});

test("prefix needs a prefix match", () => {
  assert.throws(
    () => create({ path: { prefix: "/new" } }).onRequest?.(contextOf({}, { matchedPrefix: undefined })),
    (error) =>
      error instanceof GatewayError &&
      error.status === 500 &&
      error.message === "failed to apply filters: prefix redirect requires prefix match",
  );
});

test("invalid settings are rejected at load", () => {
  assert.equal(schema.safeParse({ status: 200 }).success, false);
  assert.throws(() => create({ authority: { host: "a:80" } }), /a:80 has a port; use authority.full/);
  assert.throws(() => create({ authority: { full: "a/b" } }), /requestRedirect.authority.full: "a\/b" is not host/);
  assert.throws(() => create({ path: { full: "/a#b" } }), /requestRedirect.path.full/);
});

test("reports where it sends the client", () => {
  const trace = new RecordedTrace();
  create({ scheme: "https", status: 301 }).onRequest?.(contextOf({}, { trace }));
  assert.deepEqual(trace.events, [
    { kind: "request_redirect", details: { location: "https://example.com/shop/cart?page=2", status: 301 } },
  ]);
});

test("Location is a URL with the scheme, host and query that it should have", () => {
  const host = fc.constantFrom("a", "example.com", "10.0.0.1", "[::1]");
  const port = fc.integer({ min: 1, max: 65535 });
  const scheme = fc.constantFrom("http" as const, "https" as const);
  const authority = fc.oneof(
    fc.record({ host }),
    fc.record({ port }),
    fc.tuple(host, port).map(([name, number]) => ({ full: `${name}:${number}` })),
    fc.constantFrom("auto" as const, "none" as const),
  );
  const path = fc.oneof(
    fc.record({ full: fc.constantFrom("", "/", "/x/y") }),
    fc.record({ prefix: fc.constantFrom("", "/", "/x/") }),
  );
  const config = fc.record({ scheme, authority, path }, { requiredKeys: [] });
  fc.assert(
    fc.property(config, scheme, host, fc.option(port), (redirect, received, name, number) => {
      const request = { scheme: received, authority: number === null ? name : `${name}:${number}` };
      const url = new URL(locationOf(redirect, request));
      assert.equal(url.protocol, `${redirect.scheme ?? received}:`);
      assert.equal(url.search, "?page=2");
      assert.ok(!url.pathname.includes("//"));
    }),
  );
});
