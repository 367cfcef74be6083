import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { ExtProc, ExtProcOptions } from "../../../src/policies/ext-proc/schema.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { TestPlane, type TestRoute } from "../../helpers/data-plane.ts";
import type { Answer, Question } from "../../helpers/envoy/ext-proc.ts";
import { extProcAt, startProcessor } from "../../helpers/envoy/processor.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

/** Trailers are sent, as by default. */
const WITH_TRAILERS = { requestTrailerMode: "send", responseTrailerMode: "send" } as const;

function policy(port: number, options: Partial<ExtProcOptions>, more: Partial<ExtProc> = {}): PolicySet {
  return { extProc: extProcAt(port, { ...WITH_TRAILERS, ...options }, more) };
}

const upper = (bytes: Uint8Array | undefined) =>
  Buffer.from(
    Buffer.from(bytes ?? [])
      .toString()
      .toUpperCase(),
  );

/** Responds to every message; pieces of bodies come back in capitals. */
function shouting(question: Question): Answer[] {
  const { request_headers, response_headers, request_body, response_body, request_trailers, response_trailers } =
    question;
  const streamed = (body: NonNullable<Question["request_body"]>) => ({
    response: {
      body_mutation: {
        streamed_response: { body: upper(body.body), ...(body.end_of_stream === true && { end_of_stream: true }) },
      },
    },
  });
  if (request_headers !== undefined) return [{ request_headers: {} }];
  if (response_headers !== undefined) return [{ response_headers: {} }];
  if (request_body !== undefined) return [{ request_body: streamed(request_body) }];
  if (response_body !== undefined) return [{ response_body: streamed(response_body) }];
  if (request_trailers !== undefined) return [{ request_trailers: {} }];
  return response_trailers === undefined ? [] : [{ response_trailers: {} }];
}

const echo = () =>
  RawUpstream.answering((request) =>
    reply(`${request.fields.filter((line) => line.startsWith("x-")).join()}|${request.body}`, ["x-upstream: yes"]),
  );
const route = (port: number, policies: PolicySet): TestRoute[] => [
  { target: { type: "static", host: "127.0.0.1", port }, policies },
];

const post = (body: string, fields = "") =>
  `POST /a HTTP/1.1\r\nHost: shop.example\r\n${fields}Content-Length: ${body.length}\r\n\r\n${body}`;

test("headers: the service gets and changes both sides, with attributes and metadata; expressions read its metadata", async () => {
  await using service = await startProcessor(({ request_headers, response_headers }) => {
    const header_mutation = (name: string, value: string) => ({
      set_headers: [{ header: { key: name, raw_value: Buffer.from(value) } }],
      remove_headers: ["x-secret", "x-upstream"],
    });
    if (request_headers !== undefined)
      return [
        {
          request_headers: { response: { header_mutation: header_mutation("x-user", "ann") } },
          dynamic_metadata: { team: "blue" },
        },
      ];
    if (response_headers === undefined) return [];
    const mutation = header_mutation("x-done", "yes");
    mutation.set_headers.push({ header: { key: ":status", raw_value: Buffer.from("201") } });
    return [{ response_headers: { response: { header_mutation: mutation } } }];
  });
  await using upstream = await echo();
  const more = {
    requestAttributes: { method: "request.method" },
    metadataContext: { own: { path: "request.path" } },
  };
  await using plane = await TestPlane.start(
    route(upstream.port, {
      ...policy(service.port, { requestHeaderMode: "send", responseHeaderMode: "send" }, more),
      transformations: { request: { set: { "x-team": "extproc.team" } } },
    }),
  );
  const response = await RawPeer.ask(plane.port, post("hi", "X-Secret: s\r\nX-User: forged\r\n"));
  assert.deepEqual([statusOf(response), response.body], [201, "x-user: ann,x-team: blue|hi"]);
  assert.deepEqual([valuesOf(response, "x-done"), valuesOf(response, "x-upstream")], [["yes"], []]);
  const [first, second] = service.questions;
  assert.equal(first?.attributes?.["envoy.filters.http.ext_proc"]?.method, "POST");
  assert.equal(first?.metadata_context?.filter_metadata?.own?.path, "/a");
  const sent = first?.request_headers?.headers?.headers?.map(
    ({ key, raw_value }) => `${key}=${Buffer.from(raw_value ?? [])}`,
  );
  assert.ok(sent?.includes(":path=/a") && sent.includes("x-secret=s"));
  assert.equal(Buffer.from(second?.response_headers?.headers?.headers?.[0]?.raw_value ?? []).toString(), "200");
});

