import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { type PlaneOptions, TestPlane } from "../../helpers/data-plane.ts";
import { CHECK, CheckResponse } from "../../helpers/envoy/auth.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { type RawMessage, RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";

/** Sends fields and trailers to a backend behind policies; returns the backend's request, or the rejection. */
async function sent(
  where: "policies" | "backendPolicies",
  policies: PolicySet,
  fields: readonly string[],
  trailers: readonly string[] = [],
  options: PlaneOptions = {},
  count = 1,
): Promise<RawMessage> {
  await using upstream = await RawUpstream.answering(() => reply(""));
  const seen: RawMessage[] = [];
  await using recording = await RawUpstream.answering((message) => {
    seen.push(message);
    return reply("");
  });
  const target = { type: "static", host: "127.0.0.1", port: recording.port } as const;
  const other = { path: "/other", target: { ...target, port: upstream.port }, [where]: policies };
  const routes = count === 1 ? [{ target, [where]: policies }] : [{ target }, other];
  await using plane = await TestPlane.start(routes, options);
  const client = await RawPeer.connect(plane.port);
  const head = ["POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", ...fields, "", ""].join("\r\n");
  client.send(`${head}2\r\nhi\r\n0\r\n${[...trailers, "", ""].join("\r\n")}`);
  const answer = await client.message();
  client.end();
  return seen[0] ?? answer;
}

const fieldsOf = (message: RawMessage): string[] =>
  message.fields.filter((line) => !/^(host|transfer-encoding):/.test(line));

const IMITATIONS = ["X_User: mallory", "x-User: zoe", "x_other: 1", "X-Other: 2"];
const TRAILERS = ["X-User: mallory", "x_user: mallory", "X-Sum: 1", "x_sum: 2"];

