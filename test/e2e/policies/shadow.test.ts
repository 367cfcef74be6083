/** Policies with `shadow: true`: what they would do is logged, counted and traced, and nothing else happens. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { TestPlane } from "../../helpers/data-plane.ts";
import { closedPort, RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { irOf } from "../../helpers/supervisor.ts";

/** A gateway on a free port with one listener. */
async function planeOf(listener: object, others: object = {}): Promise<TestPlane> {
  const plane = new TestPlane();
  await plane.apply(irOf({ binds: [{ port: 0, listeners: [{ name: "web", ...listener }] }], ...others }));
  plane.port = (plane.plane.tasks() as { port: number }[])[0]?.port ?? 0;
  return plane;
}

const DENY = { rules: [{ deny: 'request.headers["x-a"] == "1"' }] };
const OK = { directResponse: { status: 200, body: "served" } };

/** The status of a request, and the shadow decisions in its log line without their origins. */
async function ask(plane: TestPlane, path: string, fields = ""): Promise<[status: number, shadow: unknown]> {
  const response = await RawPeer.ask(plane.port, `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`);
  return [statusOf(response), await shadowOf(plane, path)];
}

async function shadowOf(plane: TestPlane, path: string): Promise<unknown> {
  const { shadow } = await plane.logged(`"${path}"`);
  return (shadow as readonly string[] | undefined)?.map((text) => text.replace(/, at [^ ]+$/, ""));
}

/** How often shadow policies have decided, such as `authorization deny`. */
function counts(plane: TestPlane): Record<string, number> {
  const samples = plane.metrics.snapshot().policy_shadow_total ?? [];
  return Object.fromEntries(samples.map(({ labels, value }) => [labels.join(" "), value as number]));
}

