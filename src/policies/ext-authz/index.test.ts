import assert from "node:assert/strict";
import { after, suite, test } from "node:test";
import { CHECK, type CheckAnswer, CheckRequest, CheckResponse } from "../../../test/helpers/envoy/auth.ts";
import { GrpcServer } from "../../../test/helpers/grpc-server.ts";
import { type RawMessage, RawUpstream, reply, valuesOf } from "../../../test/helpers/raw-peer.ts";
import { ms } from "../../base/durations.ts";
import type { LocalReply } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import type { CompiledPolicy } from "../compile.ts";
import { TestCallouts } from "../testing/callouts.ts";
import { contextOf, creatorOf, loggedText, RecordedTrace, rejectionOf, answerOf as run } from "../testing/context.ts";
import { extAuthz } from "./index.ts";
import type { ExtAuthz, ExtAuthzHttp } from "./schema.ts";

const create = creatorOf(extAuthz);

const calls = new TestCallouts();
after(() => calls[Symbol.dispose]());

/** A policy that calls the service at `port` by HTTP. */
function byHttp(port: number, http: Partial<ExtAuthzHttp> = {}, more: Partial<ExtAuthz> = {}): CompiledPolicy {
  const fields = { includeResponseHeaders: [], addRequestHeaders: {}, metadata: {}, ...http };
  return byGrpc(port, { protocol: { http: fields }, ...more });
}

function byGrpc(port: number, more: Partial<ExtAuthz> = {}): CompiledPolicy {
  const config: ExtAuthz = {
    target: { type: "static", host: "127.0.0.1", port },
    protocol: { grpc: {} },
    failureMode: "deny",
    includeRequestHeaders: [],
    timeout: ms(5000),
    ...more,
  };
  return create(config, calls.deps);
}

const rejection = (policy: CompiledPolicy, context = contextOf()) => rejectionOf(run(policy, context));

/** A gRPC service that records its requests. */
async function grpcService(answer: CheckAnswer) {
  const questions: ReturnType<typeof CheckRequest.decode>[] = [];
  const server = await GrpcServer.start({
    [CHECK]: {
      unary(message) {
        questions.push(CheckRequest.decode(message));
        return CheckResponse.encode(answer);
      },
    },
  });
  return Object.assign(server, { questions });
}

/** An HTTP service that records its requests. */
async function httpService(answer: (question: RawMessage) => string) {
  const questions: RawMessage[] = [];
  const server = await RawUpstream.answering((question) => {
    questions.push(question);
    return answer(question);
  });
  return Object.assign(server, { questions });
}

const textOf = (answer: LocalReply | undefined): string => Buffer.from(answer?.body ?? "").toString();

