import assert from "node:assert/strict";
import { test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { call } from "../trace/support.ts";

test("one of several credentials opens a route, says who the client is, and goes no further", async () => {
  const received: string[] = [];
  await using upstream = await RawUpstream.answering(({ fields }) => {
    received.push(fields.join("\n"));
    return reply("ok");
  });
  const apiKey = { keys: [{ key: "right", metadata: { team: "a" } }], location: { header: { name: "x-api-key" } } };
  const satisfy = { any: [{ apiKey }, { basicAuth: { htpasswd: "jo:{SHA}nU4eI71bcnBGqeO0t9tXvY1u5oQ=" } }] };
  const transformations = {
    request: { set: { "x-client": 'default(apiKey.team, "") + default(basicAuth.username, "")' } },
  };
  const authorization = { rules: [{ deny: 'request.path == "/people" && !has(basicAuth.username)' }] };
  const policies = { satisfy, transformations, authorization };
  await using gateway = await TestGateway.start({
    binds: [{ port: 0, listeners: [{ routes: [{ policies, backends: [{ host: `127.0.0.1:${upstream.port}` }] }] }] }],
  });
  const port = gateway.port();
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;
  const statusOf = async (path: string, headers: Record<string, string>): Promise<number | undefined> =>
    (await call(port, { path, headers })).status;

  const none = await call(port, { path: "/" });
  assert.deepEqual(
    [none.status, none.headers["www-authenticate"]],
    [401, 'ApiKey realm="Restricted", Basic realm="Restricted"'],
  );
  assert.equal(await statusOf("/", { "x-api-key": "wrong" }), 401);
  assert.equal(await statusOf("/", { "x-api-key": "right", authorization: basic("jo:wrong") }), 200);
  assert.equal(await statusOf("/people", { "x-api-key": "wrong", authorization: basic("jo:pass") }), 200);
  assert.equal(await statusOf("/people", { "x-api-key": "right" }), 403);
  assert.deepEqual(
    received.map((head) => /x-client: (.*)/.exec(head)?.[1]),
    ["a", "jo"],
  );
  for (const head of received) assert.doesNotMatch(head, /authorization|x-api-key/i);

  const grpc = await call(port, { path: "/", headers: { "content-type": "application/grpc", te: "trailers" } });
  assert.deepEqual([grpc.status, grpc.headers["grpc-status"]], [200, "16"]);
});