test("buffered bodies are replaced on both sides; one that is too long is rejected", async () => {
  await using service = await startProcessor(({ request_body, response_body }) => {
    const body_mutation = { body: upper(request_body?.body ?? response_body?.body) };
    return [
      request_body === undefined
        ? { response_body: { response: { body_mutation } } }
        : { request_body: { response: { body_mutation } } },
    ];
  });
  await using upstream = await echo();
  const options = { requestBodyMode: "buffered", responseBodyMode: "buffered" } as const;
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port, options)), {
    frontend: { maxBufferSize: 20 },
  });
  const response = await RawPeer.ask(plane.port, post("hello", "x-a: b\r\n"));
  assert.equal(response.body, "X-A: B|HELLO");
  assert.equal(valuesOf(response, "content-length").join(), "12");
  assert.equal(statusOf(await RawPeer.ask(plane.port, post("x".repeat(21)))), 413);
});

test("bufferedPartial: the part that fits the buffer is replaced, the rest follows", async () => {
  await using service = await startProcessor(({ request_body }) => [
    { request_body: { response: { body_mutation: { body: Buffer.from(`<${request_body?.body?.length}>`) } } } },
  ]);
  await using upstream = await echo();
  await using plane = await TestPlane.start(
    route(upstream.port, policy(service.port, { requestBodyMode: "bufferedPartial" })),
    { frontend: { maxBufferSize: 4 } },
  );
  assert.equal((await RawPeer.ask(plane.port, post("abcdefgh"))).body, "|<4>efgh");
  assert.equal((await RawPeer.ask(plane.port, post("ab"))).body, "|<2>");
});

test("streamed bodies come back changed with their trailers, also long ones", async () => {
  await using service = await startProcessor(shouting);
  await using upstream = await echo();
  const streamed = "fullDuplexStreamed" as const;
  const options = {
    requestHeaderMode: "send",
    responseHeaderMode: "send",
    requestBodyMode: streamed,
    responseBodyMode: streamed,
  } as const;
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port, options)));
  assert.equal((await RawPeer.ask(plane.port, post("hello"))).body, "|HELLO");
  const long = "abcdefgh".repeat(64 * 1024);
  const response = await RawPeer.ask(plane.port, post(long));
  assert.equal(response.body.length, long.length + 1);
  assert.equal(response.body, `|${long.toUpperCase()}`);
  const chunked = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n";
  service.questions.length = 0;
  assert.equal((await RawPeer.ask(plane.port, chunked)).body, "|ABC");
  assert.ok(service.questions.some(({ request_trailers }) => request_trailers !== undefined));
  assert.equal((await RawPeer.ask(plane.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")).body, "|");
});

test("a service may wait for the whole body before it responds to the headers", async () => {
  const pieces: Uint8Array[] = [];
  await using service = await startProcessor(({ request_body }) => {
    if (request_body === undefined) return [];
    pieces.push(request_body.body ?? new Uint8Array(0));
    if (request_body.end_of_stream !== true) return [];
    const set_headers = [{ header: { key: "x-size", value: String(Buffer.concat(pieces).length) } }];
    const streamed_response = { body: Buffer.concat(pieces), end_of_stream: true };
    return [
      { request_headers: { response: { header_mutation: { set_headers } } } },
      { request_body: { response: { body_mutation: { streamed_response } } } },
    ];
  });
  await using upstream = await echo();
  const options = { requestHeaderMode: "send", requestBodyMode: "fullDuplexStreamed" } as const;
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port, options)));
  assert.equal((await RawPeer.ask(plane.port, post("hello"))).body, "x-size: 5|hello");
});

