import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { TestGateway } from "../../helpers/gateway.ts";
import { call, traceOf } from "../trace/support.ts";

const upstream = createServer((request, response) => response.end(`${request.url} ${request.headers["x-token"]}`));
await once(upstream.listen(0, "127.0.0.1"), "listening");
after(() => {
  upstream.closeAllConnections();
  upstream.close();
});

const { privateKey, publicKey } = await generateKeyPair("ES256");
const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k" }] });
const token = await new SignJWT({ iss: "i" })
  .setProtectedHeader({ alg: "ES256", kid: "k" })
  .setExpirationTime("5m")
  .sign(privateKey);

/** One route for each location, and one in a group. */
function config(): object {
  const backends = [{ host: `127.0.0.1:${(upstream.address() as AddressInfo).port}` }];
  const route = (path: string, location: object): object => ({
    matches: [{ path: { pathPrefix: path } }],
    policies: { jwtAuth: { mode: "strict", issuer: "i", jwks, location } },
    backends,
  });
  return {
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              route("/header", { header: { name: "X-Token" } }),
              route("/query", { queryParameter: { name: "access token" } }),
              { matches: [{ path: { pathPrefix: "/group" } }], backends: [{ routeGroup: "inner" }] },
            ],
          },
        ],
      },
    ],
    routeGroups: [{ name: "inner", routes: [route("/group", { queryParameter: { name: "t" } })] }],
  };
}

test("tokens of clients are shown nowhere, wherever they are sent", async () => {
  await using gateway = await TestGateway.start(config());
  const port = gateway.port();
  for (const [path, headers] of [
    ["/header?a=1", { "x-token": token }],
    [`/query?a=1&access%20token=${token}`, {}],
    [`/group?t=${token}&a=1`, {}],
  ] as const) {
    const events = await traceOf(gateway, async () => {
      const answer = await call(port, { path, headers });
      assert.deepEqual([answer.status, answer.body.toString()], [200, `${path.split("?")[0]}?a=1 undefined`]);
    });
    const text = JSON.stringify(events);
    assert.ok(text.includes("<redacted>"));
    assert.ok(!text.includes(token), path);
  }
  await gateway.until(() => gateway.lines.filter((line) => line["http.status"] === 200).length === 3, "the log");
  assert.ok(!JSON.stringify(gateway.lines).includes(token));
});
