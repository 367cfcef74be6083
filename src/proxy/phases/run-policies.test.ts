import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { TestPlane } from "../../../test/helpers/data-plane.ts";
import { H2Client } from "../../../test/helpers/h2-client.ts";
import { RawPeer, RawUpstream, reply } from "../../../test/helpers/raw-peer.ts";
import { ms } from "../../base/durations.ts";
import { INITIAL_WINDOW_SIZE } from "../../http/h2/frames.ts";
import type { CompiledPolicy } from "../../policies/compile.ts";
import { type CompiledChain, NO_POLICIES } from "../../policies/compile.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { responsePolicies } from "./run-policies.ts";

/** What of an exchange the response policies use; `policies`: of its route. */
function exchangeWith(policies: readonly Partial<CompiledPolicy>[], call: { answeredAt: number } | undefined) {
  const routePolicies: CompiledChain = { ...NO_POLICIES, response: policies as CompiledPolicy[] };
  return {
    phase: 8,
    selected: { route: {}, routePolicies, backend: undefined, listener: undefined },
    responseSide: { head: { status: 200, headers: [] }, hold() {} },
    call,
    trace: undefined,
  };
}

/** An exchange with a policy that waits before one that must not run in a later phase. */
function waitingExchange() {
  const ran: string[] = [];
  const answered = Promise.withResolvers<undefined>();
  const exchange = exchangeWith(
    [
      { kind: "extProc", onResponse: () => answered.promise },
      { kind: "transformations", onResponse: () => void ran.push("transformations") },
    ],
    { answeredAt: 1 },
  );
  const done = responsePolicies(exchange as unknown as Exchange);
  return { exchange, ran, answer: () => answered.resolve(undefined), done };
}

test("replies of the gateway do not pass through policies for responses of the backend", () => {
  for (const [call, expected] of [
    [undefined, ["all"]],
    [{ answeredAt: 0 }, ["all"]],
    [{ answeredAt: 1 }, ["backend's", "all"]],
  ] as const) {
    const ran: string[] = [];
    const exchange = exchangeWith(
      [
        { kind: "sessionPersistence", upstreamOnly: true, onResponse: () => void ran.push("backend's") },
        { kind: "transformations", onResponse: () => void ran.push("all") },
      ],
      call,
    );
    responsePolicies(exchange as unknown as Exchange);
    assert.deepEqual(ran, expected);
  }
});

test("response policies continue after one that has waited", async () => {
  const { ran, answer, done } = waitingExchange();
  answer();
  await done;
  assert.deepEqual(ran, ["transformations"]);
});

test("response policies stop when their phase has ended while one of them waited", async () => {
  const { exchange, ran, answer, done } = waitingExchange();
  exchange.phase++;
  answer();
  await done;
  assert.deepEqual(ran, []);
});

test("request policies stop when the deadline has passed while one of them waited", async () => {
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  await using copies = await RawUpstream.answering(() => reply(""));
  const authorized = Promise.withResolvers<void>();
  await using authorizer = await RawUpstream.answering(async () => {
    await authorized.promise;
    return reply("");
  });
  const at = (port: number) => ({ type: "static", host: "127.0.0.1", port }) as const;
  const policies: PolicySet = {
    timeout: { requestTimeout: ms(50) },
    extAuthz: {
      target: at(authorizer.port),
      protocol: { http: { includeResponseHeaders: [], addRequestHeaders: {}, metadata: {} } },
      failureMode: "deny",
      includeRequestHeaders: [],
      timeout: ms(5000),
    },
    requestMirror: [{ target: at(copies.port), percentage: 1 }],
    transformations: { response: { body: "request.headers['x-long']" } },
    compression: {
      encodings: ["gzip"],
      contentTypes: ["text/plain"],
      minSize: 0,
      levels: { zstd: 3, br: 4, gzip: 5 },
    },
  };
  const limited = { path: "/limited", target: at(upstream.port), policies };
  await using plane = await TestPlane.start([{ target: at(upstream.port) }, limited]);
  // A client that takes no body yet, so that the exchange is still open when the authorizer responds.
  const client = await H2Client.connect(plane.port, [INITIAL_WINDOW_SIZE, 0]);
  client.request(1, "GET", ["accept-encoding", "gzip", "x-long", randomBytes(25_000).toString("hex")], "/limited");
  const response = client.stream(1);
  await client.until(() => response.sections.length > 0, "the head of the response");
  assert.equal(H2Client.status(response), 504);
  authorized.resolve();
  // By the end of another request, the gateway has read the authorizer's response.
  assert.equal((await RawPeer.ask(plane.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")).body, "ok");
  assert.equal(response.ended, false);
  assert.deepEqual([copies.connections.length, upstream.connections.length], [0, 1]);
  client.peer.socket.destroy();
});

test("sessionAffinity that reads the body waits for all of it", async () => {
  await using one = await RawUpstream.answering(() => reply("one"));
  await using two = await RawUpstream.answering(() => reply("two"));
  const service = {
    ...{ name: "shop", namespace: "a", hostname: "shop", vips: [], ports: { "80": 80 } },
    loadBalancer: { routingPreferences: [], mode: "Standard", healthPolicy: "OnlyHealthy", algorithm: "RoundRobin" },
  } as const;
  const workloads = [one.port, two.port].map((port) => ({
    ...{ uid: `w${port}`, name: `w${port}`, namespace: "a", workloadIps: ["127.0.0.1"], status: "healthy" as const },
    ...{ capacity: 1, services: { "a/shop": { "80": port } } },
  }));
  const target = { type: "service", key: "a/shop", port: 80 } as const;
  const backendPolicies = { sessionAffinity: { source: "request.body" } };
  await using plane = await TestPlane.start([{ target, backendPolicies }], { services: [service], workloads });
  const client = await RawPeer.connect(plane.port);
  /** Which endpoint gets a request with this body. */
  const endpointOf = async (body: string): Promise<string> => {
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    return (await client.message()).body;
  };
  const bodies = Array.from({ length: 16 }, (_, i) => `session ${i}`);
  const endpoints = [];
  for (const body of bodies) {
    const endpoint = await endpointOf(body);
    assert.equal(await endpointOf(body), endpoint, body);
    endpoints.push(endpoint);
  }
  assert.deepEqual([...new Set(endpoints)].sort(), ["one", "two"]);
  client.socket.destroy();
});