test("an immediate response goes to the client, on either side and in the middle of a body", async () => {
  const immediate = (body: string): Answer => ({
    immediate_response: {
      status: { code: 418 },
      headers: { set_headers: [{ header: { key: "x-why", value: "tea" } }] },
      body: Buffer.from(body),
    },
  });
  await using service = await startProcessor((question) => {
    if (question.request_headers?.end_of_stream === true) return [immediate("at once")];
    if (question.response_headers !== undefined) return [immediate("afterwards")];
    if (question.request_body !== undefined) return [immediate("in between")];
    return [{ request_headers: {} }];
  });
  await using upstream = await echo();
  const seen: string[] = [];
  for (const [options, request] of [
    [{ requestHeaderMode: "send" }, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"],
    [{ responseHeaderMode: "send" }, post("x")],
    [{ requestHeaderMode: "send", requestBodyMode: "buffered" }, post("x")],
    [{ requestHeaderMode: "send", requestBodyMode: "fullDuplexStreamed" }, post("x")],
  ] as const) {
    await using plane = await TestPlane.start(route(upstream.port, policy(service.port, options)));
    const response = await RawPeer.ask(plane.port, request);
    seen.push(`${statusOf(response)} ${valuesOf(response, "x-why").join()} ${response.body}`);
  }
  assert.deepEqual(seen, ["418 tea at once", "418 tea afterwards", "418 tea in between", "418 tea in between"]);
});

test("a response of the service that is no error replaces that of the backend, and the log has its reason alone", async () => {
  const body = Buffer.from("of the service");
  await using service = await startProcessor(() => [{ immediate_response: { status: { code: 203 }, body } }]);
  await using upstream = await echo();
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port, { responseHeaderMode: "send" })));
  const response = await RawPeer.ask(plane.port, post("x"));
  assert.deepEqual([statusOf(response), response.body], [203, "of the service"]);
  const { reason, error } = await plane.logged('"http.status":203');
  assert.deepEqual([reason, error], ["ExtProc", undefined]);
});

test("a request body that the service cannot get as a whole is too long for the gateway, whatever failureMode says", async () => {
  await using service = await startProcessor(() => [{ request_headers: {} }]);
  await using upstream = await echo();
  const buffered = policy(service.port, { requestBodyMode: "buffered" }, { failureMode: "failOpen" });
  await using plane = await TestPlane.start(route(upstream.port, buffered), { frontend: { maxBufferSize: 4 } });
  assert.equal(statusOf(await RawPeer.ask(plane.port, post("longer"))), 413);
  await plane.logged("content too large: the request body is longer than 4 bytes (maxBufferSize)");
});

test("the service may change the modes if that is allowed", async () => {
  await using service = await startProcessor(({ request_headers, request_body }) =>
    request_headers !== undefined
      ? [{ request_headers: {}, mode_override: { request_body_mode: 2 } }]
      : [{ request_body: { response: { body_mutation: { body: upper(request_body?.body) } } } }],
  );
  await using upstream = await echo();
  const options = { requestHeaderMode: "send" } as const;
  await using plane = await TestPlane.start(
    route(upstream.port, policy(service.port, { ...options, allowModeOverride: true })),
  );
  assert.equal((await RawPeer.ask(plane.port, post("abc"))).body, "|ABC");
  await plane.configure(route(upstream.port, policy(service.port, options)));
  assert.equal((await RawPeer.ask(plane.port, post("abc"))).body, "|abc");
});

test("a service that fails: 500, or the request continues without it if it has no part of the body", async () => {
  await using upstream = await echo();
  await using ending = await startProcessor(() => "end");
  await using silent = await startProcessor(() => []);
  const gone = await GrpcServer.start({});
  gone.stop();
  const options = { requestHeaderMode: "send" } as const;
  for (const [port, reason] of [
    [ending.port, "the service ended the call without a message about the request"],
    [silent.port, "the service sent nothing about the request in time"],
    [gone.port, "the request could not be sent to the service: "],
  ] as const) {
    const timeout = ms(port === silent.port ? 50 : 5000);
    await using plane = await TestPlane.start(route(upstream.port, policy(port, options, { timeout })));
    const refused = await RawPeer.ask(plane.port, post("abc"));
    assert.deepEqual([statusOf(refused), refused.body], [500, "ext_proc failed"]);
    await plane.logged(`ext_proc failed: ${reason}`);
    const open = { timeout, failureMode: "failOpen" } as const;
    await plane.configure(route(upstream.port, policy(port, options, open)));
    assert.equal((await RawPeer.ask(plane.port, post("abc"))).body, "|abc");
    await plane.configure(route(upstream.port, policy(port, { requestBodyMode: "fullDuplexStreamed" }, open)));
    // It has taken a part of the body, which is lost for the backend.
    assert.equal(statusOf(await RawPeer.ask(plane.port, post("abc"))), 500);
  }
});

