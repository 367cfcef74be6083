import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import type { Explanation } from "../../../src/rehearsal/explanation.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { TGCTL } from "../../helpers/programs.ts";
import { Upstream } from "../trace/support.ts";

suite("explanations of a running gateway", () => {
  let upstream: Upstream;
  let gateway: TestGateway;

  const config = (status: number): object => ({
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              { name: "all", backends: [{ host: upstream.address }] },
              {
                name: "limited",
                matches: [{ path: { pathPrefix: "/limited" } }],
                policies: { localRateLimit: [{ maxTokens: 1, fillInterval: "1h", key: "request.headers['x-user']" }] },
                backends: [{ host: upstream.address }],
              },
              {
                name: "direct",
                matches: [{ path: { exact: "/direct" } }],
                policies: { directResponse: { status } },
              },
            ],
          },
        ],
      },
    ],
  });

  before(async () => {
    upstream = await Upstream.start();
    gateway = await TestGateway.start(config(418));
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  async function tgctl(args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const { port } = new URL(gateway.url("admin"));
    const child = spawn(TGCTL, ["explain", "--local", "--proxy-admin-port", port, ...args]);
    const closed = once(child, "close");
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = (await closed) as [number];
    return { code, stdout, stderr };
  }

  const ask = (body: string): Promise<Response> => fetch(`${gateway.url("admin")}/explain`, { method: "POST", body });
  async function explained(request: object): Promise<Explanation> {
    const response = await ask(JSON.stringify({ request }));
    assert.equal(response.status, 200);
    return (await response.json()) as Explanation;
  }
  const url = (path: string): string => `http://shop.test:${gateway.port()}${path}`;

  test("the tree of a request, and exit code 1 for one that the gateway refuses", async () => {
    const passed = await tgctl(["--", url("/other")]);
    assert.deepEqual([passed.code, passed.stderr], [0, ""]);
    assert.match(passed.stdout, /^GET \/other → 200 · route default\/all · endpoint /);
    assert.match(passed.stdout, /\n {4}✗ route limited {2}path: /);
    const refused = await tgctl(["-o", "json", "--", "POST", url("/direct")]);
    assert.equal(refused.code, 1);
    const { generation, outcomes } = JSON.parse(refused.stdout) as Explanation;
    assert.deepEqual([generation, outcomes[0]?.status, outcomes[0]?.refused], [1, 418, true]);
    assert.equal(upstream.connections, 0);
  });

  test("tokens that clients have taken are missing in a rehearsal, which takes none", async () => {
    const headers = { "x-user": "me" };
    const request = { url: url("/limited"), headers };
    for (let i = 0; i < 3; i++) assert.equal((await explained(request)).outcomes[0]?.status, 200);
    const reach = () => fetch(`http://localhost:${gateway.port()}/limited`, { headers });
    assert.equal((await reach()).status, 200);
    assert.equal((await explained(request)).outcomes[0]?.status, 429);
    assert.equal((await explained({ ...request, headers: { "x-user": "you" } })).outcomes[0]?.status, 200);
    assert.equal((await reach()).status, 429);
  });

  test("the configuration in effect is the one that is explained", async () => {
    assert.equal((await explained({ url: url("/direct") })).outcomes[0]?.status, 418);
    await gateway.reconfigure(config(410));
    const { generation, outcomes } = await explained({ url: url("/direct") });
    assert.deepEqual([generation, outcomes[0]?.status], [2, 410]);
  });

  test("what is wrong with a question is said with its place and how to write it", async () => {
    const example = 'write {"request": {"url": "http://shop.example/cart"}, "assume": {"extAuthz": "deny"}}';
    for (const [body, message, hint] of [
      [{ reqest: {} }, "reqest: unknown field", example],
      [{ request: { url: "http://a", headers: { x: 1 } } }, "request.headers: not what a request has there", undefined],
      [{ request: { url: "ftp://a" } }, "the scheme ftp cannot be explained", undefined],
      [
        { request: { url: "http://a:1/" } },
        "the configuration has no bind for http on port 1",
        `write http://a:${gateway.port()}`,
      ],
      [
        { request: { url: url("/") }, assume: { extAuthz: "deny" } },
        "nothing depends on the assumption extAuthz",
        "leave out --assume extAuthz=deny, or check which route the request gets",
      ],
    ] as const) {
      const response = await ask(JSON.stringify(body));
      const { error } = (await response.json()) as { error: { message: string; hint: string } };
      assert.deepEqual([response.status, error.message], [400, message]);
      if (hint !== undefined) assert.equal(error.hint, hint);
    }
    const noJson = await ask("{");
    assert.deepEqual([noJson.status, (await noJson.text()).split(";")[0]], [400, "the body is not JSON"]);
    assert.equal((await ask("x".repeat(4 * 1024 * 1024 + 1))).status, 413);
    const { code, stderr } = await tgctl(["--", "http://a:1/"]);
    assert.equal(code, 2);
    assert.match(stderr, /^Error: the configuration has no bind for http on port 1\nTry: write http:\/\/a:\d+\n$/);
  });
});
