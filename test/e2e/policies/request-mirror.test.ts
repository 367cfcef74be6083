import assert from "node:assert/strict";
import { test } from "node:test";
import { GrpcClient } from "../../helpers/grpc-client.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { type RawMessage, RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";

/** An upstream that records its requests. */
async function listener(): Promise<{ upstream: RawUpstream; asked: RawMessage[] }> {
  const asked: RawMessage[] = [];
  const upstream = await RawUpstream.answering((request) => {
    asked.push(request);
    return reply("from here");
  });
  return { upstream, asked };
}

test("several mirrors get the request as it is sent to the backend, with its body; only the backend's response is used", async () => {
  const [main, first, second] = await Promise.all([listener(), listener(), listener()]);
  await using _main = main.upstream;
  await using _first = first.upstream;
  await using _second = second.upstream;
  const to = ({ upstream }: { upstream: RawUpstream }) => `127.0.0.1:${upstream.port}`;
  const policies = {
    requestHeaderModifier: { set: { "x-set": "yes" } },
    requestMirror: [
      { backend: { host: to(first) }, percentage: 1 },
      { backend: { backend: "/second" }, percentage: 1 },
      { backend: { host: "127.0.0.1:9" }, percentage: 1 },
    ],
  };
  await using gateway = await LocalGateway.start({
    backends: [{ name: "second", host: to(second) }],
    binds: [{ port: 0, listeners: [{ routes: [{ policies, backends: [{ host: to(main) }] }] }] }],
  });
  const ask = (init: RequestInit) => fetch(`http://127.0.0.1:${gateway.port()}/path?q=1`, init);
  for (const body of ["", "hello", "x".repeat(300_000)]) {
    const response = await ask(body === "" ? {} : { method: "POST", body });
    assert.equal(await response.text(), "from here");
    for (const { asked } of [main, first, second]) {
      await until(() => asked.length > 0);
      const request = asked.shift();
      assert.equal(request?.start, `${body === "" ? "GET" : "POST"} /path?q=1 HTTP/1.1`);
      assert.equal(request?.body, body);
      assert.deepEqual(valuesOf(request as RawMessage, "x-set"), ["yes"]);
    }
  }
  await gateway.until(
    () => gateway.lines.some((line) => line.message === "error sending mirror request"),
    "the failure of the third mirror in the log",
  );
});

test("requests that the gateway rejects or responds to itself are not copied, nor are those with a body that is too long", async () => {
  const [main, copy] = await Promise.all([listener(), listener()]);
  await using _main = main.upstream;
  await using _copy = copy.upstream;
  const requestMirror = { backend: { host: `127.0.0.1:${copy.upstream.port}` }, percentage: 1 };
  const backends = [{ host: `127.0.0.1:${main.upstream.port}` }];
  const routes = [
    { matches: [{ path: { pathPrefix: "/direct" } }], policies: { requestMirror, directResponse: { status: 204 } } },
    { policies: { requestMirror }, backends },
  ];
  await using gateway = await LocalGateway.start({
    frontendPolicies: { http: { maxBufferSize: 1000 } },
    binds: [{ port: 0, listeners: [{ routes }] }],
  });
  const url = `http://127.0.0.1:${gateway.port()}`;
  assert.equal((await fetch(`${url}/direct`)).status, 204);
  assert.equal((await fetch(url, { method: "POST", body: "x".repeat(1001) })).status, 200);
  await gateway.until(() => gateway.lines.some((line) => /longer than 1000/.test(String(line.error))), "the log line");
  assert.equal((await fetch(url, { method: "POST", body: "x".repeat(1000) })).status, 200);
  await until(() => copy.asked.length > 0);
  assert.deepEqual(
    copy.asked.map(({ body }) => body.length),
    [1000],
  );
});

test("the mirror of a backend gets one copy without the backend's credentials, however many attempts there are", async () => {
  const copies = await listener();
  await using _copies = copies.upstream;
  let tries = 0;
  await using main = await RawUpstream.answering((request) => {
    assert.deepEqual(valuesOf(request, "authorization"), ["Bearer backend-secret"]);
    return reply("", [], ++tries < 3 ? "503 Service Unavailable" : "200 OK");
  });
  const policies = {
    backendAuth: { key: "backend-secret" },
    requestMirror: { backend: { host: `127.0.0.1:${copies.upstream.port}` }, percentage: 1 },
  };
  const backends = [{ host: `127.0.0.1:${main.port}`, policies }];
  const routes = [{ policies: { retry: { attempts: 2, codes: [503] } }, backends }];
  await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  const response = await fetch(`http://127.0.0.1:${gateway.port()}/`);
  assert.deepEqual([response.status, tries], [200, 3]);
  await until(() => copies.asked.length > 0);
  assert.deepEqual(
    copies.asked.map((request) => valuesOf(request, "authorization")),
    [[]],
  );
});

test("copies of gRPC calls are sent as HTTP/2, as the calls themselves are", async () => {
  const copies: string[] = [];
  await using main = await GrpcServer.start({ "/test.Echo/Say": { unary: (message: Buffer) => message } });
  await using copy = await GrpcServer.start({
    "/test.Echo/Say": {
      unary(message: Buffer) {
        copies.push(String(message));
        return message;
      },
    },
  });
  const policies = { requestMirror: { backend: { host: `127.0.0.1:${copy.port}` }, percentage: 1 } };
  const routes = [{ policies, backends: [{ host: `127.0.0.1:${main.port}` }] }];
  await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  using client = new GrpcClient(gateway.port());
  assert.equal((await client.unary("/test.Echo/Say", "hello")).message, "hello");
  await until(() => copies.length > 0);
  assert.deepEqual(copies, ["hello"]);
});

test("copies for a mirror that does not respond hold at most 64 MiB; further ones are dropped, and clients do not notice", async () => {
  let copies = 0;
  let respond = (): void => {};
  const responding = new Promise<void>((resolve) => {
    respond = resolve;
  });
  await using slow = await RawUpstream.answering(async () => {
    copies++;
    await responding;
    return reply("");
  });
  await using main = await RawUpstream.answering(() => reply("from here"));
  const requestMirror = { backend: { backend: "/slow" }, percentage: 1 };
  const routes = [{ policies: { requestMirror }, backends: [{ host: `127.0.0.1:${main.port}` }] }];
  await using gateway = await LocalGateway.start({
    backends: [{ name: "slow", host: `127.0.0.1:${slow.port}`, policies: { http: { requestTimeout: "1h" } } }],
    binds: [{ port: 0, listeners: [{ routes }] }],
  });
  const send = async (): Promise<void> => {
    const body = "x".repeat(2 * 1024 * 1024);
    const response = await fetch(`http://127.0.0.1:${gateway.port()}/`, { method: "POST", body });
    assert.equal(await response.text(), "from here");
  };
  for (let i = 0; i < 33; i++) await send();
  await until(() => copies === 32 && gateway.lines.some(({ error }) => /copies of 64 MiB/.test(String(error))));
  respond();
  for (let i = 0; copies === 32 && i < 100; i++) await send();
  await until(() => copies > 32);
});