test("the gateway's own responses are not sent to the service", async () => {
  await using service = await startProcessor(shouting);
  const policies = { ...policy(service.port, { responseHeaderMode: "send" }), directResponse: { status: 204 } };
  await using plane = await TestPlane.start(route(1, policies));
  assert.equal(statusOf(await RawPeer.ask(plane.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")), 204);
  assert.deepEqual(service.questions, []);
});

test("alternatives: the one chosen for the request also processes its response", async () => {
  await using service = await startProcessor(shouting);
  await using upstream = await echo();
  const { extProc } = policy(service.port, { responseBodyMode: "fullDuplexStreamed" });
  const conditional = [{ condition: "request.method == 'POST'", ...(extProc as ExtProc) }];
  await using plane = await TestPlane.start(route(upstream.port, { extProc: { conditional } }));
  assert.equal((await RawPeer.ask(plane.port, post("hello"))).body, "|HELLO");
  assert.equal(
    (await RawPeer.ask(plane.port, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")).body,
    "|hello",
  );
});

test("failClosed: the response has neither fields nor body of the backend's response", async () => {
  await using upstream = await RawUpstream.answering(() =>
    reply("of the backend", ["Set-Cookie: session=1", "X-Backend: yes", "ETag: abc"]),
  );
  await using ending = await startProcessor(() => "end");
  for (const options of [
    { responseHeaderMode: "send" },
    { responseBodyMode: "buffered" },
    { responseHeaderMode: "send", responseBodyMode: "fullDuplexStreamed" },
  ] as const) {
    await using plane = await TestPlane.start(route(upstream.port, policy(ending.port, options)));
    const response = await RawPeer.ask(plane.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.deepEqual([statusOf(response), response.body], [500, "ext_proc failed"]);
    for (const name of ["set-cookie", "x-backend", "etag"]) assert.deepEqual(valuesOf(response, name), [], name);
    assert.deepEqual(valuesOf(response, "content-length"), ["15"]);
  }
});

test("failOpen applies until the service has a part of the body; later failures end the request", async () => {
  await using upstream = await RawUpstream.answering((request) => reply(request.body));
  // It takes the first piece, and ends the call instead of giving anything back.
  const taking = (): ReturnType<typeof startProcessor> =>
    startProcessor(({ request_body, response_body }) => ((request_body ?? response_body) === undefined ? [] : "end"));
  const open = { failureMode: "failOpen" } as const;

  await using first = await taking();
  await using plane = await TestPlane.start(
    route(upstream.port, policy(first.port, { requestBodyMode: "fullDuplexStreamed" }, open)),
  );
  const refused = await RawPeer.ask(plane.port, post("abc"));
  assert.deepEqual([statusOf(refused), refused.body], [500, "ext_proc failed"]);

  // Also when it fails later, at the head of the response.
  await using later = await startProcessor((question) =>
    question.response_headers === undefined ? shouting(question) : "end",
  );
  const modes = { requestBodyMode: "fullDuplexStreamed", responseHeaderMode: "send" } as const;
  await plane.configure(route(upstream.port, policy(later.port, modes, open)));
  assert.equal(statusOf(await RawPeer.ask(plane.port, post("abc"))), 500);

  // The head of the response has been sent: the response breaks off, instead of ending as if complete without the service's part.
  await using second = await taking();
  await plane.configure(route(upstream.port, policy(second.port, { responseBodyMode: "fullDuplexStreamed" }, open)));
  const client = await RawPeer.connect(plane.port);
  client.send(post("abc"));
  await client.closed();
  assert.doesNotMatch(client.received, /abc|\r\n0\r\n/);
  await plane.logged("ext_proc failed: the service ended the call without a message about the response");
});
