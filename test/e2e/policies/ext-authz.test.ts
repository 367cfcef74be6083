import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { ExtAuthz } from "../../../src/policies/ext-authz/schema.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { TestPlane, type TestRoute } from "../../helpers/data-plane.ts";
import { CHECK, type CheckAnswer, CheckRequest, CheckResponse } from "../../helpers/envoy/auth.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

type Question = NonNullable<ReturnType<typeof CheckRequest.decode>["attributes"]>;

const at = (port: number) => ({ type: "static", host: "127.0.0.1", port }) as const;

function policy(port: number, more: Partial<ExtAuthz> = {}): PolicySet {
  return {
    extAuthz: {
      target: at(port),
      protocol: { grpc: {} },
      failureMode: "deny",
      includeRequestHeaders: [],
      timeout: ms(5000),
      ...more,
    },
  };
}

function http(port: number, more: Partial<ExtAuthz> = {}, protocol: object = {}): PolicySet {
  const defaults = { includeResponseHeaders: [], addRequestHeaders: {}, metadata: {} };
  return policy(port, { protocol: { http: { ...defaults, ...protocol } }, ...more });
}

/** A service that records the requests that it gets. */
async function authorizer(answer: (question: Question) => CheckAnswer) {
  const questions: Question[] = [];
  const server = await GrpcServer.start({
    [CHECK]: {
      unary(message) {
        const question = CheckRequest.decode(message).attributes ?? {};
        questions.push(question);
        return CheckResponse.encode(answer(question));
      },
    },
  });
  return Object.assign(server, { questions });
}

/** A backend that returns what it got of the request. */
const backend = () =>
  RawUpstream.answering((request) =>
    reply(JSON.stringify({ start: request.start, fields: request.fields, body: request.body })),
  );

function route(port: number, policies: PolicySet): TestRoute[] {
  return [{ target: at(port), policies }];
}

