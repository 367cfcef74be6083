import assert from "node:assert/strict";
import { test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";

const HOUR = { tokensPerFill: 0, fillInterval: "1h" };

test("each request gets the first alternative whose condition holds", async () => {
  const policies = {
    localRateLimit: {
      conditional: [
        { condition: 'request.headers["x-plan"] == "gold"', maxTokens: 2, ...HOUR },
        { condition: 'request.headers["x-plan"] == "free"', maxTokens: 0, ...HOUR },
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
  await using gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ routes: [{ policies }] }] }] });
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
});