suite("extAuthz by HTTP", () => {
  test("sends the request's method, target and Authorization, and none of its other headers", async () => {
    await using service = await httpService(() => reply(""));
    const headers = ["authorization", "Bearer t", "cookie", "a=1", "content-length", "5"];
    assert.equal(await run(byHttp(service.port), contextOf({ method: "PUT", headers })), undefined);
    const [question] = service.questions;
    assert.equal(question?.start, "PUT /shop/cart?page=2 HTTP/1.1");
    assert.deepEqual(question?.fields, [
      `host: 127.0.0.1:${service.port}`,
      "authorization: Bearer t",
      "content-length: 0",
    ]);
  });

  test("sends named and computed headers, and a computed body", async () => {
    await using service = await httpService(() => reply(""));
    const policy = byHttp(
      service.port,
      {
        path: '"/check?for=" + request.path',
        body: '{"user": request.headers["x-user"]}',
        addRequestHeaders: { "X-From": "source.address", "x-missing": 'request.headers["x-none"]' },
      },
      { includeRequestHeaders: ["x-user"] },
    );
    const headers = ["authorization", "Bearer t", "x-user", "ann"];
    assert.equal(await run(policy, contextOf({ method: "POST", headers })), undefined);
    const [question] = service.questions;
    assert.equal(question?.start, "POST /check?for=/shop/cart HTTP/1.1");
    assert.deepEqual(question?.fields.slice(1), ["x-user: ann", "x-from: 192.0.2.1", "content-length: 14"]);
    assert.equal(question?.body, '{"user":"ann"}');
  });

  test("the body is sent with a note whether it is complete; a longer one is rejected unless it may be truncated", async () => {
    await using service = await httpService(() => reply(""));
    const limits = { maxRequestBytes: 5, allowPartialMessage: false, packAsBytes: false };
    const more = (allowPartialMessage: boolean): Partial<ExtAuthz> => ({
      includeRequestBody: { ...limits, allowPartialMessage },
    });
    const post = (body: string) => contextOf({ method: "POST" }, { body });
    await run(byHttp(service.port, {}, more(false)), post("hello"));
    await run(byHttp(service.port, {}, more(true)), post("hello world"));
    const partial = service.questions.map((each) => [each.body, valuesOf(each, "x-envoy-auth-partial-body").join()]);
    assert.deepEqual(partial, [
      ["hello", "false"],
      ["hello", "true"],
    ]);
    const rejected = await rejection(byHttp(service.port, {}, more(false)), post("hello world"));
    assert.deepEqual([rejected.status, rejected.message], [413, "external authorization failed"]);
    assert.equal(service.questions.length, 2);
  });

  test("named headers of the service's response replace those of the request, with all of their values", async () => {
    const fields = ["x-role: admin", "x-role: editor", "x-other: 1", "connection: keep-alive"];
    await using service = await httpService(() => reply("", fields));
    const policy = byHttp(service.port, { includeResponseHeaders: ["x-role", "connection"] });
    const context = contextOf({ headers: ["x-role", "forged", "accept", "*/*"] });
    assert.equal(await run(policy, context), undefined);
    assert.deepEqual(context.request.headers.sort(), ["*/*", "accept", "admin", "editor", "x-role", "x-role"]);
  });

  test("metadata from the service is added to earlier metadata, also with a denial", async () => {
    let status = "200 OK";
    await using service = await httpService(() => reply('{"id": 7}', ["x-team: blue"], status));
    const metadata = {
      team: 'response.headers["x-team"]',
      id: "json(response.body).id",
      missing: 'response.headers["x-none"]',
    };
    const policy = byHttp(service.port, { metadata });
    const context = contextOf();
    context.requestMetadata.extauthz = { before: 1 };
    await run(policy, context);
    assert.deepEqual(context.requestMetadata.extauthz, { before: 1, team: "blue", id: 7 });
    status = "403 Forbidden";
    const rejected = contextOf();
    assert.equal((await run(policy, rejected))?.status, 403);
    assert.deepEqual(rejected.requestMetadata.extauthz, { team: "blue", id: 7 });
  });

  test("a denial is passed on unchanged; with redirect, a 401 or 403 becomes a redirect", async () => {
    let status = "429 Slow Down";
    await using service = await httpService(() => reply("not now", ["x-why: busy", "connection: close"], status));
    const answer = await run(byHttp(service.port, { redirect: "'/login'" }), contextOf());
    assert.deepEqual([answer?.status, textOf(answer), answer?.reason], [429, "not now", "ExtAuth"]);
    assert.deepEqual(answer?.headers, ["x-why", "busy"]);
    for (status of ["401 Who", "403 Forbidden"]) {
      const redirected = await run(byHttp(service.port, { redirect: "'/login?from=' + request.path" }), contextOf());
      assert.deepEqual([redirected?.status, redirected?.headers], [302, ["location", "/login?from=/shop/cart"]]);
    }
  });

  test("an expression that returns no path denies the request, whatever failureMode says", async () => {
    await using service = await httpService(() => reply(""));
    for (const failureMode of ["deny", "allow"] as const) {
      const policy = byHttp(service.port, { path: "request.method" }, { failureMode });
      assert.match(loggedText(await rejection(policy)), /"GET" must begin with "\/"/);
    }
    assert.equal(service.questions.length, 0);
  });

  test("headers that frame the authorization request cannot be set, nor can its scheme", () => {
    for (const [name, message] of [
      ["Content-Length", /^Error: extAuthz.protocol.http.addRequestHeaders: Content-Length frames the message/],
      ["a b", /is not a header name/],
      [":scheme", /the scheme is that of the connection to the service; set policies.backendTLS/],
    ] as const)
      assert.throws(() => byHttp(1, { addRequestHeaders: { [name]: "'x'" } }), message);
  });
});