suite("authorization in shadow", () => {
  test("logs and counts what it would deny, and denies nothing", async () => {
    const policies = { ...OK, authorization: { shadow: true, ...DENY } };
    await using plane = await planeOf({ routes: [{ name: "r", policies }] });
    assert.deepEqual(await ask(plane, "/denied", "X-A: 1\r\n"), [
      200,
      ['authorization:deny rules[0] is true (request.headers["x-a"]: "1")'],
    ]);
    assert.deepEqual(await ask(plane, "/allowed"), [200, undefined]);
    assert.deepEqual(counts(plane), {
      "authorization deny default/default web default/r": 1,
      "authorization allow default/default web default/r": 1,
    });
  });

  test("takes nothing away from what is enforced at another level, and adds nothing to it", async () => {
    const targeted = (authorization: object, phase = "route"): object => ({
      policies: [
        { name: { name: "p" }, target: { gateway: { gatewayName: "default" } }, phase, policy: { authorization } },
      ],
    });
    const route = (authorization?: object): object => ({
      routes: [{ name: "r", policies: { ...OK, ...(authorization && { authorization }) } }],
    });
    const allowing = { shadow: true, rules: [{ allow: "true" }] };
    const log = (index: number) => [`authorization:deny rules[${index}] is true (request.headers["x-a"]: "1")`];
    const cases: readonly (readonly [what: string, listener: object, others: object, expected: unknown])[] = [
      ["enforced outside, shadow inside", route(allowing), targeted(DENY), [403, undefined]],
      ["the same in different phases", route(allowing), targeted(DENY, "gateway"), [403, undefined]],
      [
        "shadow outside, enforced inside",
        route({ rules: ["true"] }),
        targeted({ shadow: true, ...DENY }),
        [200, log(0)],
      ],
      [
        "shadow of the gateway phase",
        route({ rules: ["true"] }),
        targeted({ shadow: true, ...DENY }, "gateway"),
        [200, log(0)],
      ],
      ["both in shadow", route({ shadow: true, ...DENY }), targeted({ shadow: true, rules: ["true"] }), [200, log(1)]],
      ["enforced inside and outside", route(DENY), targeted({ rules: ["true"] }), [403, undefined]],
    ];
    for (const [what, listener, others, expected] of cases) {
      await using plane = await planeOf(listener, others);
      assert.deepEqual(await ask(plane, "/x", "X-A: 1\r\n"), expected, what);
    }
  });

  test("several decisions of one request are a list, without those that allow", async () => {
    const targeted = { shadow: true, ...DENY };
    const policies = { ...OK, authorization: { shadow: true, rules: [{ require: "false" }] } };
    await using plane = await planeOf(
      { routes: [{ name: "r", policies }] },
      {
        policies: [
          {
            name: { name: "p" },
            target: { gateway: { gatewayName: "default" } },
            phase: "gateway",
            policy: { authorization: targeted },
          },
        ],
      },
    );
    await ask(plane, "/x", "X-A: 1\r\n");
    const { shadow } = await plane.logged('"/x"');
    assert.deepEqual(shadow, [
      'authorization:deny rules[0] is true (request.headers["x-a"]: "1"), at policies[0].policy.authorization.rules[0]',
      "authorization:deny require rules[0] is not true, at binds[0].listeners[0].routes[0].policies.authorization.rules[0]",
    ]);
  });

  test("rules over the body see it while it streams to the backend", async () => {
    await using upstream = await RawUpstream.listen();
    const policies = { authorization: { shadow: true, rules: [{ deny: 'string(request.body).contains("drop")' }] } };
    const backends = [{ host: `127.0.0.1:${upstream.port}` }];
    await using plane = await planeOf({ routes: [{ name: "r", policies, backends }] });
    const client = await RawPeer.connect(plane.port);
    client.send("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\ndro");
    // The backend has the head and the beginning before the client has sent the rest.
    const backend = await upstream.connection();
    await backend.take("dro");
    client.send("p it");
    await backend.take("p it");
    backend.send(reply("served"));
    const shadow = await shadowOf(plane, "/body");
    assert.deepEqual(shadow, ["authorization:deny rules[0] is true"]);
    client.socket.destroy();
  });

  test("rules over the body see it as it arrived, also if another policy then replaces it", async () => {
    await using upstream = await echo();
    const policies = {
      authorization: { shadow: true, rules: [{ deny: 'string(request.body).contains("drop")' }] },
      transformations: { request: { body: '"kept"' } },
    };
    await using plane = await planeOf({ routes: [{ name: "r", policies, backends: to(upstream.port) }] });
    const client = await RawPeer.connect(plane.port);
    client.send("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\ndrop it");
    assert.match((await client.message()).body, /content-length: 4/);
    assert.deepEqual(await shadowOf(plane, "/body"), ["authorization:deny rules[0] is true"]);
    client.socket.destroy();
  });

  test("expressions use up a budget of their own", async () => {
    const rules = (limit: number): string[] => [`request.path.split("").filter(c, c != "x").size() < ${limit}`];
    const authorization = { shadow: true, rules: rules(1) };
    const policies = { ...OK, authorization, transformations: { response: { set: { "x-size": rules(500)[0] } } } };
    await using plane = await planeOf({ routes: [{ name: "r", policies }] });
    const path = `/${"a".repeat(200)}`;
    const response = await RawPeer.ask(plane.port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    assert.deepEqual(valuesOf(response, "x-size"), ["true"]);
    assert.deepEqual(await shadowOf(plane, path), ["authorization:deny no allow rule is true"]);
  });

  test("a request whose body does not arrive is undecided", async () => {
    await using upstream = await RawUpstream.listen();
    const policies = { authorization: { shadow: true, rules: [{ deny: "size(request.body) > 3" }] } };
    const backends = [{ host: `127.0.0.1:${upstream.port}` }];
    await using plane = await planeOf({ routes: [{ name: "r", policies, backends }] });
    const client = await RawPeer.connect(plane.port);
    client.send("POST /cut HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\nbo");
    await (await upstream.connection()).take("bo");
    client.socket.destroy();
    const shadow = await shadowOf(plane, "/cut");
    assert.deepEqual(shadow, ["authorization:undecided the request ended before its body had arrived"]);
  });

  test("a trace shows the rules and the decision, none of them as an error", async () => {
    const policies = { ...OK, authorization: { shadow: true, ...DENY } };
    await using plane = await planeOf({ routes: [{ name: "r", policies }] });
    const events = await plane.trace(() => ask(plane, "/x", "X-A: 1\r\n"));
    const decision = events.filter(({ type }) => type === "shadowDecision" || type === "authorizationResult");
    assert.deepEqual(
      decision.map(({ type }) => type),
      ["authorizationResult", "shadowDecision"],
    );
    assert.deepEqual(decision[1], {
      type: "shadowDecision",
      policy: "authorization",
      phase: "route",
      decision: "deny",
      status: 403,
      code: "TG_AUTHORIZATION",
      reason: 'rules[0] is true (request.headers["x-a"]: "1")',
    });
    assert.equal(
      events.some((event) => event.type === "requestSnapshot" && event.stage.includes("authorization")),
      false,
    );
  });
});

/** A backend that responds with the fields that it got. */
const echo = () =>
  RawUpstream.answering(({ start, fields }) =>
    reply([start, ...fields.filter((field) => !/^(x-forwarded-|x-request-id)/.test(field))].join("|")),
  );
const to = (port: number): object[] => [{ host: `127.0.0.1:${port}` }];
const ISSUER = "https://issuer.example";

suite("credentials in shadow", () => {
  const SECRET = { require: 'apiKey.team == "a"' };

  test("an API key stays in the request; what is known of it is visible to shadow policies only", async () => {
    await using upstream = await echo();
    const apiKey = { shadow: true, mode: "strict", keys: [{ key: "k", metadata: { team: "a" } }], location: HEADER };
    const policies = { apiKey, authorization: { shadow: true, rules: [SECRET] }, transformations: TEAM };
    await using plane = await planeOf({ routes: [{ name: "r", policies, backends: to(upstream.port) }] });
    const valid = await RawPeer.ask(plane.port, "GET /valid HTTP/1.1\r\nHost: a\r\nX-Team-Key: k\r\n\r\n");
    assert.equal(valid.body, "GET /valid HTTP/1.1|host: a|x-team-key: k");
    assert.equal((await plane.logged('"/valid"')).shadow, undefined);
    assert.deepEqual(await ask(plane, "/missing"), [
      200,
      [
        "apiKey:deny no API key in the header x-team-key",
        "authorization:deny require rules[0] is not true (apiKey.team: null)",
      ],
    ]);
    assert.deepEqual(await ask(plane, "/wrong", "X-Team-Key: other\r\n"), [
      200,
      [
        "apiKey:deny the API key in the header x-team-key is not one of `keys`",
        "authorization:deny require rules[0] is not true (apiKey.team: null)",
      ],
    ]);
  });

  test("an enforced policy of the kind at a wider level stays in force, and sees the credential", async () => {
    await using upstream = await echo();
    const key = (key: string): object => ({ mode: "strict", keys: [{ key }], location: HEADER });
    const policies = { apiKey: { shadow: true, ...key("new") } };
    const policy = { apiKey: key("old") };
    const target = { gateway: { gatewayName: "default" } };
    await using plane = await planeOf(
      { routes: [{ name: "r", policies, backends: to(upstream.port) }] },
      { policies: [{ name: { name: "p" }, target, phase: "route", policy }] },
    );
    assert.deepEqual(await ask(plane, "/old", "X-Team-Key: old\r\n"), [
      200,
      ["apiKey:deny the API key in the header x-team-key is not one of `keys`"],
    ]);
    assert.deepEqual(await ask(plane, "/new", "X-Team-Key: new\r\n"), [401, undefined]);
  });

  test("a token is verified beside the request; rules in shadow wait for its claims", async () => {
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k" }] });
    const signed = new SignJWT({ sub: "alice" }).setProtectedHeader({ alg: "ES256", kid: "k" }).setIssuer(ISSUER);
    const token = await signed.setExpirationTime("5m").sign(privateKey);
    await using upstream = await echo();
    const policies = {
      jwtAuth: { shadow: true, mode: "strict", issuer: ISSUER, jwks },
      authorization: { shadow: true, rules: [{ deny: 'jwt.sub == "alice"' }] },
      transformations: { request: { set: { "x-sub": "jwt.sub" } } },
    };
    await using plane = await planeOf({ routes: [{ name: "r", policies, backends: to(upstream.port) }] });
    for (const path of ["/first", "/known"]) {
      const request = `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`;
      const { body } = await RawPeer.ask(plane.port, request);
      assert.equal(body, `GET ${path} HTTP/1.1|host: a|authorization: Bearer ${token}`);
      assert.deepEqual(await shadowOf(plane, path), ['authorization:deny rules[0] is true (jwt.sub: "alice")']);
      const { "jwt.sub": subject } = await plane.logged(`"${path}"`);
      assert.equal(subject, undefined);
    }
    const [status, shadow] = await ask(plane, "/none");
    assert.equal(status, 200);
    assert.match(String(shadow), /^jwtAuth:deny [^,]*$/);
  });

  test("rules that wait for a token decide about the request as it was at their turn", async () => {
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k" }] });
    const signed = new SignJWT({ sub: "alice" }).setProtectedHeader({ alg: "ES256", kid: "k" }).setIssuer(ISSUER);
    const token = await signed.setExpirationTime("5m").sign(privateKey);
    await using upstream = await echo();
    const policies = {
      jwtAuth: { shadow: true, mode: "strict", issuer: ISSUER, jwks },
      authorization: { shadow: true, ...DENY },
      requestHeaderModifier: { remove: ["x-a", "authorization"] },
    };
    await using plane = await planeOf({ routes: [{ name: "r", policies, backends: to(upstream.port) }] });
    const request = `GET /x HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    assert.equal((await RawPeer.ask(plane.port, request)).body, "GET /x HTTP/1.1|host: a");
    const shadow = await shadowOf(plane, "/x");
    assert.deepEqual(shadow, ['authorization:deny rules[0] is true (request.headers["x-a"]: "1")']);
  });

  test("a password is hashed after the request has been passed on", async () => {
    await using upstream = await RawUpstream.listen();
    // A slow hash: it goes to the thread.
    const htpasswd = "a:$$2y$$08$$abcdefghijklmnopqrstuuR7PBGcaT8p3Nq2OC4bU1H7M0rpNQzAy";
    const policies = { basicAuth: { shadow: true, mode: "strict", htpasswd } };
    await using plane = await planeOf({ routes: [{ name: "r", policies, backends: to(upstream.port) }] });
    const client = await RawPeer.connect(plane.port);
    const basic = Buffer.from("a:wrong").toString("base64");
    client.send(`GET /slow HTTP/1.1\r\nHost: a\r\nAuthorization: Basic ${basic}\r\n\r\n`);
    const backend = await upstream.connection();
    assert.ok((await backend.message()).fields.includes(`authorization: Basic ${basic}`));
    backend.send(reply("served"));
    assert.equal((await client.message()).body, "served");
    const shadow = await shadowOf(plane, "/slow");
    assert.match(String(shadow), /^basicAuth:deny /);
    client.socket.destroy();
  });

  test("fields that only look like those of a credential are passed on", async () => {
    await using upstream = await echo();
    const policies = { apiKey: { shadow: true, keys: [{ key: "k" }], location: HEADER } };
    await using plane = await planeOf({ routes: [{ name: "r", policies, backends: to(upstream.port) }] });
    const { body } = await RawPeer.ask(plane.port, "GET / HTTP/1.1\r\nHost: a\r\nX_Team_Key: k\r\n\r\n");
    assert.match(body, /x_team_key: k/);
  });
});

const HEADER = { header: { name: "x-team-key" } };
/** Enforced policies do not see what shadow policies have found: an absent value sets no field. */
const TEAM = { request: { set: { "x-team": "apiKey.team" } } };

suite("extAuthz in shadow", () => {
  const policyFor = (port: number, more: object = {}): object => ({
    extAuthz: { shadow: true, host: `127.0.0.1:${port}`, protocol: { http: HTTP }, ...more },
  });
  const HTTP = {
    includeResponseHeaders: ["x-user"],
    addRequestHeaders: {},
    metadata: { user: 'response.headers["x-user"]' },
  };

  test("the service is asked, and the client does not wait for it", async () => {
    await using upstream = await echo();
    await using service = await RawUpstream.listen();
    const policies = {
      ...policyFor(service.port),
      authorization: { shadow: true, rules: ['extauthz.user == "bob"'] },
    };
    await using plane = await planeOf({ routes: [{ name: "r", policies, backends: to(upstream.port) }] });
    const response = await RawPeer.ask(plane.port, "GET /x HTTP/1.1\r\nHost: a\r\nX-User: me\r\n\r\n");
    assert.equal(response.body, "GET /x HTTP/1.1|host: a|x-user: me");
    const asked = await service.connection();
    assert.match((await asked.message()).start, /^GET \/x /);
    asked.send(reply("", ["x-user: alice"]));
    const shadow = await shadowOf(plane, "/x");
    assert.deepEqual(shadow, ["authorization:deny no allow rule is true"]);
  });

  test("a denial and a failure are what would have happened", async () => {
    await using upstream = await echo();
    await using service = await RawUpstream.answering(() => reply("no", ["www-authenticate: Bearer"], "401 No"));
    const down = await closedPort();
    const route = (name: string, policies: object): object => ({
      name,
      policies,
      matches: [{ path: { exact: `/${name}` } }],
      backends: to(upstream.port),
    });
    const routes = [
      route("denied", policyFor(service.port)),
      route("failed", policyFor(down, { failureMode: { denyWithStatus: 503 } })),
      route("excused", policyFor(down, { failureMode: "allow" })),
    ];
    await using plane = await planeOf({ routes });
    assert.deepEqual(await ask(plane, "/denied"), [
      200,
      ["extAuthz:deny the service denies the request with status 401"],
    ]);
    const [status, shadow] = await ask(plane, "/failed");
    assert.equal(status, 200);
    assert.match(String(shadow), /^extAuthz:deny /);
    assert.deepEqual(await ask(plane, "/excused"), [200, undefined]);
    assert.deepEqual(counts(plane), {
      "extAuthz deny default/default web default/denied": 1,
      "extAuthz deny default/default web default/failed": 1,
      "extAuthz allow default/default web default/excused": 1,
    });
  });

  test("alternatives are in shadow together", async () => {
    await using upstream = await echo();
    await using service = await RawUpstream.answering(() => reply("no", [], "403 No"));
    const alternative = { host: `127.0.0.1:${service.port}`, protocol: { http: {} } };
    const conditional = [{ condition: 'request.path == "/asked"', ...alternative }];
    const policies = { extAuthz: { shadow: true, conditional } };
    await using plane = await planeOf({ routes: [{ name: "r", policies, backends: to(upstream.port) }] });
    assert.deepEqual(await ask(plane, "/asked"), [
      200,
      ["extAuthz:deny the service denies the request with status 403"],
    ]);
    assert.deepEqual(await ask(plane, "/other"), [200, undefined]);
  });
});

suite("localRateLimit in shadow", () => {
  const limit = (maxTokens: number, more: object = {}): object => ({ maxTokens, fillInterval: "1h", ...more });

  test("an item of a list takes tokens of its own, and leaves those of enforced items and their fields alone", async () => {
    const localRateLimit = [limit(1, { shadow: true }), limit(2), limit(100, { shadow: true })];
    await using plane = await planeOf({ routes: [{ name: "r", policies: { ...OK, localRateLimit } }] });
    const get = async (path: string) => {
      const response = await RawPeer.ask(plane.port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      const shadow = await shadowOf(plane, path);
      return [
        statusOf(response),
        ...valuesOf(response, "x-ratelimit-limit"),
        ...valuesOf(response, "x-ratelimit-remaining"),
        shadow,
      ];
    };
    assert.deepEqual(await get("/1"), [200, "2", "1", undefined]);
    const limited = ["localRateLimit:deny none of the 1 tokens is left; the bucket is never refilled"];
    assert.deepEqual(await get("/2"), [200, "2", "0", limited]);
    assert.deepEqual(await get("/3"), [429, "2", "0", limited]);
  });

  test("a list that is all in shadow limits nothing", async () => {
    const localRateLimit = [limit(0, { shadow: true })];
    await using plane = await planeOf({ routes: [{ name: "r", policies: { ...OK, localRateLimit } }] });
    const [status, shadow] = await ask(plane, "/1");
    assert.equal(status, 200);
    assert.match(String(shadow), /^localRateLimit:deny /);
  });
});

suite("other policies in shadow", () => {
  test("concurrencyLimit counts the requests that it would let pass, until they end, apart from what is enforced", async () => {
    await using upstream = await RawUpstream.listen();
    const concurrencyLimit = [{ maxRequests: 1, shadow: true }, { maxRequests: 3 }];
    await using plane = await planeOf({
      routes: [{ name: "r", policies: { concurrencyLimit }, backends: to(upstream.port) }],
    });
    let begun = 0;
    const begin = async (path: string): Promise<{ client: RawPeer; backend: RawPeer }> => {
      const client = await RawPeer.connect(plane.port);
      client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      const backend = await upstream.connection(begun++);
      await backend.message();
      return { client, backend };
    };
    const finish = async ({ client, backend }: Awaited<ReturnType<typeof begin>>, path: string): Promise<unknown> => {
      backend.send(reply("served", ["Connection: close"]));
      assert.equal(statusOf(await client.message()), 200);
      client.socket.destroy();
      return shadowOf(plane, path);
    };
    const first = await begin("/1");
    const second = await begin("/2");
    const third = await begin("/3");
    const [status, tooMany] = await ask(plane, "/4");
    const limited = ["concurrencyLimit:deny 1 request is in progress already; at most 1 may be"];
    assert.deepEqual([status, tooMany], [429, limited]);
    assert.equal(await finish(first, "/1"), undefined);
    const fifth = await begin("/5");
    assert.deepEqual(await finish(second, "/2"), limited);
    assert.deepEqual(await finish(third, "/3"), limited);
    assert.equal(await finish(fifth, "/5"), undefined);
    assert.deepEqual(counts(plane), {
      "concurrencyLimit allow default/default web default/r": 2,
      "concurrencyLimit deny default/default web default/r": 3,
    });
  });

  test("a limit in shadow counts a request beside a slow service in shadow no longer than the request", async () => {
    await using service = await RawUpstream.listen();
    const extAuthz = { shadow: true, host: `127.0.0.1:${service.port}`, protocol: { http: {} } };
    const concurrencyLimit = [{ maxRequests: 1, shadow: true }];
    await using plane = await planeOf({ routes: [{ name: "r", policies: { ...OK, extAuthz, concurrencyLimit } }] });
    const asked: RawPeer[] = [];
    for (const [i, path] of ["/1", "/2"].entries()) {
      assert.equal(statusOf(await RawPeer.ask(plane.port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)), 200);
      asked.push(await service.connection(i));
    }
    for (const each of asked) {
      await each.message();
      each.send(reply("", ["Connection: close"]));
    }
    // Both requests have ended before the limit was asked.
    assert.deepEqual([await shadowOf(plane, "/1"), await shadowOf(plane, "/2")], [undefined, undefined]);
  });

  test("satisfy leaves credentials where they are, and says why no alternative is satisfied", async () => {
    await using upstream = await echo();
    const any = [
      { apiKey: { keys: [{ key: "k" }], location: HEADER } },
      { basicAuth: { htpasswd: "u:{SHA}UWu6nsAWBjRdyIE7ySo/Hyz8RM4=" } },
    ];
    const policies = { satisfy: { shadow: true, any }, authorization: { shadow: true, rules: ["has(apiKey.key)"] } };
    await using plane = await planeOf({ routes: [{ name: "r", policies, backends: to(upstream.port) }] });
    const valid = await RawPeer.ask(plane.port, "GET /valid HTTP/1.1\r\nHost: a\r\nX-Team-Key: k\r\n\r\n");
    assert.equal(valid.body, "GET /valid HTTP/1.1|host: a|x-team-key: k");
    const [status, shadow] = await ask(plane, "/none");
    assert.equal(status, 200);
    assert.equal(
      (shadow as string[])[0],
      'satisfy:deny no alternative is satisfied: apiKey: no API key in the header x-team-key; basicAuth: no credentials in the header authorization after "Basic "',
    );
    assert.equal(counts(plane)["satisfy allow default/default web default/r"], 1);
  });

  test("ipAccess and csrf reject nothing; an enforced list beside them does", async () => {
    const policies = { ...OK, ipAccess: { shadow: true, allow: ["192.0.2.0/24"] }, csrf: { shadow: true } };
    const denied = { name: "denied", matches: [{ path: { exact: "/denied" } }], policies };
    const listener = { routes: [{ name: "r", policies }, denied] };
    await using plane = await planeOf(listener, {
      policies: [
        {
          name: { name: "p" },
          target: { route: { name: "denied" } },
          policy: { ipAccess: { deny: ["127.0.0.1"] } },
        },
      ],
    });
    const response = await RawPeer.ask(
      plane.port,
      "POST /x HTTP/1.1\r\nHost: a\r\nOrigin: http://other\r\nContent-Length: 0\r\n\r\n",
    );
    assert.equal(statusOf(response), 200);
    assert.deepEqual(await shadowOf(plane, "/x"), [
      "ipAccess:deny 127.0.0.1 is not in allow",
      "csrf:deny the origin http://other is not in additionalOrigins, and not that of the request",
    ]);
    assert.deepEqual(await ask(plane, "/denied"), [403, ["ipAccess:deny 127.0.0.1 is not in allow"]]);
  });
});