suite("fields that only look like those of policies", () => {
  const modifiers: readonly (readonly [string, PolicySet, readonly string[]])[] = [
    ["requestHeaderModifier.set", { requestHeaderModifier: { set: { "X-User": "p" } } }, ["x-user: p"]],
    ["requestHeaderModifier.remove", { requestHeaderModifier: { remove: ["x-user"] } }, []],
    ["requestHeaderModifier.add", { requestHeaderModifier: { add: { "x-user": "p" } } }, ["x-user: zoe", "x-user: p"]],
    ["transformations.set", { transformations: { request: { set: { "x-user": "'p'" } } } }, ["x-user: p"]],
    ["transformations.remove", { transformations: { request: { remove: ["X-User"] } } }, []],
  ];
  for (const [what, policies, users] of modifiers)
    test(`${what}: neither a field with _ nor a trailer bypasses it; others pass`, async () => {
      const message = await sent("policies", policies, IMITATIONS, TRAILERS);
      assert.deepEqual(fieldsOf(message).sort(), ["x-other: 2", "x_other: 1", ...users].sort());
      assert.deepEqual(message.trailers, ["x-sum: 1", "x_sum: 2"]);
      assert.equal(message.body, "hi");
    });

  const replacements: readonly (readonly [string, readonly string[]])[] = [
    ['request.headers.merge({"x-user": "p"})', ["x-other: 2", "x-user: p"]],
    ['request.headers.merge({"x" + "_user": "p"})', ["x-other: 2", "x_user: p"]],
    ['request.headers.filterKeys(name, !name.startsWith("x-u"))', ["x-other: 2"]],
    ['{"x-user": "p"}', ["x-user: p"]],
  ];
  for (const [replace, fields] of replacements)
    test(`transformations.replace: ${replace}`, async () => {
      const policies = { transformations: { request: { replace } } };
      const message = await sent("policies", policies, IMITATIONS, TRAILERS);
      assert.deepEqual(fieldsOf(message).sort(), fields);
      assert.deepEqual(message.trailers, []);
    });

  test("a field with _ that another policy sets stays if all fields are replaced", async () => {
    const transformations = { request: { replace: 'request.headers.merge({"x-a": "1"})' } };
    const requestHeaderModifier = { set: { x_own: "p" } };
    const message = await sent("policies", { transformations, requestHeaderModifier }, ["x_own: m", "x-own: m"]);
    assert.deepEqual(fieldsOf(message).sort(), ["x-a: 1", "x_own: p"]);
  });

  test("a field with _ that a policy of the route sets stays if the backend's policies replace all fields", async () => {
    await using upstream = await RawUpstream.answering((request) => reply(fieldsOf(request).sort().join()));
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    const policies = { requestHeaderModifier: { set: { x_own: "p" } } };
    const replace = 'request.headers.merge({"x-a": "1"})';
    const backendPolicies = { transformations: { request: { replace } } };
    await using plane = await TestPlane.start([{ target, policies, backendPolicies }]);
    const client = await RawPeer.connect(plane.port);
    client.send("GET / HTTP/1.1\r\nHost: a\r\nx_own: m\r\nx_other: m\r\n\r\n");
    assert.equal((await client.message()).body, "x-a: 1,x_own: p");
    client.end();
  });

  test("fields by which messages are framed, and credentials for proxies", async () => {
    const fields = ["Content_Length: 9", "transfer_encoding: gzip", "Transfer-_Encoding: x", "Proxy_Authorization: m"];
    const message = await sent("policies", {}, [...fields, "Keep_Alive: 1", "proxy_connection: close"]);
    assert.deepEqual(fieldsOf(message), ["transfer-_encoding: x"]);
  });

  test("fields of a backend's policies and of other routes too", async () => {
    const policies = { requestHeaderModifier: { set: { "x-user": "p" } } };
    const atBackend = await sent("backendPolicies", policies, IMITATIONS, TRAILERS);
    assert.deepEqual(fieldsOf(atBackend).sort(), ["x-other: 2", "x-user: p", "x_other: 1"]);
    const elsewhere = await sent("policies", policies, IMITATIONS, TRAILERS, {}, 2);
    assert.deepEqual(fieldsOf(elsewhere).sort(), ["x-other: 2", "x-user: zoe", "x_other: 1"]);
    assert.deepEqual(elsewhere.trailers, ["x-sum: 1", "x_sum: 2"]);
  });

  test("a field with - does not bypass a policy for a name with _", async () => {
    const message = await sent("policies", { requestHeaderModifier: { remove: ["x_user"] } }, IMITATIONS, TRAILERS);
    assert.deepEqual(fieldsOf(message).sort(), ["x-other: 2", "x_other: 1"]);
    assert.deepEqual(message.trailers, ["x-sum: 1", "x_sum: 2"]);
  });

  test("fields that hold credentials", async () => {
    const location = { header: { name: "x-user", prefix: "" } };
    const apiKey = { mode: "optional", keys: [{ hash: "00".repeat(32) }], location } as const;
    const message = await sent("policies", { apiKey }, ["x_user: other"], TRAILERS);
    assert.deepEqual(fieldsOf(message), []);
    assert.deepEqual(message.trailers, ["x-sum: 1", "x_sum: 2"]);
  });

  for (const [what, user] of [
    ["sets", [{ header: { key: "x-user", value: "service" } }]],
    ["removes", []],
  ] as const)
    test(`fields that an extAuthz service ${what} by gRPC, whenever the trailers arrive`, async () => {
      const ok_response = { headers: [...user], headers_to_remove: user.length === 0 ? ["x-user"] : [] };
      await using service = await GrpcServer.start({
        [CHECK]: { unary: () => CheckResponse.encode({ status: { code: 0 }, ok_response }) },
      });
      for (const includeRequestBody of [
        undefined,
        { maxRequestBytes: 100, allowPartialMessage: false, packAsBytes: true },
      ]) {
        const extAuthz = {
          target: { type: "static", host: "127.0.0.1", port: service.port },
          protocol: { grpc: {} },
          failureMode: "deny",
          includeRequestHeaders: [],
          timeout: ms(5000),
          ...(includeRequestBody !== undefined && { includeRequestBody }),
        } as const;
        const message = await sent("policies", { extAuthz }, IMITATIONS, TRAILERS);
        const users = user.length === 0 ? [] : ["x-user: service"];
        assert.deepEqual(fieldsOf(message).sort(), ["x-other: 2", ...users, "x_other: 1"]);
        assert.deepEqual(message.trailers, ["x-sum: 1", "x_sum: 2"]);
      }
    });

  test("X-Forwarded-* and other fields that the gateway owns, even if it does not write them", async () => {
    const fields = ["X_Forwarded_For: 1.2.3.4", "X-Forwarded_Any: 1", "x_retry_attempt: 1", "x_mine: 1"];
    const trailers = ["X-Forwarded-Any: 1", "X_Forwarded_For: 1", "x_api_key: 1", "content_type: x", "x_mine: 1"];
    const off = await sent("policies", {}, fields, trailers);
    assert.deepEqual(fieldsOf(off), ["x_mine: 1"]);
    assert.deepEqual(off.trailers, ["x_mine: 1"]);
  });
});

suite("underscores", () => {
  const fields = ["a_b: 1", "A-B: 2"];
  test("drop and reject", async () => {
    for (const headerCase of ["lowercase", "preserve"] as const) {
      const dropped = await sent("policies", {}, fields, ["c_d: 1", "c-d: 2"], {
        frontend: { underscores: "drop", headerCase },
      });
      assert.deepEqual(
        fieldsOf(dropped)
          .map((line) => line.toLowerCase())
          .filter((line) => !/^(host|transfer)/.test(line)),
        ["a-b: 2"],
      );
      assert.deepEqual(dropped.trailers, ["c-d: 2"]);
    }
    const refused = await sent("policies", {}, fields, [], { frontend: { underscores: "reject" } });
    assert.equal(statusOf(refused), 400);
    const passed = await sent("policies", {}, ["A-B: 2"], [], { frontend: { underscores: "reject" } });
    assert.deepEqual(fieldsOf(passed), ["a-b: 2"]);
  });
});
