import assert from "node:assert/strict";
import { test } from "node:test";
import { noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { irOf } from "../../test/helpers/supervisor.ts";
import type { SampledRequest } from "../recorder/sample.ts";
import { Rehearsal } from "../rehearsal/rehearsal.ts";
import { type Impact, impactOf } from "./impact.ts";

const SETTINGS = { sensitiveHeaders: [], perRequest: 1_000_000, sessionKey: new Uint8Array(32) };

const SAMPLE: SampledRequest = {
  time: "2026-11-28T12:00:00.000Z",
  weight: 10,
  bind: "bind/80",
  scheme: "http",
  version: "1.1",
  method: "GET",
  authority: "shop.example",
  target: "/cart?item=1",
  headers: [{ name: "accept", value: "*/*" }],
  source: { address: "192.0.2.7", port: 40_000 },
};

const API = { host: "127.0.0.1:9001" };
const NEW_API = { host: "127.0.0.1:9002" };

function withRoutes(...routes: readonly object[]): object {
  return { binds: [{ port: 80, listeners: [{ routes }] }] };
}

async function impact(before: object, after: object, ...samples: readonly Partial<SampledRequest>[]): Promise<Impact> {
  const sides = [before, after].map((each) => ({ rehearsal: new Rehearsal(irOf(each), SETTINGS) }));
  const [was, will] = sides;
  assert.ok(was !== undefined && will !== undefined);
  try {
    return await impactOf(
      (samples.length === 0 ? [{}] : samples).map((each) => ({ ...SAMPLE, ...each })),
      was,
      will,
    );
  } finally {
    for (const { rehearsal } of sides) rehearsal.close();
  }
}

function summary({ changes }: Impact): unknown[] {
  return changes.map(({ class: name, requests, samples }) => [name, requests, samples]);
}

test("the same configuration changes nothing", async () => {
  const config = withRoutes({ name: "api", backends: [API] });
  const result = await impact(config, config, {}, { version: "2", weight: 3 }, { target: "/other", version: "1.0" });
  assert.deepEqual(result.classes.unchanged, { requests: 23, samples: 3 });
  assert.deepEqual(result.changes, []);
});

test("a rule that denies a path refuses its requests and names itself", async () => {
  const before = withRoutes({ name: "api", backends: [API] });
  const policies = { authorization: { rules: [{ deny: 'request.path.startsWith("/admin")' }] } };
  const after = withRoutes({ name: "api", policies, backends: [API] });
  const result = await impact(before, after, {}, { target: "/admin/users" });
  assert.deepEqual(summary(result), [["refused", 10, 1]]);
  const [change] = result.changes;
  assert.equal(change?.after.status, 403);
  assert.equal(change?.after.policy, "authorization");
  assert.deepEqual(change?.after.origin?.path.slice(-2), ["rules", 0]);
  assert.equal(change?.before.backend, "127.0.0.1:9001");
  assert.deepEqual(result.classes.unchanged, { requests: 10, samples: 1 });
  assert.deepEqual(summary(await impact(after, before, { target: "/admin/users" })), [["granted", 10, 1]]);
});

test("a sample after a pause in sampling does not stand for all that the pause has left out", async () => {
  const before = withRoutes({ name: "api", backends: [API] });
  const policies = { authorization: { rules: [{ deny: 'request.path == "/odd"' }] } };
  const after = withRoutes({ name: "api", policies, backends: [API] });
  const usual = Array.from({ length: 15 }, () => ({ weight: 1 }));
  const result = await impact(before, after, { target: "/odd", weight: 625 }, ...usual, { weight: 10 });
  assert.deepEqual(summary(result), [["refused", 40, 1]]);
  assert.deepEqual(result.classes.unchanged, { requests: 610, samples: 16 });
});

test("samples share their weights also where a policy may refuse them before there is a route, or no route fits", async () => {
  const usual = Array.from({ length: 15 }, () => ({ weight: 1 }));
  const odd = { target: "/odd", weight: 625 };
  const ofAddress = { authorization: { rules: [{ deny: 'source.address == "192.0.2.7"' }] } };
  const denied = { authorization: { rules: [{ deny: 'request.path == "/odd"' }] } };
  const site = (policies: object): object => ({
    binds: [{ port: 80, listeners: [{ policies: ofAddress, routes: [{ name: "api", policies, backends: [API] }] }] }],
  });
  const unknown = [odd, ...usual].map((each) => ({ ...each, source: undefined }));
  assert.deepEqual(summary(await impact(site({}), site(denied), ...unknown)), [["maybeRefused", 40, 1]]);
  const other = { name: "other", matches: [{ path: { exact: "/other" } }], backends: [API] };
  const added = { name: "odd", matches: [{ path: { exact: "/odd" } }], backends: [API] };
  assert.deepEqual(summary(await impact(withRoutes(other), withRoutes(other, added), odd, ...usual)), [
    ["granted", 40, 1],
  ]);
});

test("a rule about the client's address decides nothing about samples without one", async () => {
  const before = withRoutes({ name: "api", backends: [API] });
  const policies = { authorization: { rules: [{ deny: 'source.address == "192.0.2.7"' }] } };
  const after = withRoutes({ name: "api", policies, backends: [API] });
  const result = await impact(before, after, {}, { target: "/other", source: undefined });
  assert.deepEqual(
    result.changes.map(({ class: name, needs }) => [name, needs]),
    [
      ["refused", undefined],
      ["maybeRefused", ["the address of the client"]],
    ],
  );
});

test("a list of networks decides nothing about samples without an address", async () => {
  const before = withRoutes({ name: "api", backends: [API] });
  const after = withRoutes({ name: "api", policies: { ipAccess: { deny: ["192.0.2.0/24"] } }, backends: [API] });
  const other = { address: "203.0.113.1", port: 40_000 };
  const { changes } = await impact(before, after, {}, { source: other }, { source: undefined });
  assert.deepEqual(
    changes.map(({ class: name, needs, after: { policy } }) => [name, needs, policy]),
    [
      ["refused", undefined, "ipAccess"],
      ["maybeRefused", ["the address of the client"], "ipAccess"],
    ],
  );
});

test("the list of a port refuses before anything of the request is read, TLS included", async () => {
  const before = withRoutes({ name: "api", backends: [API] });
  const after = { ...before, frontendPolicies: { ipAccess: { deny: ["192.0.2.0/24"] } } };
  const other = { address: "203.0.113.1", port: 40_000 };
  const result = await impact(before, after, {}, { source: other }, { source: undefined }, { scheme: "https" });
  assert.deepEqual(summary(result), [
    ["refused", 10, 1],
    ["maybeRefused", 10, 1],
    ["changedOnTheWay", 10, 1],
  ]);
});

test("another list of networks may decide otherwise about samples without an address", async () => {
  const withList = (...deny: readonly string[]) =>
    withRoutes({ name: "api", policies: { ipAccess: { deny } }, backends: [API] });
  const { changes } = await impact(withList("192.0.2.0/24"), withList("198.51.100.0/24"), { source: undefined });
  assert.deepEqual(
    changes.map(({ class: name, needs }) => [name, needs]),
    [["unknown", ["the address of the client"]]],
  );
  const same = await impact(withList("192.0.2.0/24"), withList("192.0.2.0/24"), { source: undefined });
  assert.deepEqual(same.changes, []);
});

test("a limit of the body refuses announced lengths, and may refuse a body without one", async () => {
  const before = withRoutes({ name: "api", backends: [API] });
  const after = withRoutes({ name: "api", policies: { maxRequestBodySize: 100 }, backends: [API] });
  const post = { method: "POST" } as const;
  const { changes } = await impact(
    before,
    after,
    {},
    ...[100, 101, "unknown" as const].map((contentLength) => ({ ...post, contentLength })),
  );
  assert.deepEqual(
    changes.map(({ class: name, needs, after: { status, policy } }) => [name, needs, status, policy]),
    [
      ["refused", undefined, 413, "maxRequestBodySize"],
      ["maybeRefused", ["the length of the body"], 413, "maxRequestBodySize"],
    ],
  );
});

test("a rule about the client's certificate decides nothing where a listener asks for one", {
  skip: noOpenssl,
}, async () => {
  using ca = new TestCa();
  const { certFile: cert, keyFile: key } = ca.issue("shop.example");
  const site = (tls: object, policies: object = {}): object => {
    const routes = [{ name: "api", policies, backends: [API] }];
    return { binds: [{ port: 443, listeners: [{ protocol: "HTTPS", tls: { cert, key, ...tls }, routes }] }] };
  };
  const sample = { bind: "bind/443", scheme: "https", version: "2", serverName: "shop.example" } as const;
  const denying = { authorization: { rules: [{ deny: 'source.subjectCn == "old-client"' }] } };
  const found = async (before: object, after: object): Promise<unknown[]> =>
    (await impact(before, after, sample)).changes.map(({ class: name, needs }) => [name, needs]);
  const optional = { root: ca.certFile, clientCertificates: "optional" };
  assert.deepEqual(await found(site(optional), site(optional, denying)), [
    ["maybeRefused", ["the client's certificate"]],
  ]);
  assert.deepEqual(await found(site({}), site({}, denying)), [], "no client has a certificate");
  const required = { root: ca.certFile };
  assert.deepEqual(await found(site({}), site(required)), [["maybeRefused", ["the client's certificate"]]]);
  assert.deepEqual(await found(site(required), site(required)), []);
});

test("a rule that reads the query or a URL in a field decides nothing about samples with secrets there", async () => {
  const before = withRoutes({ name: "api", backends: [API] });
  const rules = [
    { deny: 'request.pathAndQuery.contains("hunter2")' },
    { deny: 'request.headers["referer"].endsWith("hunter2")' },
  ];
  const after = withRoutes({ name: "api", policies: { authorization: { rules } }, backends: [API] });
  const needsOf = async (sample: Partial<SampledRequest>): Promise<unknown[]> =>
    (await impact(before, after, sample)).changes.map(({ class: name, needs }) => [name, needs]);
  assert.deepEqual(
    await needsOf({ target: "/cart?color=red", headers: [{ name: "referer", value: "http://a.test/" }] }),
    [],
  );
  assert.deepEqual(
    await needsOf({ target: "/cart?token=<redacted>", headers: [{ name: "referer", value: "http://a.test/" }] }),
    [["maybeRefused", ["secrets in the target"]]],
  );
  assert.deepEqual(await needsOf({ headers: [{ name: "referer", value: "http://a.test/?token=<redacted>" }] }), [
    ["maybeRefused", ["the field referer"]],
  ]);
});

test("weights move the share by which they differ", async () => {
  const before = withRoutes({
    name: "api",
    backends: [
      { ...API, weight: 9 },
      { ...NEW_API, weight: 1 },
    ],
  });
  const after = withRoutes({
    name: "api",
    backends: [
      { ...API, weight: 6 },
      { ...NEW_API, weight: 4 },
    ],
  });
  const { changes, classes } = await impact(before, after);
  const [change, ...others] = changes;
  assert.deepEqual(others, []);
  assert.equal(change?.class, "movedBackend");
  assert.equal(change?.after.backend, "127.0.0.1:9002");
  assert.equal(Math.round(change?.requests ?? 0), 3);
  assert.equal(Math.round(classes.unchanged.requests), 7);
});

test("a service that decides makes a refusal possible; one that decided before is taken to decide the same", async () => {
  const open = withRoutes({ name: "api", backends: [API] });
  const guarded = withRoutes({ name: "api", policies: { extAuthz: { host: "127.0.0.1:9" } }, backends: [API] });
  const result = await impact(open, guarded);
  assert.deepEqual(summary(result), [["maybeRefused", 10, 1]]);
  assert.deepEqual(result.changes[0]?.needs, ["the decision of extAuthz at the route"]);
  assert.deepEqual(summary(await impact(guarded, open)), [["maybeGranted", 10, 1]]);
  assert.deepEqual(summary(await impact(guarded, guarded)), []);
  const other = withRoutes({ name: "api", policies: { extAuthz: { host: "127.0.0.2:9" } }, backends: [API] });
  assert.deepEqual(summary(await impact(guarded, other)), [["unknown", 10, 1]]);
});