suite("extAuthz by gRPC", () => {
  test("describes the request; the id is traceparent, values of a header are joined", async () => {
    await using service = await grpcService({});
    const headers = ["traceparent", "00-1-2-01", "accept", "a", "accept", "b", "cookie", "x=1", "cookie", "y=2"];
    const context = contextOf({ headers, method: "POST" }, { source: { spiffeId: "spiffe://td/ns/a/sa/b" } });
    const policy = byGrpc(service.port, { protocol: { grpc: { metadata: { who: "request.host", none: "jwt.sub" } } } });
    assert.equal(await run(policy, context), undefined);
    const { attributes } = service.questions[0] ?? {};
    const http = attributes?.request?.http;
    assert.equal(http?.id, "00-1-2-01");
    assert.equal(http?.method, "POST");
    assert.equal(http?.scheme, "http");
    assert.equal(http?.protocol, "HTTP/1.1");
    assert.equal(Number(http?.size), -1);
    assert.equal(http?.headers?.accept, "a, b");
    assert.equal(http?.headers?.cookie, "x=1; y=2");
    assert.equal(http?.headers?.[":authority"], "example.com:8080");
    assert.equal(attributes?.source?.principal, "spiffe://td/ns/a/sa/b");
    const metadata = attributes?.metadata_context?.filter_metadata?.["envoy.filters.http.ext_authz"];
    assert.deepEqual({ ...metadata }, { who: "example.com:8080" });
  });

  test("sends only named headers", async () => {
    await using service = await grpcService({});
    const headers = ["authorization", "t", "x-user", "ann"];
    await run(byGrpc(service.port, { includeRequestHeaders: ["x-user"] }), contextOf({ headers }));
    const sent = service.questions[0]?.attributes?.request?.http?.headers ?? {};
    assert.deepEqual(
      Object.keys(sent).filter((name) => !name.startsWith(":")),
      ["x-user"],
    );
  });

  test("headers are removed, set, added; some go to the response", async () => {
    await using service = await grpcService({
      ok_response: {
        headers_to_remove: ["x-a", "host", "content-length"],
        headers: [
          { header: { key: "x-a", value: "new" } },
          { header: { key: "x-b", value: "2" }, append: { value: true } },
          { header: { key: "transfer-encoding", value: "chunked" } },
        ],
        response_headers_to_add: [{ header: { key: "x-c", value: "3" } }],
      },
    });
    const context = contextOf({ headers: ["x-a", "old", "x-b", "1", "content-length", "0"] });
    assert.equal(await run(byGrpc(service.port), context), undefined);
    assert.deepEqual(context.request.headers, ["x-b", "1", "content-length", "0", "x-a", "new", "x-b", "2"]);
    assert.deepEqual(context.responseHeaders(), ["x-c", "3"]);
  });

  test("a denial without a status or response, or with an invalid status, becomes 403", async () => {
    for (const denied of [{ body: "no" }, { body: "no", status: { code: 99 } }]) {
      await using service = await grpcService({ status: { code: 7 }, denied_response: denied });
      const answer = await run(byGrpc(service.port), contextOf());
      assert.deepEqual([answer?.status, textOf(answer)], [403, "no"]);
    }
    await using service = await grpcService({ status: { code: 16 } });
    const error = await rejection(byGrpc(service.port));
    assert.deepEqual([error.code, error.status], ["TG_EXT_AUTHZ", 403]);
  });
});

suite("gRPC clients of extAuthz", () => {
  const grpcContext = (type = "application/grpc") => contextOf({ headers: ["content-type", type] });
  const fieldsOf = ({ headers }: LocalReply): Record<string, string> =>
    Object.fromEntries(headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1] ?? ""]] : [])));

  test("get a status in the header fields in place of a response that is not gRPC", async () => {
    for (const [status, body, code, message] of [
      ["401 Who", "who are you? 🙂", "16", "who%20are%20you?%20%F0%9F%99%82"],
      ["403 No", "", "7", "external%20authorization%20failed"],
      ["302 Elsewhere", "", "7", "external%20authorization%20failed"],
      ["503 Later", "later", "14", "later"],
      ["500 Oops", "x".repeat(5000), "2", "x".repeat(1024)],
    ] as const) {
      const bytes = Buffer.from(body).toString("latin1");
      const fields = ["content-type: text/plain", "location: /login", "www-authenticate: Bearer"];
      await using service = await httpService(() => reply(bytes, fields, status));
      const answer = await run(byHttp(service.port), grpcContext("application/grpc+proto"));
      assert.ok(answer !== undefined);
      assert.deepEqual([answer.status, answer.body, answer.reason], [200, "", "ExtAuth"]);
      assert.deepEqual(fieldsOf(answer), {
        "content-type": "application/grpc+proto",
        "grpc-status": code,
        "grpc-message": message,
        "www-authenticate": "Bearer",
      });
    }
  });

  test("get a gRPC response unchanged; other clients get any response unchanged", async () => {
    const fields = ["content-type: application/grpc", "grpc-status: 9"];
    await using service = await httpService(() => reply("", fields, "403 No"));
    const answer = await run(byHttp(service.port), grpcContext());
    assert.equal(answer?.status, 403);
    assert.equal(fieldsOf(answer)["grpc-status"], "9");
    const web = await run(byHttp(service.port), grpcContext("application/grpc-web"));
    assert.equal(web?.status, 403);
  });
});

