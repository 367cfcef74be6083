import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { PROCESS, ProcessingRequest, ProcessingResponse } from "../../../test/helpers/envoy/ext-proc.ts";
import { GrpcServer } from "../../../test/helpers/grpc-server.ts";
import { process } from "../envoy/methods.ts";
import { TestCallouts } from "../testing/callouts.ts";
import { contextOf } from "../testing/context.ts";
import { Session } from "./session.ts";

test("until the call is open, a body waits at the client, not in memory", async () => {
  using calls = new TestCallouts();
  const received: (number | undefined)[] = [];
  const opened = Promise.withResolvers<NodeJS.EventEmitter>();
  await using service = await GrpcServer.start({
    [PROCESS]: {
      stream(call) {
        call.on("data", (message: Buffer) => received.push(ProcessingRequest.decode(message).request_body?.body?.[0]));
        call.on("error", () => {});
        opened.resolve(call);
      },
    },
  });
  const context = contextOf();
  const target = { type: "static", host: "127.0.0.1", port: service.port } as const;
  const session = new Session(calls.callouts(target), process, context, 5000, "route");
  const drained = Promise.withResolvers<void>();
  session.listen("requestBody", {
    onResponse() {},
    onFailure: drained.reject,
    onSendDrain: drained.resolve,
    congested: false,
  });
  const send = (byte: number): boolean =>
    session.send({ request: { case: "requestBody", value: { body: Uint8Array.of(byte) } } });
  assert.deepEqual([send(1), send(2)], [false, false]);
  await drained.promise;
  assert.equal(send(3), true);
  const call = await opened.promise;
  while (received.length < 3) await once(call, "data");
  assert.deepEqual(received, [1, 2, 3]);
  context.end();
});

test("an immediate response that no part waits for is kept, and ends the call to the service", async () => {
  using calls = new TestCallouts();
  const cancelled = Promise.withResolvers<void>();
  await using service = await GrpcServer.start({
    [PROCESS]: {
      stream(call) {
        call.on("data", () => {
          call.write(ProcessingResponse.encode({ immediate_response: { status: { code: 403 } } }));
        });
        call.on("error", () => {});
        call.on("cancelled", cancelled.resolve);
      },
    },
  });
  const context = contextOf();
  const target = { type: "static", host: "127.0.0.1", port: service.port } as const;
  const session = new Session(calls.callouts(target), process, context, 5000, "route");
  session.send({ request: { case: "requestBody", value: { body: Uint8Array.of(1) } } });
  const end = AbortSignal.timeout(5000);
  end.addEventListener("abort", () => cancelled.reject(new Error("the call goes on")));
  await cancelled.promise;
  assert.equal(session.immediate?.status?.code, 403);
  const next = await session.roundTrip("responseHeaders", { request: { case: "responseHeaders", value: {} } });
  assert.equal(next.response.case, "immediateResponse");
  context.end();
});
