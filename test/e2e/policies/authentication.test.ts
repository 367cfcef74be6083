import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { call, traceOf } from "../trace/support.ts";

/** Responds with the target and the headers of the request. */
const upstream = createServer((request, response) =>
  response.end(JSON.stringify({ url: request.url, headers: request.headers })),
);
upstream.listen(0, "127.0.0.1");
await once(upstream, "listening");
after(() => {
  upstream.closeAllConnections();
  upstream.close();
});

const SECRETS = ["client-key", "client-password", "backend-key", "backend-token"];

/** All requests need a key, those to /members a password too; the backend requires credentials of the gateway. */
const CONFIG = {
  binds: [
    {
      port: 0,
      listeners: [
        {
          policies: {
            apiKey: {
              mode: "strict",
              location: { cookie: { name: "key" } },
              keys: [{ key: "client-key", metadata: { team: "a" } }],
            },
          },
          routes: [
            {
              name: "members",
              policies: {
                basicAuth: { mode: "strict", realm: "members", htpasswd: "alice:{SHA}QYJmB5F+iVrWAUm43BYdcOjb3uU=" },
                authorization: { rules: ['apiKey.team == "a" && basicAuth.username == "alice"'] },
              },
              backends: [
                {
                  host: `127.0.0.1:${(upstream.address() as AddressInfo).port}`,
                  policies: {
                    backendAuth: {
                      key: { value: "backend-key", location: { header: { name: "x-backend" } } },
                      credentials: [{ location: { queryParameter: { name: "token" } }, key: "backend-token" }],
                    },
                  },
                },
              ],
            },
          ],
        },
      ],
    },
  ],
};

test("credentials of clients are not forwarded, those for backends are added, and neither are shown", async () => {
  await using gateway = await TestGateway.start(CONFIG);
  const port = gateway.port();
  const basic = `Basic ${btoa("alice:client-password")}`;

  const nothing = await call(port, { path: "/a" });
  assert.deepEqual(
    [nothing.status, nothing.body.toString()],
    [401, "api key authentication failure: no API Key found"],
  );
  const onlyKey = await call(port, { path: "/a", headers: { cookie: "key=client-key" } });
  assert.deepEqual([onlyKey.status, onlyKey.headers["www-authenticate"]], [401, 'Basic realm="members"']);

  const events = await traceOf(gateway, async () => {
    const headers = { cookie: "a=1; key=client-key", authorization: basic };
    const answer = await call(port, { path: "/a?token=client&b=2", headers });
    assert.equal(answer.status, 200);
    const seen = JSON.parse(answer.body.toString()) as { url: string; headers: Record<string, string> };
    assert.equal(seen.url, "/a?b=2&token=backend-token");
    assert.equal(seen.headers.cookie, "a=1");
    assert.equal(seen.headers.authorization, undefined);
    assert.equal(seen.headers["x-backend"], "backend-key");
  });
  const stages = events.flatMap(({ message }) => (message.type === "requestSnapshot" ? [message.stage] : []));
  assert.deepEqual(stages, [
    "initial request",
    "gateway api key",
    "gateway policies",
    "basic auth",
    "authorization",
    "route policies",
    "backend auth",
    "final request",
  ]);
  const shown = events.filter(({ message }) => message.type !== "bodySnapshot");
  const dump = await (await fetch(`${gateway.url("admin")}/config_dump`)).text();
  assert.ok(dump.includes("backendAuth") && dump.includes("htpasswd"));
  for (const text of [JSON.stringify(shown), dump, JSON.stringify(gateway.lines)])
    for (const secret of [...SECRETS, "{SHA}", basic]) assert.ok(!text.includes(secret), secret);
});
