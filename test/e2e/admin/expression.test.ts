import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AdminClient } from "../../../src/admin/client/client.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { until } from "../../helpers/until.ts";

const SECRET = "s3cr3t-of-the-gateway";

let gateway: TestGateway;
let admin: AdminClient;
before(async () => {
  const policies = { authorization: { rules: [`request.headers["x-key"] == "${SECRET}"`] } };
  const routes = [{ name: "shop", policies, backends: [{ host: "127.0.0.1:9" }] }];
  gateway = await TestGateway.start({
    config: { customFunctions: "failed(code) { code >= 400 }" },
    binds: [{ port: 0, listeners: [{ name: "web", routes }] }],
  });
  admin = new AdminClient(gateway.url("admin"));
});
after(() => gateway.stop());

test("an expression about a recorded request, with the functions of the configuration in effect", async () => {
  assert.equal((await fetch(`http://127.0.0.1:${gateway.port()}/cart`)).status, 403);
  const record = await until(async () => (await admin.requests({ limit: 1 })).records[0]);
  const id = `${record.worker}-${record.number}`;
  const expression = 'failed(response.code) && policy == "authorization"';
  const { value, parts } = await admin.evaluate({ expression, scope: "record", id });
  assert.equal(value, true);
  assert.deepEqual(
    parts.map(({ from, to, value: part }) => [expression.slice(from, to), part]),
    [
      ["failed(response.code)", true],
      ["response.code", 403],
      ['policy == "authorization"', true],
      ["policy", "authorization"],
    ],
  );
  assert.equal((await admin.evaluate({ expression: "request.path", id })).value, "/cart");
  const everything = await admin.evaluate({ expression: "variables()", id });
  assert.doesNotMatch(JSON.stringify(everything), new RegExp(SECRET));
});

test("an unknown id, and an unknown scope, say what to do", async () => {
  const ask = async (path: string, question?: object): Promise<[number, string]> => {
    const init = question && { method: "POST", body: JSON.stringify(question) };
    const response = await fetch(`${gateway.url("admin")}${path}`, init);
    return [response.status, await response.text()];
  };
  const [status, text] = await ask("/expression", { expression: "1", id: "0-99999" });
  assert.equal(status, 400);
  assert.match(text, /"code": "record"/);
  const [, scope] = await ask("/expression", { expression: "1", scope: "here" });
  assert.match(scope, /"hint": "write one of request, response, record/);
  const [bad, names] = await ask("/expression/names?scope=here");
  assert.equal(bad, 400);
  assert.match(names, /invalid scope "here": expected request, response, record/);
});
