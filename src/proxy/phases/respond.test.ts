import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { TestPlane, type TestRoute } from "../../../test/helpers/data-plane.ts";
import {
  closedPort,
  type RawMessage,
  RawPeer,
  RawUpstream,
  reply,
  statusOf,
  valuesOf,
} from "../../../test/helpers/raw-peer.ts";
import { ms } from "../../base/durations.ts";
import { GatewayError } from "../../base/errors.ts";
import type { LocalReply } from "../../http/message/message.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { Result } from "../exchange/result.ts";
import { answerInstead } from "./respond.ts";

const GRPC = "content-type: application/grpc\r\n";

async function ask(plane: TestPlane, head: string, bodiless = false): Promise<RawMessage> {
  const client = await RawPeer.connect(plane.port);
  client.send(`${head}\r\n`);
  const response = await client.message(bodiless);
  client.socket.destroy();
  return response;
}

function get(path: string, fields = ""): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}`;
}

function at(path: string, port: number, policies: PolicySet): TestRoute {
  return { path, target: { type: "static", host: "127.0.0.1", port }, policies };
}

suite("errors of the table", () => {
  test("to HTTP: text, with length and date; neither cause nor detail", async () => {
    await using plane = await TestPlane.start(await closedPort());
    const response = await ask(plane, get("/it"));
    assert.deepEqual([response.start, response.body], ["HTTP/1.1 503 Service Unavailable", "upstream call failed"]);
    assert.deepEqual(valuesOf(response, "content-type"), ["text/plain"]);
    assert.match(valuesOf(response, "date").join(), /^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/);
    assert.match(String((await plane.logged("/it")).error), /ECONNREFUSED/);
  });

  test("to HEAD: the same fields without the text", async () => {
    await using plane = await TestPlane.start(await closedPort());
    const response = await ask(plane, get("/it").replace("GET", "HEAD"), true);
    assert.deepEqual(
      [statusOf(response), valuesOf(response, "content-length")],
      [503, [String("upstream call failed".length)]],
    );
  });

  test("to gRPC: 200 with grpc-status and grpc-message, and no body", async () => {
    await using plane = await TestPlane.start([at("/it", await closedPort(), {})]);
    for (const [path, status, message] of [
      ["/it", "14", "upstream%20call%20failed"],
      ["/nowhere", "12", "route%20not%20found"],
    ] as const) {
      const response = await ask(plane, get(path, GRPC));
      assert.deepEqual([statusOf(response), response.body], [200, ""]);
      assert.deepEqual(
        ["content-type", "grpc-status", "grpc-message"].map((name) => valuesOf(response, name).join()),
        ["application/grpc", status, message],
      );
    }
  });

  test("to gRPC in another format: in that format", async () => {
    await using plane = await TestPlane.start([]);
    const response = await ask(plane, get("/nowhere", "content-type: application/grpc+json\r\n"));
    assert.deepEqual(valuesOf(response, "content-type"), ["application/grpc+json"]);
  });
});

test("a reply of a policy has a length, except where RFC 9110 8.6 forbids one", async () => {
  const direct = (status: number, body: string): PolicySet => ({ directResponse: { status, body } });
  await using plane = await TestPlane.start([
    at("/200", 1, direct(200, "ä")),
    at("/204", 1, direct(204, "")),
    at("/304", 1, direct(304, "")),
  ]);
  for (const [path, length] of [
    ["/200", ["2"]],
    ["/204", []],
    ["/304", []],
  ] as const)
    assert.deepEqual(valuesOf(await ask(plane, get(path)), "content-length"), length);
});

suite("response policies", () => {
  const MARKED: PolicySet = { responseHeaderModifier: { set: { "x-marked": "1" } } };
  const marks = (response: RawMessage): string[] => valuesOf(response, "x-marked");

  test("see the upstream's responses and the gateway's own", async () => {
    await using upstream = await RawUpstream.answering(() => reply("it"));
    await using plane = await TestPlane.start([
      at("/it", upstream.port, MARKED),
      at("/error", await closedPort(), MARKED),
      at("/direct", 1, { ...MARKED, directResponse: { status: 200, body: "it" } }),
    ]);
    for (const [path, status] of [
      ["/it", 200],
      ["/error", 503],
      ["/direct", 200],
    ] as const) {
      const response = await ask(plane, get(path));
      assert.deepEqual([statusOf(response), marks(response)], [status, ["1"]], path);
    }
  });

  test("an error that one of them throws becomes the response, and the upstream's is dropped", async () => {
    await using upstream = await RawUpstream.answering(() => reply("whole").slice(0, -1));
    const skip = "skip" as const;
    const extProc = {
      target: { type: "static", host: "127.0.0.1", port: await closedPort() },
      failureMode: "failClosed",
      metadataContext: {},
      requestAttributes: {},
      responseAttributes: {},
      timeout: ms(5000),
      processingOptions: {
        requestHeaderMode: skip,
        responseHeaderMode: "send",
        requestBodyMode: "none",
        responseBodyMode: "none",
        requestTrailerMode: skip,
        responseTrailerMode: skip,
        allowModeOverride: false,
      },
    } as const;
    await using plane = await TestPlane.start([at("/", upstream.port, { ...MARKED, extProc })]);
    const response = await ask(plane, get("/it"));
    assert.deepEqual([statusOf(response), response.body, marks(response)], [500, "ext_proc failed", []]);
    assert.equal(plane.metrics.inFlight.count, 0);
    const peer = await upstream.connection();
    await peer.until(() => false, "the end").catch(() => {});
    assert.notEqual(peer.ended, undefined);
  });
});

test("the reason is that of the reply, but a reply that comes after an error leaves the error as the reason", () => {
  const unnamed: LocalReply = { status: 403, headers: [], body: "" };
  const named: LocalReply = { ...unnamed, reason: "ExtProc" };
  const error = new GatewayError("TG_UPSTREAM_FAILED");
  for (const [answers, reason] of [
    [[named], "ExtProc"],
    [[unnamed], "DirectResponse"],
    [[error, named], "UpstreamFailure"],
    [[error, unnamed], "UpstreamFailure"],
  ] as const) {
    // What of an exchange it uses.
    const used = {
      result: new Result(),
      request: { headers: [] },
      responseSide: { replace() {} },
      deadlines: { stop() {} },
      told() {},
    };
    for (const answer of answers) answerInstead(used as unknown as Exchange, answer);
    assert.equal(used.result.reason, reason);
  }
});

test("a policy that has responded is not blamed for what happens afterwards", () => {
  const result = new Result();
  result.thrower = { policy: "extProc", phase: "route" };
  result.replied("ExtProc");
  result.blame("TG_CLIENT_TIMEOUT", "late");
  assert.equal(result.decider, undefined);
});

test("a policy that cuts a response short is what decided", () => {
  const result = new Result();
  result.thrower = { policy: "extProc", phase: "route" };
  result.cut();
  assert.deepEqual([result.error, result.decider], ["a policy aborted the response", result.thrower]);
});
