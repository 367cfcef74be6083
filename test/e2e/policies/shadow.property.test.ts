/** A gateway whose only policies are in shadow passes on and responds exactly what one without policies does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { REQUEST_ORDER } from "../../../src/policies/order.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { fc } from "../../helpers/property.ts";
import { RawPeer, RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { irOf } from "../../helpers/supervisor.ts";
import { until } from "../../helpers/until.ts";

const RUNS = 80;

const rule = fc.constantFrom<object | string>(
  { deny: 'request.headers["x-a"] == "1"' },
  { require: 'apiKey.team == "a" || basicAuth.username == "u"' },
  { deny: 'string(request.body).contains("drop")' },
  { allow: "extauthz.user == 'alice'" },
  'json(request.body).user == "x"',
  "request.path.startsWith('/a')",
);
const mode = fc.constantFrom("strict", "optional");
const location = fc.constantFrom(
  { header: { name: "x-key", prefix: "Bearer " } },
  { queryParameter: { name: "key" } },
  { cookie: { name: "key" } },
);
const service = (port: number) => ({ host: `127.0.0.1:${port}`, timeout: "5s" });

/** Each kind is there or not. */
const shadows = (port: number) =>
  fc.record(
    {
      authorization: fc.record({ rules: fc.array(rule, { minLength: 1, maxLength: 3 }) }),
      apiKey: fc.record({ mode, location, keys: fc.constant([{ key: "k", metadata: { team: "a" } }]) }),
      basicAuth: fc.record({
        mode,
        // The password is p.
        htpasswd: fc.constant("u:{SHA}UWu6nsAWBjRdyIE7ySo/Hyz8RM4="),
        authorizationLocation: location,
      }),
      extAuthz: fc
        .record({
          protocol: fc.constantFrom(
            { http: { includeResponseHeaders: ["x-user"], metadata: { user: "response.headers['x-user']" } } },
            { http: {} },
            { grpc: {} },
          ),
          failureMode: fc.constantFrom("allow", "deny"),
          includeRequestBody: fc.constantFrom(
            { maxRequestBytes: 4 },
            { maxRequestBytes: 4, allowPartialMessage: true },
          ),
        })
        .map((more) => ({ ...service(port), ...more })),
      satisfy: fc.record({
        any: fc.array(
          fc.oneof(
            fc.record({ apiKey: fc.record({ location, keys: fc.constant([{ key: "k" }]) }) }),
            fc.constant({ ipAccess: { allow: ["192.0.2.0/24"] } }),
          ),
          { minLength: 1, maxLength: 2 },
        ),
      }),
      ipAccess: fc.constantFrom({ allow: ["192.0.2.0/24"] }, { deny: ["127.0.0.0/8"] }, { deny: ["192.0.2.0/24"] }),
      concurrencyLimit: fc.array(
        fc.record({ maxRequests: fc.constantFrom(1, 2), key: fc.constantFrom("source.address", "request.path") }),
        { minLength: 1, maxLength: 2 },
      ),
      csrf: fc.constantFrom({}, { additionalOrigins: ["http://o.test"] }),
      localRateLimit: fc.array(fc.record({ maxTokens: fc.constantFrom(0, 1, 100), fillInterval: fc.constant("1h") }), {
        minLength: 1,
        maxLength: 2,
      }),
    },
    { requiredKeys: [] },
  );

const request = fc.record({
  method: fc.constantFrom("GET", "POST"),
  target: fc.constantFrom("/a", "/b?key=k", "/b?key=x&q", "/deny"),
  fields: fc.subarray([
    "X-A: 1",
    "X-Key: Bearer k",
    "X_Key: Bearer k",
    "Cookie: key=k; b=2",
    "X-User: me",
    "Origin: http://o.test",
  ]),
  body: fc.constantFrom("", "drop it all", '{"user":"x"}'),
});

/** As `shadow: true` is written in the policy, or in each item of a list. */
function inShadow(policies: Readonly<Record<string, unknown>>): object {
  const marked = (policy: unknown): unknown =>
    Array.isArray(policy) ? policy.map(marked) : { shadow: true, ...Object(policy) };
  return Object.fromEntries(Object.entries(policies).map(([kind, policy]) => [kind, marked(policy)]));
}

test("shadow policies change neither what a backend gets nor what a client gets", async () => {
  await using upstream = await RawUpstream.answering(({ start, fields, body }) =>
    reply([start, ...fields, body].join("\n")),
  );
  await using authorizer = await RawUpstream.answering(({ start }) =>
    start.includes("deny") ? reply("no", ["x-user: alice"], "403 No") : reply("", ["x-user: alice"]),
  );
  const planeWith = async (policies: object, phase: "route" | "gateway"): Promise<TestPlane> => {
    const plane = new TestPlane();
    const route = { name: "r", backends: [{ host: `127.0.0.1:${upstream.port}` }] };
    const inPhase = Object.groupBy(Object.entries(policies), ([kind]) =>
      (REQUEST_ORDER[phase] as readonly string[]).includes(kind) ? phase : "route",
    );
    const listener = {
      policies: Object.fromEntries(inPhase.gateway ?? []),
      routes: [{ ...route, policies: Object.fromEntries(inPhase.route ?? []) }],
    };
    await plane.apply(
      irOf({ binds: [{ port: 0, listeners: [listener] }], frontendPolicies: { http: { requestId: { mode: "off" } } } }),
    );
    plane.port = (plane.plane.tasks() as { port: number }[])[0]?.port ?? 0;
    return plane;
  };
  let decisions = 0;
  await fc.assert(
    fc.asyncProperty(
      shadows(authorizer.port),
      fc.constantFrom("route", "gateway"),
      fc.array(request, { minLength: 1, maxLength: 4 }),
      async (policies, phase, requests) => {
        await using plain = await planeWith({}, phase);
        await using shadowed = await planeWith(inShadow(policies), phase);
        for (const { method, target, fields, body } of requests) {
          const lines = [`${method} ${target} HTTP/1.1`, "Host: a", ...fields];
          if (method === "POST") lines.push(`Content-Length: ${body.length}`);
          const text = `${lines.join("\r\n")}\r\n\r\n${method === "POST" ? body : ""}`;
          const [expected, got] = [await RawPeer.ask(plain.port, text), await RawPeer.ask(shadowed.port, text)];
          assert.deepEqual(withoutDate(got), withoutDate(expected));
        }
        // Every request of a kind has its decision, once the slowest has been made.
        const kinds = Object.keys(policies).length;
        const made = (): number =>
          (shadowed.metrics.snapshot().policy_shadow_total ?? []).reduce((sum, { value }) => sum + Number(value), 0);
        await until(() => made() === kinds * requests.length, "decisions of all shadow policies");
        decisions += kinds * requests.length;
      },
    ),
    { numRuns: RUNS },
  );
  assert.ok(decisions > RUNS);
});

function withoutDate(message: Awaited<ReturnType<typeof RawPeer.ask>>): unknown {
  return { ...message, fields: message.fields.filter((line) => !/^date:/i.test(line)) };
}
