import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { type RawMessage, RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { call, sequence, traceOf } from "../trace/support.ts";

suite("extAuthz in a gateway", () => {
  const questions: RawMessage[] = [];
  let service: RawUpstream;
  let upstream: RawUpstream;
  let gateway: TestGateway;
  let port: number;

  before(async () => {
    service = await RawUpstream.answering((question) => {
      questions.push(question);
      return question.start.includes("/no") ? reply("no entry", ["x-why: because"], "403 Forbidden") : reply("");
    });
    upstream = await RawUpstream.answering(({ body }) => reply(`got ${body}`));
    const ask = (phase: string, more: object = {}): object => ({
      extAuthz: {
        host: `127.0.0.1:${service.port}`,
        protocol: { http: { addRequestHeaders: { "x-phase": `"${phase}"` }, metadata: { [phase]: "1" }, ...more } },
      },
    });
    const host = `127.0.0.1:${upstream.port}`;
    const allPhases = {
      name: "phases",
      matches: [{ path: { pathPrefix: "/phases" } }],
      policies: ask("route"),
      backends: [{ host, policies: ask("backend") }],
    };
    const found = {
      name: "found",
      matches: [{ path: { pathPrefix: "/found" } }],
      policies: ask("body", { metadata: { length: "size(request.body)" } }),
      backends: [{ host }],
    };
    gateway = await TestGateway.start({
      frontendPolicies: { accessLog: { add: { found: "extauthz" } } },
      binds: [{ port: 0, listeners: [{ policies: ask("gateway"), routes: [allPhases, found] }] }],
    });
    port = gateway.port();
  });
  after(async () => {
    await gateway.stop();
    await service[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  /** Phases in which the service was called since the last check. */
  const phases = (): string[] =>
    questions.splice(0).map(({ fields }) => fields.find((line) => line.startsWith("x-phase"))?.slice(9) ?? "");

  test("each phase calls the service separately, and a denial ends the request", async () => {
    const answer = await call(port, { method: "POST", path: "/phases", body: "hello" });
    assert.equal(answer.body.toString(), "got hello");
    assert.deepEqual(phases(), ["gateway", "route", "backend"]);
    const refused = await call(port, { path: "/phases/no" });
    assert.deepEqual([refused.status, refused.body.toString()], [403, "no entry"]);
    assert.deepEqual(phases(), ["gateway"]);
  });

  test("the access log has the metadata of all phases; expressions may read the request's body", async () => {
    await call(port, { path: "/phases/found" });
    await call(port, { method: "POST", path: "/found", body: "hello" });
    const logged = (path: string): unknown =>
      gateway.lines.find((line) => line["http.path"] === path && line.scope === "request")?.found;
    await gateway.until(() => logged("/found") !== undefined && logged("/phases/found") !== undefined, "the log");
    const parse = (value: unknown): unknown => (typeof value === "string" ? JSON.parse(value) : value);
    assert.deepEqual(parse(logged("/phases/found")), { gateway: 1, route: 1, backend: 1 });
    assert.deepEqual(parse(logged("/found")), { gateway: 1, length: 5 });
    phases();
  });

  test("gRPC clients get a denial as a gRPC status", async () => {
    const headers = { "content-type": "application/grpc", te: "trailers" };
    const answer = await call(port, { method: "POST", path: "/no", headers });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["content-type"], "application/grpc");
    assert.equal(answer.headers["grpc-status"], "7");
    assert.equal(answer.headers["grpc-message"], "no%20entry");
    assert.equal(answer.headers["x-why"], "because");
    assert.equal(answer.body.length, 0);
  });

  test("a trace shows each call in its phase, with its scope, and the decision", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/phases" }));
    const shown = sequence(events);
    const calls = ["backendCallStart", "backendCallResult", "policy"];
    for (const [phase, stage] of [
      ["gateway", "gateway ext authz"],
      ["route", "ext authz"],
      ["backend", "backend ext authz"],
    ] as const) {
      const at = shown.indexOf(`policySelection ${phase}`);
      assert.deepEqual(shown.slice(at + 1, at + 5), [...calls, `requestSnapshot ${stage}`], phase);
      assert.deepEqual(
        events.slice(at + 1, at + 4).map(({ scope }) => scope),
        [["ext_authz"], ["ext_authz"], undefined],
      );
      const [, result, policy] = events.slice(at + 1, at + 4).map(({ message }) => message);
      assert.deepEqual(result, { type: "backendCallResult", status: 200, error: null });
      assert.deepEqual(policy, {
        type: "policy",
        kind: "ext_auth",
        result: { type: "apply", details: "the service allows the request", data: { result: "allow" }, snapshot: null },
      });
    }
    const refused = await traceOf(gateway, () => call(port, { path: "/phases/no" }));
    const policy = refused.find(({ message }) => message.type === "policy")?.message;
    assert.ok(policy?.type === "policy" && policy.result.type === "apply");
    assert.deepEqual(policy.result.data, { result: "deny" });
    assert.ok(!sequence(refused).includes("routeSelection"));
  });
});
