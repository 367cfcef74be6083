/** Policies with `shadow: true`: what they would do is logged, counted and traced, and nothing else happens. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";
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

/** The status of a request, and the shadow decisions in its log line. */
async function ask(plane: TestPlane, path: string, fields = ""): Promise<[status: number, shadow: unknown]> {
  const response = await RawPeer.ask(plane.port, `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`);
  const { shadow } = await plane.logged(`"${path}"`);
  return [statusOf(response), shadow];
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
      ['authorization:deny deny rules[0] is true (request.headers["x-a"]: "1")'],
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
    const log = (index: number) => [`authorization:deny deny rules[${index}] is true (request.headers["x-a"]: "1")`];
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
    const [, shadow] = await ask(plane, "/x", "X-A: 1\r\n");
    assert.deepEqual(shadow, [
      'authorization:deny deny rules[0] is true (request.headers["x-a"]: "1")',
      "authorization:deny require rules[0] is not true",
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
    const { shadow } = await plane.logged('"/body"');
    assert.deepEqual(shadow, ["authorization:deny deny rules[0] is true"]);
    client.socket.destroy();
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
    const { shadow } = await plane.logged('"/cut"');
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
      reason: 'deny rules[0] is true (request.headers["x-a"]: "1")',
    });
    assert.equal(
      events.some((event) => event.type === "requestSnapshot" && event.stage.includes("authorization")),
      false,
    );
  });
});
