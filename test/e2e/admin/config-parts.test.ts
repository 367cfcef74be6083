import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AdminClient } from "../../../src/admin/client/client.ts";
import { TestGateway } from "../../helpers/gateway.ts";

const SECRET = "hunter2-secret";
const MANY = 250;

let gateway: TestGateway;
let client: AdminClient;
before(async () => {
  const backends = [{ host: "127.0.0.1:9" }];
  const routes = [
    {
      name: "cart",
      policies: {
        cors: { allowOrigins: ["https://shop.example"] },
        requestHeaderModifier: { set: { "x-link": `https://shop.example/?token=${SECRET}` } },
      },
      backends,
    },
    {
      name: "keyed",
      matches: [{ path: { exact: "/keyed" }, headers: [{ name: "authorization", value: { exact: SECRET } }] }],
      policies: { apiKey: { keys: [{ key: SECRET }] } },
      backends: [{ backend: "/shop" }],
    },
    ...Array.from({ length: MANY }, (_, i) => ({
      name: `many-${i}`,
      matches: [{ path: { exact: `/m/${i}` } }],
      backends,
    })),
  ];
  gateway = await TestGateway.start({
    // Before the routes, though its part comes after theirs.
    backends: [
      {
        name: "shop",
        host: "127.0.0.1:9",
        policies: {
          requestHeaderModifier: { set: { "x-shop": "1" } },
          health: { eviction: { consecutiveFailures: 3 } },
        },
      },
    ],
    binds: [{ port: 0, listeners: [{ name: "web", routes }] }],
    routeGroups: [{ name: "inner", routes: [{ name: "leaf", backends }] }],
    policies: [
      {
        name: { name: "all", namespace: "default" },
        target: { gateway: { gatewayName: "default", gatewayNamespace: "default" } },
        policy: { csrf: {} },
      },
    ],
  });
  client = new AdminClient(gateway.url("admin"));
});
after(() => gateway?.stop());

test("parts stand in the order of the configuration, in pages, with depth and place", async () => {
  const { total, found, page, parts } = await client.configParts({ limit: 4 });
  assert.deepEqual([total, found, page], [MANY + 9, MANY + 9, 1]);
  assert.deepEqual(
    parts.map(({ kind, name, depth }) => [kind, name, depth]),
    [
      ["bind", "bind/0", 0],
      ["listener", "default/default web", 1],
      ["route", "default/cart", 2],
      ["route", "default/keyed", 2],
    ],
  );
  assert.equal(parts[2]?.origin?.place?.line !== undefined, true);
  const last = await client.configParts({ limit: 100, page: 3 });
  assert.deepEqual(
    last.parts.slice(-6).map(({ kind, name }) => `${kind} ${name}`),
    [
      `route default/many-${MANY - 1}`,
      "route group inner",
      "route default/leaf",
      "backend /shop",
      "policy default/all",
      "settings of the process",
    ],
  );
});

test("parts where a policy is in effect are found, also where it is written elsewhere", async () => {
  const names = async (policy: string): Promise<readonly string[]> => {
    const { parts, found } = await client.configParts({ policy, limit: 1000 });
    assert.equal(parts.length, found);
    return parts.map(({ kind, name }) => `${kind} ${name}`);
  };
  assert.deepEqual(await names("cors"), ["route default/cart"]);
  const withCsrf = await names("csrf");
  assert.ok(withCsrf.includes("route default/many-7"), "policies of the gateway are in effect at its routes");
  assert.deepEqual(await names("jwtAuth"), []);
  assert.deepEqual(await names("health"), ["route default/keyed", "backend /shop"], "at the backend and at its routes");
  const { found } = await client.configParts({ policy: "csrf", search: "many-7", limit: 10 });
  assert.equal(found, 11, "many-7 and many-70 to many-79");
});

test("a part is found by its key, by the origin of what is in it, and by its line; its page is shown", async () => {
  const origin = "binds[0].listeners[0].routes[130].matches[0].path";
  const { chosen, page, parts } = await client.configParts({ at: origin });
  assert.equal(chosen?.name, "default/many-128");
  assert.equal(page, 2);
  assert.ok(parts.some(({ key }) => key === chosen?.key));
  const { file = "", line = 0 } = chosen?.origin?.place ?? {};
  for (const at of [chosen?.key, `${file}:${line}`, `${file}:${line + 1}`])
    assert.equal((await client.configParts({ at })).chosen?.key, chosen?.key, at);
  assert.equal((await client.configParts({ at: "binds[0].listeners[0].routes[13]" })).chosen?.name, "default/many-11");
  assert.equal((await client.configParts({ at: "binds[7]" })).chosen, undefined);
});

test("a search reads what is in the parts, without secrets", async () => {
  const names = async (search: string) => (await client.configParts({ search })).parts.map(({ name }) => name);
  assert.deepEqual(await names("HTTPS://shop.example"), ["default/cart"]);
  assert.deepEqual(await names("/m/249"), ["default/many-249"]);
  assert.deepEqual(await names("x-link"), ["default/cart"]);
  assert.deepEqual(await names(SECRET), []);
  const { chosen } = await client.configParts({ at: "binds[0].listeners[0].routes[1]" });
  assert.match(JSON.stringify(chosen), /"authorization".*<redacted>/);
  assert.doesNotMatch(JSON.stringify(chosen), new RegExp(SECRET));
});