suite("an unreadable response denies, even with failureMode allow", () => {
  const HEADS: Readonly<Record<string, string>> = {
    "a head that is too large": `HTTP/1.1 302 Found\r\nlocation: /login?next=${"x".repeat(70_000)}\r\n\r\n`,
    "two lengths": "HTTP/1.1 403 No\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nno",
    "a field without a colon": "HTTP/1.1 403 No\r\nbroken\r\n\r\n",
    "a head that is cut": "HTTP/1.1 403 No\r\nx-a: 1\r\n",
    "another protocol": "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "a status out of range": "HTTP/1.1 999 No\r\n\r\n",
    "too many 1xx heads": `${"HTTP/1.1 100 Continue\r\n\r\n".repeat(40)}HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n`,
  };

  for (const [name, head] of Object.entries(HEADS))
    test(`over HTTP: ${name}`, async () => {
      await using service = await RawUpstream.listen(async (peer) => {
        await peer.message();
        peer.send(head);
        peer.end();
      });
      const error = await rejection(byHttp(service.port, {}, { failureMode: "allow" }));
      assert.deepEqual([error.code, error.status], ["TG_EXT_AUTHZ", 403]);
    });

  test("over gRPC: a denial that is too long", async () => {
    const body = "x".repeat(5 * 1024 * 1024);
    await using service = await grpcService({ status: { code: 7 }, denied_response: { body } });
    const error = await rejection(byGrpc(service.port, { failureMode: "allow" }));
    assert.deepEqual([error.code, error.status], ["TG_EXT_AUTHZ", 403]);
  });

  test("over gRPC: bytes that are no message", async () => {
    await using service = await GrpcServer.start({ [CHECK]: { unary: () => Buffer.from([0xff, 0xff]) } });
    const error = await rejection(byGrpc(service.port, { failureMode: "allow" }));
    assert.deepEqual([error.code, error.status], ["TG_EXT_AUTHZ", 403]);
  });

  test("a missing response is a failure, which allows", async () => {
    await using service = await RawUpstream.listen(async (peer) => {
      await peer.message();
      peer.end();
    });
    assert.equal(await run(byHttp(service.port, {}, { failureMode: "allow" }), contextOf()), undefined);
  });
});