const get = (fields = "") => `GET /a?b=1 HTTP/1.1\r\nHost: shop.example\r\n${fields}\r\n`;
const post = (body: string) =>
  `POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

test("gRPC: the service gets the request; headers that it sets, adds and removes reach backend and client", async () => {
  await using service = await authorizer(() => ({
    ok_response: {
      headers: [
        { header: { key: "X-User", value: "ann" } },
        { header: { key: "x-more", value: "2" }, append: { value: true } },
      ],
      headers_to_remove: ["x-secret"],
      response_headers_to_add: [{ header: { key: "x-checked", value: "yes" } }],
    },
    dynamic_metadata: { team: "blue" },
  }));
  await using upstream = await backend();
  const policies: PolicySet = {
    ...policy(service.port, { protocol: { grpc: { context: { shop: "1" }, metadata: { who: "request.method" } } } }),
    transformations: { request: { set: { "x-team": "extauthz.team" } } },
  };
  await using plane = await TestPlane.start(route(upstream.port, policies));
  const response = await RawPeer.ask(
    plane.port,
    get("X-User: forged\r\nX-More: 1\r\nX-Secret: s\r\nCookie: a=1\r\nCookie: b=2\r\n"),
  );
  assert.equal(statusOf(response), 200);
  assert.deepEqual(valuesOf(response, "x-checked"), ["yes"]);
  const seen = JSON.parse(response.body) as { fields: string[] };
  const fields = seen.fields.filter((line) => line.startsWith("x-"));
  assert.deepEqual(fields.sort(), ["x-more: 1", "x-more: 2", "x-team: blue", "x-user: ann"]);

  const [question] = service.questions;
  const request = question?.request?.http;
  assert.equal(request?.method, "GET");
  assert.equal(request?.path, "/a?b=1");
  assert.equal(request?.host, "shop.example");
  assert.equal(request?.headers?.cookie, "a=1; b=2");
  assert.equal(request?.headers?.[":path"], "/a?b=1");
  assert.equal(question?.source?.address?.socket_address?.address, "127.0.0.1");
  assert.equal(question?.context_extensions?.shop, "1");
  assert.equal(question?.metadata_context?.filter_metadata?.["envoy.filters.http.ext_authz"]?.who, "GET");
});

test("gRPC: a denial reaches the client as the service wrote it; without a response it is 403", async () => {
  const answers: CheckAnswer[] = [
    {
      status: { code: 16 },
      denied_response: {
        status: { code: 401 },
        headers: [{ header: { key: "www-authenticate", value: "Bearer" } }],
        body: "who are you?",
      },
    },
    { status: { code: 7 } },
  ];
  await using service = await authorizer(() => answers.shift() ?? {});
  await using upstream = await backend();
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port)));
  const refused = await RawPeer.ask(plane.port, get());
  assert.deepEqual([statusOf(refused), refused.body], [401, "who are you?"]);
  assert.deepEqual(valuesOf(refused, "www-authenticate"), ["Bearer"]);
  const plain = await RawPeer.ask(plane.port, get());
  assert.deepEqual([statusOf(plain), plain.body], [403, "external authorization failed"]);
  assert.equal((await plane.logged('"http.status":401')).reason, "ExtAuth");
  assert.equal(statusOf(await RawPeer.ask(plane.port, get())), 200);
});

test("gRPC: the service gets bodies, truncated if that is allowed, else the request is rejected; the backend gets whole bodies", async () => {
  const limits = { maxRequestBytes: 5, allowPartialMessage: false, packAsBytes: false };
  await using service = await authorizer(() => ({}));
  await using upstream = await backend();
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port, { includeRequestBody: limits })));
  const whole = await RawPeer.ask(plane.port, post("hello"));
  assert.equal((JSON.parse(whole.body) as { body: string }).body, "hello");
  assert.equal(service.questions[0]?.request?.http?.body, "hello");
  assert.equal(service.questions[0]?.request?.http?.headers?.["x-envoy-auth-partial-body"], "false");
  const refused = await RawPeer.ask(plane.port, post("hello world"));
  assert.deepEqual([statusOf(refused), refused.body], [413, "external authorization failed"]);

  const partial = { ...limits, allowPartialMessage: true, packAsBytes: true };
  await plane.configure(route(upstream.port, policy(service.port, { includeRequestBody: partial })));
  const cut = await RawPeer.ask(plane.port, post("hello world"));
  assert.equal((JSON.parse(cut.body) as { body: string }).body, "hello world");
  assert.equal(Buffer.from(service.questions[1]?.request?.http?.raw_body ?? []).toString(), "hello");
});

test("a service that cannot be reached: deny, allow, or the configured status", async () => {
  await using upstream = await backend();
  const gone = await GrpcServer.start({});
  gone.stop();
  for (const make of [policy, http]) {
    await using plane = await TestPlane.start(route(upstream.port, make(gone.port)));
    const refused = await RawPeer.ask(plane.port, get());
    assert.deepEqual([statusOf(refused), refused.body], [403, "external authorization failed"]);
    await plane.configure(route(upstream.port, make(gone.port, { failureMode: "allow" })));
    assert.equal(statusOf(await RawPeer.ask(plane.port, get())), 200);
    await plane.configure(route(upstream.port, make(gone.port, { failureMode: { denyWithStatus: 503 } })));
    assert.equal(statusOf(await RawPeer.ask(plane.port, get())), 503);
    await plane.configure(route(upstream.port, make(gone.port, { failureMode: { denyWithStatus: 401 } })));
    const challenged = await RawPeer.ask(plane.port, get());
    assert.equal(statusOf(challenged), 401);
    assert.equal(valuesOf(challenged, "www-authenticate").join(), 'Bearer realm="Restricted"');
  }
});

test("a service that does not respond in time counts as unreachable", async () => {
  await using service = await GrpcServer.start({ [CHECK]: { unary: () => new Promise(() => {}) } });
  await using upstream = await backend();
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port, { timeout: ms(50) })));
  assert.equal(statusOf(await RawPeer.ask(plane.port, get())), 403);
});

test("HTTP: 2xx allows and forwards headers; any other response goes to the client", async () => {
  await using service = await RawUpstream.answering((request) => {
    if (request.start.includes("forbidden")) return reply("no entry", ["x-why: because"], "403 Forbidden");
    const seen = [
      request.start,
      ...valuesOf(request, "authorization"),
      ...valuesOf(request, "x-other"),
      ...valuesOf(request, "x-team"),
    ];
    return reply("", [`x-user: ${seen.join("|")}`, "x-level: 3"]);
  });
  await using upstream = await backend();
  const protocol = {
    includeResponseHeaders: ["x-user"],
    addRequestHeaders: { "X-Team": "'blue'" },
    metadata: { level: "response.headers['x-level']" },
  };
  await using plane = await TestPlane.start(
    route(upstream.port, {
      ...http(service.port, {}, protocol),
      transformations: { request: { set: { "x-found": "extauthz.level" } } },
    }),
  );
  const response = await RawPeer.ask(plane.port, get("Authorization: Bearer t\r\nX-Other: o\r\nX-User: forged\r\n"));
  const { fields } = JSON.parse(response.body) as { fields: string[] };
  assert.deepEqual(fields.filter((line) => /^x-(user|found)/.test(line)).sort(), [
    "x-found: 3",
    "x-user: GET /a?b=1 HTTP/1.1|Bearer t|blue",
  ]);
  const refused = await RawPeer.ask(plane.port, "GET /forbidden HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.deepEqual([statusOf(refused), refused.body, valuesOf(refused, "x-why").join()], [403, "no entry", "because"]);

  await plane.configure(
    route(
      upstream.port,
      http(service.port, {}, { path: "'/forbidden'", redirect: "'https://login.example' + request.path" }),
    ),
  );
  const redirected = await RawPeer.ask(plane.port, get());
  assert.deepEqual([statusOf(redirected), valuesOf(redirected, "location").join()], [302, "https://login.example/a"]);
});

test("HTTP: fields that the service provides are never taken from the client, even if the service omits them", async () => {
  await using service = await RawUpstream.answering(() => reply(""));
  await using upstream = await backend();
  const forged = get("X-User: admin\r\nX_User: other\r\nX-User: root\r\n");
  const protocol = { includeResponseHeaders: ["x-user"] };
  await using plane = await TestPlane.start(route(upstream.port, http(service.port, {}, protocol)));
  const users = async (): Promise<string[]> =>
    (JSON.parse((await RawPeer.ask(plane.port, forged)).body) as { fields: string[] }).fields.filter((line) =>
      /^x.user/.test(line),
    );
  assert.deepEqual(await users(), []);
  // Nothing listens there: the request continues, but without an identity.
  await plane.configure(route(upstream.port, http(1, { failureMode: "allow" }, protocol)));
  assert.deepEqual(await users(), []);
});

test("HTTP: an expression that fails denies the request, even if failureMode is allow", async () => {
  await using service = await RawUpstream.answering(() => reply("who are you?", [], "401 Unauthorized"));
  await using upstream = await backend();
  const header = (name: string): string => `'/' + request.headers['${name}']`;
  const open = (protocol: object): TestRoute[] =>
    route(upstream.port, http(service.port, { failureMode: "allow" }, protocol));
  const outcome = async (plane: TestPlane, fields = ""): Promise<unknown[]> => {
    const answer = await RawPeer.ask(plane.port, get(fields));
    return [statusOf(answer), answer.body, ...valuesOf(answer, "location")];
  };
  await using plane = await TestPlane.start(open({ redirect: header("x-page") }));
  assert.deepEqual(await outcome(plane, "X-Page: login\r\n"), [302, "", "/login"]);
  assert.deepEqual(await outcome(plane), [401, "who are you?"]);
  for (const field of ["path", "body"]) {
    await plane.configure(open({ [field]: header("x-who") }));
    assert.deepEqual(await outcome(plane, "X-Who: me\r\n"), [401, "who are you?"], field);
    assert.equal((await outcome(plane))[0], 403, field);
  }
});

test("HTTP: pseudo headers set method, target and Host of the callout; added headers replace those of the client", async () => {
  const questions: string[] = [];
  await using service = await RawUpstream.answering((request) => {
    const kept = ["host", "authorization"].flatMap((name) => valuesOf(request, name));
    questions.push(`${request.start} ${kept.join(" ")} ${request.body}`);
    return reply("");
  });
  await using upstream = await backend();
  const addRequestHeaders = {
    ":method": "'PO' + 'ST'",
    ":path": "'/check?of=' + request.path",
    ":Authority": "request.headers['x-host']",
    authorization: "'Basic mine'",
  };
  const protocol = { addRequestHeaders, body: "'a=1'", path: "'/unused'" };
  await using plane = await TestPlane.start(route(upstream.port, http(service.port, {}, protocol)));
  const own = "Authorization: Bearer theirs\r\n";
  assert.equal(statusOf(await RawPeer.ask(plane.port, get(`${own}X-Host: tokens.example\r\n`))), 200);
  assert.deepEqual(questions, ["POST /check?of=/a HTTP/1.1 tokens.example Basic mine a=1"]);
  // A client could cause each of these.
  for (const host of ["", "X-Host:\r\n", "X-Host: a b\r\n", "X-Host: a/b\r\n"])
    assert.equal(statusOf(await RawPeer.ask(plane.port, get(own + host))), 403, host);
  assert.equal(questions.length, 1);
});

test("HTTP: metadata may combine values of the service's response and of the client's request", async () => {
  await using service = await RawUpstream.answering(() => reply("blue"));
  await using upstream = await backend();
  const metadata = { who: "source.address + ' ' + request.method + ' ' + string(response.body)" };
  const transformations = { request: { set: { "x-who": "extauthz.who" } } };
  await using plane = await TestPlane.start(
    route(upstream.port, { ...http(service.port, {}, { metadata }), transformations }),
  );
  assert.match((await RawPeer.ask(plane.port, get())).body, /x-who: 127\.0\.0\.1 GET blue/);
});

test("decisions are cached until a time that the service gives in Unix seconds, as claims do", async () => {
  let lifetime = 60;
  let questions = 0;
  await using service = await RawUpstream.answering(() => {
    questions++;
    return reply(JSON.stringify({ exp: Math.floor(Date.now() / 1000) + lifetime }));
  });
  await using upstream = await backend();
  const cache = { key: ["request.headers['x-key']"], ignore: [], ttl: "int(extauthz.expires) - 5", maxEntries: 10 };
  const protocol = { metadata: { expires: "json(response.body).exp", method: "request.method" } };
  await using plane = await TestPlane.start(route(upstream.port, http(service.port, { cache }, protocol)));
  const asked = async (key: string): Promise<number> => {
    const before = questions;
    assert.equal(statusOf(await RawPeer.ask(plane.port, get(`X-Key: ${key}\r\n`))), 200);
    return questions - before;
  };
  assert.deepEqual([await asked("a"), await asked("a")], [1, 0]);
  lifetime = 2;
  assert.deepEqual([await asked("b"), await asked("b")], [1, 1]);
});

test("decisions are cached by key for their time to live, denials with other statuses are not", async () => {
  let status = 200;
  await using service = await authorizer((question) => {
    status = Number(question.request?.http?.headers?.["x-status"] ?? 200);
    return status === 200
      ? { ok_response: { headers: [{ header: { key: "x-n", value: "1" } }] } }
      : { status: { code: 7 }, denied_response: { status: { code: status } } };
  });
  await using upstream = await backend();
  const cache = { key: ["request.headers['x-key']"], ignore: [], ttl: "1h", maxEntries: 2 };
  await using plane = await TestPlane.start(route(upstream.port, policy(service.port, { cache })));
  const asked = async (key: string, wanted = 200): Promise<number> => {
    const before = service.questions.length;
    assert.equal(statusOf(await RawPeer.ask(plane.port, get(`X-Key: ${key}\r\nX-Status: ${wanted}\r\n`))), wanted);
    return service.questions.length - before;
  };
  assert.deepEqual([await asked("a"), await asked("a")], [1, 0]);
  assert.deepEqual([await asked("b", 401), await asked("b", 401)], [1, 0]);
  assert.deepEqual([await asked("c", 500), await asked("c", 500)], [1, 1]);
  assert.deepEqual([await asked("d"), await asked("b", 401), await asked("a")], [1, 0, 1]);
  await RawPeer.ask(plane.port, get());
  await RawPeer.ask(plane.port, get());
  assert.equal(service.questions.length, 8);
});

test("a cached decision about one user is never used for another, whatever `cache.key` says", async () => {
  await using service = await RawUpstream.answering((question) => {
    const [who] = valuesOf(question, "authorization");
    return who === "Bearer alice" ? reply("", ["x-user: alice"]) : reply("no", [], "401 Who");
  });
  await using upstream = await backend();
  const cache = { key: ["request.path", "source.address"], ignore: [], ttl: "1h", maxEntries: 10 };
  await using plane = await TestPlane.start(
    route(upstream.port, http(service.port, { cache }, { includeResponseHeaders: ["x-user"] })),
  );
  const asked = (method: string, fields: string) =>
    RawPeer.ask(plane.port, `${method} /a HTTP/1.1\r\nHost: shop.example\r\n${fields}\r\n`);
  const alice = "Authorization: Bearer alice\r\n";
  assert.match((await asked("GET", alice)).body, /x-user: alice/);
  for (const fields of ["", "Authorization: Bearer bob\r\n", "Cookie: a=1\r\n"])
    assert.equal(statusOf(await asked("GET", fields)), 401, fields);
  assert.equal(statusOf(await asked("DELETE", "")), 401);
  assert.match((await asked("GET", alice)).body, /x-user: alice/);
});

test("gRPC: a decision is keyed by everything the service is sent, except parts that the configuration leaves out", async () => {
  await using service = await authorizer(() => ({ ok_response: {} }));
  await using upstream = await backend();
  const asking = async (ignore: string[]) => {
    const cache = { key: [], ignore, ttl: "1h", maxEntries: 10 };
    const plane = await TestPlane.start(route(upstream.port, policy(service.port, { cache })));
    const count = async (line: string, fields = "") => {
      const before = service.questions.length;
      await RawPeer.ask(plane.port, `${line} HTTP/1.1\r\nHost: shop.example\r\n${fields}\r\n`);
      return service.questions.length - before;
    };
    return { count, [Symbol.asyncDispose]: () => plane[Symbol.asyncDispose]() };
  };
  await using all = await asking([]);
  assert.deepEqual([await all.count("GET /a"), await all.count("GET /a")], [1, 0]);
  for (const [line, fields] of [
    ["PUT /a", ""],
    ["GET /b", ""],
    ["GET /a?q", ""],
    ["GET /a", "Cookie: a=1\r\n"],
    ["GET /a", "Authorization: t\r\n"],
    ["GET /a", "User-Agent: t\r\n"],
  ] as const)
    assert.equal(await all.count(line, fields), 1, line + fields);
  await using some = await asking(["query", "headers.user-agent"]);
  assert.equal(await some.count("GET /a?1"), 1);
  assert.equal(await some.count("GET /a?2", "User-Agent: t\r\n"), 0);
  assert.equal(await some.count("GET /b?2"), 1);
});

test("when the client leaves, the callout is cancelled", async () => {
  const cancelled = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  await using service = await RawUpstream.listen(async (peer) => {
    await peer.message();
    asked.resolve();
    for (const event of ["end", "close"]) peer.socket.once(event, () => cancelled.resolve());
  });
  await using upstream = await backend();
  await using plane = await TestPlane.start(route(upstream.port, http(service.port)));
  const client = await RawPeer.connect(plane.port);
  client.send(get());
  await asked.promise;
  client.socket.destroy();
  await cancelled.promise;
});
