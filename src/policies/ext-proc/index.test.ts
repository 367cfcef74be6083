import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type Answer, BODY_MODES } from "../../../test/helpers/envoy/ext-proc.ts";
import { extProcAt, startProcessor } from "../../../test/helpers/envoy/processor.ts";
import { GrpcServer } from "../../../test/helpers/grpc-server.ts";
import { ms } from "../../base/durations.ts";
import type { HttpResponse, LocalReply } from "../../http/message/message.ts";
import type { CompiledPolicy } from "../compile.ts";
import { TestCallouts } from "../testing/callouts.ts";
import {
  answerOf,
  contextOf,
  creatorOf,
  loggedText,
  RecordedTrace,
  rejectionOf,
  type TestContext,
} from "../testing/context.ts";
import { extProc } from "./index.ts";
import type { ExtProc, ExtProcOptions } from "./schema.ts";

const create = creatorOf(extProc);

const calls = new TestCallouts();
after(() => calls[Symbol.dispose]());

const HEADERS = { requestHeaderMode: "send" } as const;

interface More extends Partial<Omit<ExtProc, "processingOptions">> {
  readonly phase?: "gateway" | "route";
}

function policy(
  port: number,
  options: Partial<ExtProcOptions>,
  { phase = "route", ...more }: More = {},
): CompiledPolicy {
  return create(extProcAt(port, options, more), { ...calls.deps, phase });
}

const run = (each: CompiledPolicy, context: TestContext): Promise<LocalReply | undefined> => answerOf(each, context);

const setting = (key: string, value: string) => ({
  response: { header_mutation: { set_headers: [{ header: { key, raw_value: Buffer.from(value) } }] } },
});

test("headers of both sides are changed within one call, which ends with the exchange", async () => {
  await using service = await startProcessor(({ request_headers }) =>
    request_headers !== undefined
      ? [{ request_headers: setting("x-seen", "request"), dynamic_metadata: { team: "blue" } }]
      : [{ response_headers: setting(":status", "201") }],
  );
  const each = policy(service.port, { ...HEADERS, responseHeaderMode: "send" });
  const context = contextOf({ headers: ["x-a", "b"] });
  assert.equal(await run(each, context), undefined);
  assert.deepEqual(context.request.headers, ["x-a", "b", "x-seen", "request"]);
  assert.deepEqual(context.requestMetadata.extproc, { team: "blue" });
  const response: HttpResponse = { status: 200, headers: ["content-length", "0"] };
  await each.onResponse?.(context, response);
  assert.equal(response.status, 201);
  const [first] = service.questions;
  // NONE, the default, has no bytes.
  assert.deepEqual(first?.protocol_config, {});
  assert.equal(first?.request_headers?.end_of_stream, true);
  context.end();
  await service.cancelled;
});