suite("extAuthz caches decisions", () => {
  const cache = (ttl: string): Partial<ExtAuthz> => ({
    cache: { key: ["request.host"], ignore: [], ttl, maxEntries: 10 },
  });

  test("for as long as an expression says; without a time, nothing is cached", async () => {
    await using service = await httpService(() => reply("no", [], "401 Who"));
    const asked = async (ttl: string): Promise<number> => {
      const policy = byHttp(service.port, {}, cache(ttl));
      const before = service.questions.length;
      for (let i = 0; i < 3; i++) assert.equal((await run(policy, contextOf()))?.status, 401);
      return service.questions.length - before;
    };
    assert.equal(await asked("duration('1h')"), 1);
    assert.equal(await asked("request.method == 'GET' ? duration('1h') : duration('0s')"), 1);
    assert.equal(await asked("duration('0s')"), 3);
    assert.equal(await asked("request.path"), 3);
    assert.equal(await asked("jwt.ttl"), 3);
  });

  test("expressions over a response are evaluated for each request, and the client's identity in the call is part of the key", async () => {
    await using service = await httpService((question) => reply(valuesOf(question, "x-who").join()));
    const metadata = { seen: "request.headers['x-name'] + ' ' + string(response.body)" };
    const policies = { transformations: { request: { set: { "x-who": "jwt.sub" } } } };
    const policy = byHttp(
      service.port,
      { metadata },
      { cache: { key: [], ignore: [], ttl: "1h", maxEntries: 10 }, policies },
    );
    const seen = async (sub: string, name: string): Promise<unknown> => {
      const context = contextOf({ headers: ["x-name", name] });
      context.requestMetadata.jwt = { sub };
      await run(policy, context);
      return context.requestMetadata.extauthz;
    };
    assert.deepEqual(await seen("ann", "one"), { seen: "one ann" });
    assert.deepEqual(await seen("ann", "two"), { seen: "two ann" });
    assert.equal(service.questions.length, 1);
    assert.deepEqual(await seen("bob", "two"), { seen: "two bob" });
    assert.equal(service.questions.length, 2);
  });

  test("gRPC: about one body, unless the configuration leaves it out", async () => {
    await using service = await grpcService({ ok_response: {} });
    const includeRequestBody = { maxRequestBytes: 100, allowPartialMessage: false, packAsBytes: false };
    const asked = async (ignore: string[]): Promise<number> => {
      const before = service.questions.length;
      const keyed = { key: [], ignore, ttl: "1h", maxEntries: 10 };
      const policy = byGrpc(service.port, { includeRequestBody, cache: keyed });
      for (const body of ["pay 1", "pay 9", "pay 1"]) await run(policy, contextOf({ method: "POST" }, { body }));
      return service.questions.length - before;
    };
    assert.equal(await asked([]), 2);
    assert.equal(await asked(["body"]), 1);
  });

  test("a user whose access was revoked is denied once the decision has expired", async (t) => {
    let now = performance.now();
    t.mock.method(performance, "now", () => now);
    let status = "200 OK";
    await using service = await httpService(() => reply("", [], status));
    const policy = byHttp(service.port, {}, cache("1m"));
    assert.equal(await run(policy, contextOf()), undefined);
    status = "403 Revoked";
    now += 59_000;
    assert.equal(await run(policy, contextOf()), undefined);
    now += 1_001;
    assert.equal((await run(policy, contextOf()))?.status, 403);
  });

  test("failures are not cached, and a cached decision does not change", async () => {
    let answers = 0;
    await using service = await RawUpstream.listen(async (peer) => {
      await peer.message();
      if (++answers === 1) peer.reset();
      else peer.send(reply("no", ["x-n: 1"], "403 No"));
    });
    const policy = byHttp(service.port, {}, cache("1h"));
    await rejection(policy);
    const first = await run(policy, contextOf());
    first?.headers.push("x-more", latin1("2"));
    assert.deepEqual((await run(policy, contextOf()))?.headers, ["x-n", "1"]);
    const grpc = await run(policy, contextOf({ headers: ["content-type", "application/grpc"] }));
    assert.deepEqual([grpc?.status, grpc?.headers.includes("grpc-status")], [200, true]);
    assert.equal(answers, 2);
  });

  test("but not responses that set a cookie for the client: others would get the same session", async () => {
    let answers = 0;
    await using service = await httpService(() => reply("", [`set-cookie: session=${++answers}`], "401 Log in"));
    const policy = byHttp(service.port, {}, cache("1h"));
    assert.deepEqual((await run(policy, contextOf()))?.headers, ["set-cookie", "session=1"]);
    assert.deepEqual((await run(policy, contextOf()))?.headers, ["set-cookie", "session=2"]);
    const headers = [{ header: { key: "Set-Cookie", value: "session=3" } }];
    for (const answer of [
      { ok_response: { response_headers_to_add: headers } },
      { status: { code: 7 }, denied_response: { status: { code: 401 }, headers } },
    ]) {
      await using grpc = await grpcService(answer);
      const byMessage = byGrpc(grpc.port, cache("1h"));
      for (let i = 0; i < 2; i++) await run(byMessage, contextOf());
      assert.equal(grpc.questions.length, 2);
    }
  });

  test("for the gRPC requests with the same header fields, whatever their names are", async () => {
    await using service = await grpcService({});
    const policy = byGrpc(service.port, cache("1h"));
    for (const name of ["__proto__", "constructor"])
      for (const user of ["alice", "bob"]) await run(policy, contextOf({ headers: [name, user] }));
    assert.equal(service.questions.length, 4);
  });
});

test("a trace shows the call, and the decision with its source", async () => {
  await using service = await httpService(() => reply(""));
  const trace = new RecordedTrace();
  const policy = byHttp(service.port, {}, { cache: { key: [], ignore: [], ttl: "1h", maxEntries: 1 } });
  for (let i = 0; i < 2; i++) await run(policy, contextOf({}, { trace }));
  assert.deepEqual(trace.events, [
    { scope: "ext_authz", target: `127.0.0.1:${service.port}` },
    { scope: "ext_authz", status: 200, error: null },
    { kind: "ext_auth", details: { result: "allow" } },
    { kind: "ext_auth", details: { result: "allow", cached: true } },
  ]);
});
