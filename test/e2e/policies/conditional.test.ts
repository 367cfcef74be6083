import assert from "node:assert/strict";
import { test } from "node:test";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { call } from "../trace/support.ts";

const HOUR = { tokensPerFill: 0, fillInterval: "1h" };

test("each request gets the first alternative whose condition is true", async () => {
  const policies = {
    localRateLimit: {
      conditional: [
        { condition: 'request.headers["x-plan"] == "gold"', maxTokens: 2, ...HOUR },
        { condition: 'request.headers["x-plan"] == "free"', maxTokens: 0, ...HOUR },
        { maxTokens: 5, ...HOUR },
      ],
    },
    transformations: {
      conditional: [
        { condition: 'request.path == "/a"', response: { set: { "x-is": "'a'" } } },
        { response: { set: { "x-is": "'other'" } } },
      ],
    },
    directResponse: { conditional: [{ condition: 'request.path == "/a"', status: 210 }, { status: 211 }] },
  };
  await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes: [{ policies }] }] }] });
  const ask = async (path: string, plan: string): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers: { "x-plan": plan } });
    return `${response.status} ${response.headers.get("x-is")}`;
  };
  assert.equal(await ask("/a", "none"), "210 a");
  assert.equal(await ask("/b", "none"), "211 other");
  assert.equal(await ask("/a", "free"), "429 a");
  assert.equal(await ask("/a", "gold"), "210 a");
  assert.equal(await ask("/a", "gold"), "210 a");
  assert.equal(await ask("/b", "gold"), "429 other");
  // Each alternative has a count of its own.
  assert.equal(await ask("/b", "none"), "211 other");
});

test("a body that is too long for the conditions does not bypass the policies", async () => {
  const condition = 'string(request.body).contains("rm")';
  const route = (name: string, policies: object): object => ({
    matches: [{ path: { exact: `/${name}` } }],
    policies: { ...policies, directResponse: { status: 200 } },
  });
  const routes = [
    route("limit", { localRateLimit: { conditional: [{ condition, maxTokens: 0, ...HOUR }] } }),
    // Nothing listens there.
    route("service", { extAuthz: { conditional: [{ condition, host: "127.0.0.1:1" }] } }),
    route("change", { transformations: { conditional: [{ condition, response: { set: { ":status": "201" } } }] } }),
  ];
  await using gateway = await LocalGateway.start({
    frontendPolicies: { http: { maxBufferSize: 8 } },
    binds: [{ port: 0, listeners: [{ routes }] }],
  });
  const post = async (path: string, body: string): Promise<number> =>
    (await call(gateway.port(), { method: "POST", path, body })).status;
  const statuses = async (body: string): Promise<number[]> => [
    await post("/limit", body),
    await post("/service", body),
    await post("/change", body),
  ];
  assert.deepEqual(await statuses("ls"), [200, 200, 200]);
  assert.deepEqual(await statuses("rm"), [429, 403, 201]);
  assert.deepEqual(await statuses("rm      and more"), [413, 413, 413]);
});
