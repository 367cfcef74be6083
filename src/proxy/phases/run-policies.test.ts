import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane } from "../../../test/helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply } from "../../../test/helpers/raw-peer.ts";
import type { CompiledPolicy } from "../../policies/compile.ts";
import { type CompiledChain, NO_POLICIES } from "../../policies/compile.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { responsePolicies } from "./run-policies.ts";

/** What of an exchange the response policies use; `policies`: of its route. */
function exchangeWith(policies: readonly Partial<CompiledPolicy>[], call: { answeredAt: number } | undefined) {
  const routePolicies: CompiledChain = { ...NO_POLICIES, response: policies as CompiledPolicy[] };
  return {
    closed: false,
    selected: { route: {}, routePolicies, backend: undefined, listener: undefined },
    responseSide: { head: { status: 200, headers: [] }, hold() {} },
    call,
    trace: undefined,
  };
}

/** An exchange with a policy that waits before one that must see an open exchange. */
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

test("response policies stop when the exchange has closed while one of them waited", async () => {
  const { exchange, ran, answer, done } = waitingExchange();
  exchange.closed = true;
  answer();
  await done;
  assert.deepEqual(ran, []);
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
