import assert from "node:assert/strict";
import { test } from "node:test";
import { GrpcServer } from "../../test/helpers/grpc-server.ts";
import { GatewayError } from "../base/errors.ts";
import { GrpcChannel } from "./grpc-channel.ts";

const ECHO = "/test.Echo/Say";
const never = (): void => {};

test("messages go both ways; a closed channel serves those who come late", async () => {
  await using server = await GrpcServer.start({ [ECHO]: { unary: (message) => message } });
  const channel = new GrpcChannel({ host: "127.0.0.1", port: server.port });
  const ask = async () => Buffer.from(await channel.unary(ECHO, Buffer.from("hello"), 5000, never)).toString();
  assert.equal(await ask(), "hello");
  channel.close();
  assert.equal(await ask(), "hello");
});

test("failures and deadlines are told apart, with what the service says as their cause", async () => {
  await using server = await GrpcServer.start({
    [ECHO]: { unary: () => Promise.reject(new Error("no voice")) },
    "/test.Echo/Wait": { unary: () => new Promise(() => {}) },
  });
  const channel = new GrpcChannel({ host: "127.0.0.1", port: server.port });
  const failure = await channel.unary(ECHO, Buffer.alloc(0), 5000, never).catch((error: unknown) => error);
  assert.ok(failure instanceof GatewayError && failure.cause instanceof Error);
  assert.equal(failure.code, "TG_UPSTREAM_FAILED");
  assert.match(failure.cause.message, /no voice/);
  const late = await channel.unary("/test.Echo/Wait", Buffer.alloc(0), 20, never).catch((error: unknown) => error);
  assert.ok(late instanceof GatewayError);
  assert.equal(late.code, "TG_UPSTREAM_TIMEOUT");
  channel.close();
});
