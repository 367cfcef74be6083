import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { type Call, call, traceOf, Upstream } from "./support.ts";

const route = (name: string, policies: object, upstream: string) => ({
  name,
  matches: [{ path: { exact: `/${name}` } }],
  policies,
  backends: [{ host: upstream }],
});

suite("the severity shows the event that decided", () => {
  let upstream: Upstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await Upstream.start();
    const keys = [{ key: "right" }];
    const routes = [
      ["strict", { apiKey: { keys, mode: "strict" } }],
      ["optional", { apiKey: { keys, mode: "optional" } }],
      ["permissive", { apiKey: { keys, mode: "permissive" } }],
      ["limited", { localRateLimit: [{ maxTokens: 1, tokensPerFill: 1, fillInterval: "1h" }] }],
      ["cors", { cors: { allowOrigins: ["https://a.test"] } }],
      ["csrf", { csrf: {} }],
      ["transformed", { transformations: { request: { set: { "x-a": "request.headers['missing']" } } } }],
    ] as const;
    gateway = await TestGateway.start({
      ...proxyTo(upstream.address),
      binds: [{ port: 0, listeners: [{ routes: routes.map(([name, set]) => route(name, set, upstream.address)) }] }],
    });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  /** Severity and text of the first policy's event. */
  async function policyEvent(request: Call): Promise<readonly [string, string, unknown]> {
    const events = await traceOf(gateway, () => call(gateway.port(), request));
    for (const { severity, message } of events) {
      if (message.type !== "policy") continue;
      const { result } = message;
      return result.type === "skip" ? [severity, result.reason, undefined] : [severity, result.details, result.data];
    }
    throw new Error("no policy event");
  }

  const wrong = { authorization: "Bearer wrong" };
  const unknown = 'the API key in the header authorization after "Bearer " is not one of `keys`';

  test("a denial is an error", async () => {
    assert.deepEqual(await policyEvent({ path: "/strict" }), [
      "error",
      'no API key in the header authorization after "Bearer "',
      { valid: false, reason: "no API key found" },
    ]);
    for (const path of ["/strict", "/optional"])
      assert.deepEqual(await policyEvent({ path, headers: wrong }), ["error", unknown, { valid: false }]);
    assert.equal((await policyEvent({ path: "/limited" }))[0], "info");
    assert.deepEqual(await policyEvent({ path: "/limited" }), [
      "error",
      "none of the 1 tokens is left; the bucket is refilled in 3600s",
      { allowed: false, limit: 1 },
    ]);
    assert.equal(
      (await policyEvent({ method: "OPTIONS", path: "/cors", headers: { origin: "https://b.test" } }))[0],
      "error",
    );
    assert.equal(
      (await policyEvent({ method: "POST", path: "/csrf", headers: { origin: "https://b.test" } }))[0],
      "error",
    );
  });

  test("a policy that is skipped without its input, or that fails open, is a warning", async () => {
    assert.deepEqual(await policyEvent({ path: "/optional" }), [
      "warn",
      'no API key in the header authorization after "Bearer ", which mode optional allows',
      undefined,
    ]);
    assert.deepEqual(await policyEvent({ path: "/permissive", headers: wrong }), [
      "warn",
      `${unknown}, which mode permissive allows`,
      { valid: false },
    ]);
    assert.deepEqual(await policyEvent({ path: "/cors" }), [
      "warn",
      "the request has no origin, so no page of another site made it",
      undefined,
    ]);
    assert.equal((await policyEvent({ path: "/cors", headers: { origin: "https://b.test" } }))[0], "warn");
    const [severity, text] = await policyEvent({ path: "/transformed" });
    assert.equal(severity, "warn");
    assert.match(text, /^changed the request, but failed on set.x-a: /);
  });

  test("a secret of the request is redacted where it appears in a decision", async () => {
    const origin = "https://s3cret-value.test";
    const headers = { origin, authorization: `Bearer ${origin}` };
    const reason = "the origin <redacted> is not in additionalOrigins, and not that of the request";
    const event = await policyEvent({ method: "POST", path: "/csrf", headers });
    assert.deepEqual(event, ["error", reason, { allowed: false, reason }]);
  });

  test("a policy that succeeds, or does not apply to the request, is information", async () => {
    assert.equal((await policyEvent({ path: "/strict", headers: { authorization: "Bearer right" } }))[0], "info");
    assert.equal((await policyEvent({ path: "/cors", headers: { origin: "https://a.test" } }))[0], "info");
    assert.equal((await policyEvent({ path: "/csrf" }))[0], "info");
  });
});