test("fields that a service must not change stay, and the trace says so", async () => {
  await using service = await startProcessor(() => [
    {
      request_headers: {
        response: {
          header_mutation: {
            set_headers: ["transfer-encoding", ":path", "bad name", ":method"].map((key) => ({
              header: { key, raw_value: Buffer.from("no good") },
            })),
            remove_headers: ["host", ":path", "content-length"],
          },
        },
      },
    },
  ]);
  const trace = new RecordedTrace();
  const context = contextOf({ headers: ["content-length", "0"] }, { trace });
  await run(policy(service.port, HEADERS), context);
  const { headers, path, method, authority } = context.request;
  assert.deepEqual(
    [headers, path, method, authority],
    [["content-length", "0"], "/shop/cart", "GET", "example.com:8080"],
  );
  assert.match(JSON.stringify(trace.events), /":method of the service is not used/);
});

test("clear_route_cache: before the route is chosen there is nothing to clear; afterwards the trace says that the route stays", async () => {
  await using service = await startProcessor(() => [
    { request_headers: { response: { clear_route_cache: true, ...setting(":path", "/other").response } } },
  ]);
  for (const [phase, told] of [
    ["gateway", false],
    ["route", true],
  ] as const) {
    const trace = new RecordedTrace();
    const context = contextOf({}, { trace });
    await run(policy(service.port, HEADERS, { phase }), context);
    assert.equal(context.request.path, "/other");
    assert.equal(JSON.stringify(trace.events).includes("clear_route_cache"), told, phase);
  }
});

test("a service may ask for more time, once for each message, up to ten times the configured timeout", async () => {
  const wants = (seconds: number, nanos = 0): Answer => ({ override_message_timeout: { seconds, nanos } });
  const ok: Answer = { request_headers: {} };
  const cases: [answers: (Answer | number)[], timeout: number, passes: boolean][] = [
    [[wants(10), 1500, ok], 1000, true],
    [[1500, ok], 1000, false],
    // More than ten times, less than a millisecond, and a second extension are ignored.
    [[wants(11), 1500, ok], 1000, false],
    [[wants(0, 1000), 10, ok], 5000, true],
    [[wants(0, 100_000_000), wants(10), 1500, ok], 1000, false],
  ];
  const outcomes = cases.map(async ([answers, timeout, passes]) => {
    await using service = await startProcessor(() => answers);
    const outcome = run(policy(service.port, HEADERS, { timeout: ms(timeout) }), contextOf());
    if (passes) assert.equal(await outcome, undefined);
    else assert.match(loggedText(await rejectionOf(outcome)), /sent nothing about the request in time/);
  });
  await Promise.all(outcomes);
});

test("modes: the service can override those of the rest of the exchange, if allowed", async () => {
  const override = { request_body_mode: 2, response_header_mode: 2, response_body_mode: 2 };
  await using service = await startProcessor(({ request_headers, request_body, response_body }) => {
    const body_mutation = { body: Buffer.from("other") };
    if (request_headers !== undefined) return [{ request_headers: {}, mode_override: override }];
    if (request_body !== undefined) return [{ request_body: { response: { body_mutation } } }];
    return response_body === undefined ? [] : [{ response_body: { response: {} } }];
  });
  const asked = async (allowModeOverride: boolean): Promise<string[]> => {
    service.questions.length = 0;
    const each = policy(service.port, { ...HEADERS, allowModeOverride });
    const context = contextOf({ method: "POST", headers: ["content-length", "4"] }, { body: "body" });
    await run(each, context);
    await each.onResponse?.(context, { status: 200, headers: ["content-length", "0"] });
    return service.questions.map((question) => Object.keys(question)[0] ?? "");
  };
  assert.deepEqual(await asked(true), ["request_headers", "request_body"]);
  assert.deepEqual(await asked(false), ["request_headers"]);
});

test("the first message about a side says how its body is sent, also without headers", async () => {
  await using service = await startProcessor(() => [{ request_body: { response: {} } }]);
  const context = contextOf({ method: "POST", headers: ["content-length", "4"] }, { body: "body" });
  await run(policy(service.port, { requestBodyMode: "buffered" }), context);
  assert.deepEqual(service.questions[0]?.protocol_config, { request_body_mode: BODY_MODES.buffered });
});

test("responses without anything to process are not held", () => {
  const headersAlone = policy(9, HEADERS);
  assert.equal(headersAlone.onResponse, undefined);
  const trailers = policy(9, { ...HEADERS, responseTrailerMode: "send" });
  const response = { status: 200, headers: ["content-length", "5"] };
  assert.equal(trailers.onResponse?.(contextOf(), response), undefined);
});

test("an immediate response to a gRPC client is a status: that of the service, or the nearest", async () => {
  const body = Buffer.from("not you");
  const immediate = (more: object): Answer => ({ immediate_response: { status: { code: 403 }, body, ...more } });
  const headers = ["content-type", "application/grpc"];
  for (const [answer, status] of [
    [immediate({}), "7"],
    [immediate({ grpc_status: { status: 16 } }), "16"],
  ] as const) {
    await using service = await startProcessor(() => [answer]);
    const denied = await rejectionOf(
      policy(service.port, HEADERS).onRequest?.(contextOf({ headers })) as Promise<unknown>,
    );
    assert.equal(denied.code, "TG_EXT_PROC_DENIED");
    const reply = await run(policy(service.port, HEADERS), contextOf({ headers }));
    assert.deepEqual(
      [reply?.status, reply?.headers, reply?.body],
      [200, [...headers, "grpc-status", status, "grpc-message", "not%20you"], ""],
    );
    const plain = await run(policy(service.port, HEADERS), contextOf());
    assert.deepEqual(
      [plain?.status, Buffer.from(plain?.body ?? "").toString(), plain?.reason],
      [403, "not you", "ExtProc"],
    );
  }
});

test("if the service cannot be reached, the request fails or continues without it", async () => {
  const gone = await GrpcServer.start({});
  gone.stop();
  const error = await rejectionOf(run(policy(gone.port, HEADERS), contextOf()));
  assert.deepEqual([error.code, error.status], ["TG_EXT_PROC", 500]);
  const open = policy(gone.port, { ...HEADERS, responseHeaderMode: "send" }, { failureMode: "failOpen" });
  const context = contextOf();
  assert.equal(await run(open, context), undefined);
  const response = { status: 200, headers: [] };
  await open.onResponse?.(context, response);
  assert.deepEqual(response, { status: 200, headers: [] });
});

test("responses that were not requested, and bytes that are not a message, fail the exchange", async () => {
  await using service = await startProcessor(() => [{ response_headers: {} }]);
  assert.match(
    loggedText(await rejectionOf(run(policy(service.port, HEADERS), contextOf()))),
    /the service sent an unexpected message about the request/,
  );
});

test("an unreadable response ends the request, even with failOpen: it may have been an immediate response", async () => {
  const body = "x".repeat(5 * 1024 * 1024);
  await using service = await startProcessor(() => [
    { immediate_response: { status: { code: 403 }, body: Buffer.from(body) } },
  ]);
  const error = await rejectionOf(run(policy(service.port, HEADERS, { failureMode: "failOpen" }), contextOf()));
  assert.equal(error.code, "TG_EXT_PROC");
});
