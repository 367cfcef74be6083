import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExtProc, ExtProcBodyMode, ExtProcOptions } from "../../../src/policies/ext-proc/schema.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import type { Answer, Question } from "../../helpers/envoy/ext-proc.ts";
import { extProcAt, startProcessor } from "../../helpers/envoy/processor.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { type RawMessage, RawPeer, RawUpstream, statusOf } from "../../helpers/raw-peer.ts";

const MODES: readonly ExtProcBodyMode[] = ["none", "buffered", "bufferedPartial", "fullDuplexStreamed"];

function policy(port: number, options: Partial<ExtProcOptions>, more: Partial<ExtProc> = {}): PolicySet {
  return { extProc: extProcAt(port, options, { requestAttributes: { path: "request.path" }, ...more }) };
}

/** Puts `<…>` around each body or piece of one, and replaces trailers by the result of `trailers`. */
async function processor(trailers: (side: "request" | "response") => Answer, buffered = false) {
  const reply = (question: Question): Answer => {
    const { request_body, response_body, request_trailers } = question;
    const changed = (body: NonNullable<Question["request_body"]>) => {
      const bytes = Buffer.from(`<${Buffer.from(body.body ?? [])}>`);
      const end_of_stream = body.end_of_stream === true;
      const streamed = { streamed_response: { body: body.body?.length ? bytes : Buffer.alloc(0), end_of_stream } };
      return { response: { body_mutation: buffered ? { body: bytes } : streamed } };
    };
    if (request_body !== undefined) return { request_body: changed(request_body) };
    if (response_body !== undefined) return { response_body: changed(response_body) };
    return trailers(request_trailers !== undefined ? "request" : "response");
  };
  return startProcessor((question) => [reply(question)]);
}

const mutation = (value: string) => ({
  header_mutation: {
    set_headers: [{ header: { key: "x-sum", raw_value: Buffer.from(value) } }],
    remove_headers: ["x-secret"],
  },
});
const changing = (side: "request" | "response"): Answer =>
  side === "request" ? { request_trailers: mutation("r") } : { response_trailers: mutation("s") };

const CHUNKED_REQUEST =
  "POST /a HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 1\r\nx-secret: 2\r\n\r\n";
const CHUNKED_RESPONSE =
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxyz\r\n0\r\nx-sum: 3\r\nx-secret: 4\r\n\r\n";

/** An upstream whose responses have trailers; it records its requests. */
async function answering() {
  const asked: RawMessage[] = [];
  const upstream = await RawUpstream.listen(async (peer) => {
    for (;;) {
      asked.push(await peer.message());
      peer.send(CHUNKED_RESPONSE);
    }
  });
  return Object.assign(upstream, { asked });
}

/** The request that the upstream got and the response that the client got, both as text. */
async function exchange(
  plane: TestPlane,
  { asked }: { readonly asked: RawMessage[] },
): Promise<{ sent: string; received: string }> {
  const client = await RawPeer.connect(plane.port);
  client.send(CHUNKED_REQUEST);
  const response = await client.message();
  client.socket.destroy();
  assert.equal(statusOf(response), 200);
  const text = (message: RawMessage | undefined) => `${message?.body} ${message?.trailers.join(" ")}`;
  return { sent: text(asked.pop()), received: text(response) };
}

for (const mode of MODES)
  test(`${mode}: the service gets and changes the trailers of both sides if the mode sends them`, async () => {
    await using service = await processor(changing, mode.startsWith("buffered"));
    await using upstream = await answering();
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    const bodies = { requestBodyMode: mode, responseBodyMode: mode };
    const send = { requestTrailerMode: "send", responseTrailerMode: "send" } as const;
    await using plane = await TestPlane.start([{ target, policies: policy(service.port, { ...bodies, ...send }) }]);
    const around = (text: string) => (mode === "none" ? text : `<${text}>`);
    assert.deepEqual(await exchange(plane, upstream), {
      sent: `${around("abc")} x-sum: r`,
      received: `${around("xyz")} x-sum: s`,
    });
    const shown = service.questions.map(
      ({ request_trailers, response_trailers }) => request_trailers ?? response_trailers,
    );
    const names = shown.map((each) => each?.trailers?.headers?.map(({ key }) => key).join()).filter((each) => each);
    assert.deepEqual(names, ["x-sum,x-secret", "x-sum,x-secret"]);
    assert.equal(service.questions[0]?.attributes?.["envoy.filters.http.ext_proc"]?.path, "/a");

    service.questions.length = 0;
    await plane.configure([{ target, policies: policy(service.port, bodies) }]);
    const { sent, received } = await exchange(plane, upstream);
    const untouched = (text: string, first: number) => `${around(text)} x-sum: ${first} x-secret: ${first + 1}`;
    // Bodies that are replaced as a whole have a Content-Length, and so no trailers.
    const replaced = mode.startsWith("buffered");
    assert.deepEqual([sent, received], replaced ? ["<abc> ", "<xyz> "] : [untouched("abc", 1), untouched("xyz", 3)]);
    assert.ok(
      service.questions.every(({ request_trailers, response_trailers }) => !(request_trailers ?? response_trailers)),
    );
  });

test("messages without trailers, or with a known length, cause no trailers message", async () => {
  await using service = await processor(changing);
  await using upstream = await RawUpstream.answering(() => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  const send = { requestTrailerMode: "send", responseTrailerMode: "send" } as const;
  await using plane = await TestPlane.start([
    { target: { type: "static", host: "127.0.0.1", port: upstream.port }, policies: policy(service.port, send) },
  ]);
  for (const request of [
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
  ]) {
    const client = await RawPeer.connect(plane.port);
    client.send(request);
    const response = await client.message();
    assert.deepEqual([statusOf(response), response.body, response.trailers], [200, "ok", []]);
    client.socket.destroy();
  }
  assert.deepEqual(service.questions, []);
});

test("a service that fails at the trailers fails the request, or the trailers are forwarded unchanged", async () => {
  await using upstream = await answering();
  const gone = await GrpcServer.start({});
  gone.stop();
  const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
  const send = { requestTrailerMode: "send", responseTrailerMode: "send" } as const;
  await using plane = await TestPlane.start([{ target, policies: policy(gone.port, send) }]);
  const client = await RawPeer.connect(plane.port);
  client.send(CHUNKED_REQUEST);
  const response = await client.message();
  client.socket.destroy();
  assert.deepEqual([statusOf(response), response.body], [500, "ext_proc failed"]);
  await plane.configure([{ target, policies: policy(gone.port, send, { failureMode: "failOpen" }) }]);
  const { sent, received } = await exchange(plane, upstream);
  assert.deepEqual([sent, received], ["abc x-sum: 1 x-secret: 2", "xyz x-sum: 3 x-secret: 4"]);
});

test("an immediate response to trailers ends the request", async () => {
  await using service = await processor(() => ({
    immediate_response: { status: { code: 418 }, body: Buffer.from("tea") },
  }));
  await using upstream = await RawUpstream.listen();
  const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
  await using plane = await TestPlane.start([
    { target, policies: policy(service.port, { requestTrailerMode: "send" }) },
  ]);
  const client = await RawPeer.connect(plane.port);
  client.send(CHUNKED_REQUEST);
  const response = await client.message();
  client.socket.destroy();
  assert.deepEqual([statusOf(response), response.body], [418, "tea"]);
});
