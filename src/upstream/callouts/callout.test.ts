import assert from "node:assert/strict";
import { test } from "node:test";
import { GrpcServer } from "../../../test/helpers/grpc-server.ts";
import { RawUpstream, reply, valuesOf } from "../../../test/helpers/raw-peer.ts";
import { GatewayError } from "../../base/errors.ts";
import { Sweeper } from "../../base/sweeper.ts";
import { latin1 } from "../../http/message/syntax.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { SingleEndpoint } from "../balancers/balancer.ts";
import { Endpoints } from "../endpoints/endpoints.ts";
import { Pools } from "../pools/pools.ts";
import { Resolver } from "../resolve/resolver.ts";
import { Callout, NEEDS_STATUS, NO_UPSTREAM, type PrepareCallout } from "./callout.ts";
import { type CalloutRequest, NEEDS_BODY } from "./http-call.ts";

const ECHO = "/test.Echo/Say";
const REQUEST: CalloutRequest = {
  method: "GET",
  path: "/a?b",
  headers: ["x-a", "1"],
  body: new Uint8Array(0),
  timeoutMs: 5000,
  maxBytes: 1000,
  headDecides: NEEDS_BODY,
};

/** A callout to a port of 127.0.0.1; closed at the end of its block. */
function calling(port: number, prepare?: PrepareCallout<string>) {
  const sweeper = new Sweeper();
  const settings = { connectTimeout: 10_000, idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 };
  const endpoints = new Endpoints(
    new Pools(settings, new Resolver("All", ANYWHERE), { onConnected: () => {} }, sweeper),
  );
  const endpoint = endpoints.acquire({ host: "127.0.0.1", port }, 1);
  const callout = new Callout(new SingleEndpoint(endpoint), prepare);
  return {
    callout,
    [Symbol.dispose]: () => {
      endpoints.release([endpoint]);
      sweeper.close();
    },
  };
}

/** A context whose observer records its events. */
function contextFor(calloutContext: string) {
  const told: string[] = [];
  const cancellations: (() => void)[] = [];
  const observer = {
    started: () => told.push("started"),
    ended: (status: number | null, error: string | null) => told.push(`${status} ${error}`),
  };
  return {
    calloutContext,
    observer,
    told,
    onCancel: (callback: () => void) => void cancellations.push(callback),
    cancel: () => {
      for (const callback of cancellations) callback();
    },
  };
}

async function failure(outcome: Promise<unknown>): Promise<string> {
  const error: unknown = await outcome.catch((reason: unknown) => reason);
  assert.ok(error instanceof GatewayError);
  return `${error.code}: ${error.cause instanceof Error ? error.cause.message : ""}`;
}

test("the function that prepares a call sees its context, and may change all of its head", async () => {
  await using upstream = await RawUpstream.answering((request) =>
    reply(`${request.start.split(" ")[1]} ${valuesOf(request, "host").join()} ${valuesOf(request, "x-a").join()}`),
  );
  using one = calling(upstream.port, async (head, calloutContext) => {
    assert.deepEqual([head.path, head.search, head.authority], ["/a", "?b", ""]);
    await Promise.resolve();
    head.search += "&key=1";
    head.authority = "named.example";
    head.headers = [...head.headers, "x-a", calloutContext ?? "nobody"];
  });
  const { body } = await one.callout.http(REQUEST, contextFor("ann"));
  assert.equal(body.toString(), "/a?b&key=1 named.example 1,ann");
  assert.deepEqual(REQUEST.headers, ["x-a", "1"]);
});

test("gRPC calls carry headers as metadata, and the authority that they are given", async () => {
  const seen: unknown[] = [];
  await using server = await GrpcServer.start({
    [ECHO]: {
      unary(message, metadata, authority) {
        seen.push(authority, metadata.get("x-a"), metadata.get("x-b-bin"));
        return message;
      },
    },
  });
  using one = calling(server.port, (head) => {
    head.authority = "named.example";
    head.headers.push("x-a", latin1("1"));
    head.headers.push("x-a", latin1("2"));
    head.headers.push("x-b-bin", latin1("AQI="));
  });
  const answer = await one.callout.unary(ECHO, Buffer.from("hi"), 5000, NEEDS_STATUS, contextFor("ann"));
  assert.equal(Buffer.from(answer).toString(), "hi");
  assert.deepEqual(seen, ["named.example", ["1, 2"], [Buffer.from([1, 2])]]);
});

test("a header that gRPC cannot carry fails the call, and the error shows its name alone", async () => {
  await using server = await GrpcServer.start({ [ECHO]: { unary: (message) => message } });
  for (const [name, value] of [
    ["authorization", "Bearer s\u00e9cret"],
    ["x!", "secret"],
  ] as const) {
    using one = calling(server.port, (head) => void head.headers.push(name, latin1(value)));
    const why = await failure(one.callout.unary(ECHO, Buffer.alloc(0), 5000, NEEDS_STATUS, contextFor("ann")));
    assert.equal(why, `TG_UPSTREAM_FAILED: gRPC cannot carry the header ${name}`);
  }
});

test("preparing that takes too long, fails or is cancelled makes no call", async () => {
  await using server = await GrpcServer.start({ [ECHO]: { unary: () => assert.fail("nobody may call") } });
  using late = calling(server.port, () => new Promise(() => {}));
  const context = contextFor("ann");
  const inTime = "TG_UPSTREAM_TIMEOUT: the credentials for the call were not ready in time";
  assert.equal(await failure(late.callout.unary(ECHO, Buffer.alloc(0), 20, NEEDS_STATUS, context)), inTime);
  assert.equal(await failure(late.callout.http({ ...REQUEST, timeoutMs: 20 }, context)), inTime);
  const events = { onMessage() {}, onDrain() {}, onEnd() {} };
  assert.equal(await failure(late.callout.stream(ECHO, events, 20, context)), inTime);

  using failing = calling(server.port, () =>
    Promise.reject(new GatewayError("TG_BACKEND_AUTH", undefined, new Error("no token"))),
  );
  assert.equal(
    await failure(failing.callout.unary(ECHO, Buffer.alloc(0), 5000, NEEDS_STATUS, context)),
    "TG_BACKEND_AUTH: no token",
  );

  const prepared = Promise.withResolvers<void>();
  using waiting = calling(server.port, () => prepared.promise);
  const outcome = waiting.callout.unary(ECHO, Buffer.alloc(0), 5000, NEEDS_STATUS, context);
  context.cancel();
  prepared.resolve();
  const turn = new Promise<string>((resolve) => setImmediate(() => resolve("still waiting")));
  assert.equal(await Promise.race([outcome, turn]), "still waiting");
  assert.deepEqual(context.told, []);
});

test("a service without endpoints cannot be called", async () => {
  const context = { onCancel: () => {}, observer: undefined };
  assert.equal(await failure(NO_UPSTREAM.http(REQUEST, context)), "TG_NO_HEALTHY_BACKENDS: ");
  assert.equal(
    await failure(NO_UPSTREAM.unary(ECHO, Buffer.alloc(0), 5000, NEEDS_STATUS, context)),
    "TG_NO_HEALTHY_BACKENDS: ",
  );
});
