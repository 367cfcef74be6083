import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { ms } from "../../base/durations.ts";
import { contextOf, creatorOf, RecordedTrace, replyOf } from "../testing/context.ts";
import { cors } from "./index.ts";
import { compileOrigins } from "./origins.ts";
import type { Cors } from "./schema.ts";

const create = creatorOf(cors);

const NONE: Cors = {
  allowOrigins: ["https://shop.example"],
  allowMethods: [],
  allowHeaders: [],
  exposeHeaders: [],
  allowCredentials: false,
};

function preflight(config: Partial<Cors>, ...headers: string[]): Record<string, string> {
  const context = contextOf({ method: "OPTIONS", headers: ["origin", "https://shop.example", ...headers] });
  const reply = replyOf(create({ ...NONE, ...config }), context);
  assert.equal(reply.status, 200);
  assert.equal(reply.body, "");
  return pairs(reply.headers);
}

function pairs(list: readonly string[]): Record<string, string> {
  const entries: [string, string][] = [];
  for (let i = 0; i < list.length; i += 2) entries.push([list[i] ?? "", list[i + 1] ?? ""]);
  return Object.fromEntries(entries);
}

function actual(config: Partial<Cors>, headers: string[]): Record<string, string> {
  const context = contextOf({ headers });
  assert.equal(create({ ...NONE, ...config }).onRequest?.(context), undefined);
  return pairs(context.responseHeaders());
}

const ORIGIN = { "access-control-allow-origin": "https://shop.example", vary: "Origin" };

test("a preflight gets the configured lists, joined", () => {
  const config = {
    allowMethods: ["PUT", "DELETE"],
    allowHeaders: ["x-a", "x-b"],
    exposeHeaders: ["x-c"],
    maxAge: ms(90_500),
  };
  assert.deepEqual(preflight(config), {
    ...ORIGIN,
    "access-control-allow-methods": "PUT,DELETE",
    "access-control-allow-headers": "x-a,x-b",
    "access-control-expose-headers": "x-c",
    "access-control-max-age": "90",
  });
});

test("with a wildcard it gets what it requests, and * only if it requests nothing and has no credentials", () => {
  const all = { allowMethods: ["*"], allowHeaders: ["*"], exposeHeaders: ["*"] };
  const asked = ["access-control-request-method", "PATCH", "access-control-request-headers", "x-q,x-r"];
  assert.deepEqual(preflight(all, ...asked), {
    ...ORIGIN,
    "access-control-allow-methods": "PATCH",
    "access-control-allow-headers": "x-q,x-r",
    "access-control-expose-headers": "*",
  });
  assert.deepEqual(preflight(all), {
    ...ORIGIN,
    "access-control-allow-methods": "*",
    "access-control-allow-headers": "*",
    "access-control-expose-headers": "*",
  });
  assert.deepEqual(preflight({ ...all, allowCredentials: true }), {
    ...ORIGIN,
    "access-control-allow-credentials": "true",
  });
});

test("a preflight of another origin gets 200 without permissions", () => {
  const context = contextOf({ method: "OPTIONS", headers: ["origin", "https://evil.example"] });
  assert.deepEqual(replyOf(create(NONE), context), { status: 200, headers: ["vary", "Origin"], body: "" });
});

test("other requests pass; the response has the CORS headers, and always varies by origin", () => {
  const config = { allowCredentials: true, exposeHeaders: ["x-a", "x-b"] };
  assert.deepEqual(actual(config, ["origin", "https://shop.example"]), {
    ...ORIGIN,
    "access-control-allow-credentials": "true",
    "access-control-expose-headers": "x-a,x-b",
  });
  assert.deepEqual(actual(config, ["origin", "https://evil.example"]), { vary: "Origin" });
  assert.deepEqual(actual(config, []), { vary: "Origin" });
});

test("OPTIONS without an origin is an ordinary request", () => {
  assert.equal(create(NONE).onRequest?.(contextOf({ method: "OPTIONS" })), undefined);
});

test("origins: scheme, host and port count; case and default ports do not; * may be anywhere in the host", () => {
  const table = [
    ["https://a.example", "https://a.example", true],
    ["https://a.example", "https://A.Example:443", true],
    ["https://a.example:443", "https://a.example", true],
    ["https://a.example", "http://a.example", false],
    ["https://a.example", "https://a.example:8443", false],
    ["https://a.example", "https://a.example.evil.example", false],
    ["https://*.example", "https://a.b.example", true],
    ["https://*.example", "https://example", false],
    ["https://*.example", "https://a.example:8443", false],
    ["https://*.example", "https://evil.com/.example", false],
    ["https://*.example", "https://evil.com\\.example", false],
    ["https://*", "https://a.example", true],
    ["https://a*c.example", "https://abc.example", true],
    ["https://a*a.example", "https://a.example", false],
    ["https://*b*.example", "https://abc.example", true],
    ["*", "null", true],
    ["null", "null", true],
    ["https://*", "null", false],
    ["https://[::1]:8080", "https://[::1]:8080", true],
  ] as const;
  for (const [allowed, origin, expected] of table)
    assert.equal(compileOrigins(["x"], [allowed])(origin), expected, `${allowed} ${origin}`);
});

test("a pattern matches like the regular expression with .* in place of *", () => {
  const host = fc.stringMatching(/^[ab.]{1,8}$/);
  const pattern = fc.stringMatching(/^[ab.*]{1,6}$/);
  fc.assert(
    fc.property(pattern, host, (text, name) => {
      const regex = new RegExp(`^${text.replaceAll(".", "\\.").replaceAll("*", ".*")}$`);
      assert.equal(compileOrigins(["x"], [`http://${text}`])(`http://${name}`), regex.test(name));
    }),
  );
});

test("invalid origins, methods and headers are rejected at load", () => {
  for (const origin of ["example.com", "https://", "https://a/b", "https://user@a", "https://a:x"])
    assert.throws(() => create({ ...NONE, allowOrigins: [origin] }), /cors.allowOrigins: ".*" is not an origin; write/);
  assert.throws(
    () => create({ ...NONE, allowMethods: ["GET, PUT"] }),
    /cors.allowMethods: "GET, PUT" is not a valid name/,
  );
});

test("reports what it decided", () => {
  const trace = new RecordedTrace();
  create(NONE).onRequest?.(contextOf({}, { trace }));
  create(NONE).onRequest?.(contextOf({ headers: ["origin", "https://shop.example"] }, { trace }));
  const others = create({ ...NONE, allowOrigins: ["https://other.example"] });
  const headers = ["origin", "https://shop.example"];
  others.onRequest?.(contextOf({ headers }, { trace }));
  others.onRequest?.(contextOf({ method: "OPTIONS", headers }, { trace }));
  assert.deepEqual(trace.events, [
    { kind: "cors", reason: "the request has no origin, so no page of another site made it", severity: "warn" },
    { kind: "cors", details: { origin: "https://shop.example", allowed: true, preflight: false } },
    {
      kind: "cors",
      details: { origin: "https://shop.example", allowed: false, preflight: false },
      severity: "warn",
    },
    {
      kind: "cors",
      details: { origin: "https://shop.example", allowed: false, preflight: true },
      severity: "error",
    },
  ]);
});
