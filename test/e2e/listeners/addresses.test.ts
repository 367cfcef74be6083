import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { freePorts } from "../../helpers/free-ports.ts";
import { GatewayProcess, refusedStart, TestGateway } from "../../helpers/gateway.ts";

const says = (body: string): object => ({ routes: [{ policies: { directResponse: { status: 200, body } } }] });

/** Status and body, or the code of the error. */
function get(options: object): Promise<string> {
  return new Promise((resolve) => {
    request({ agent: false, path: "/", ...options }, (response) => {
      response.setEncoding("utf8");
      let text = "";
      response.on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(`${response.statusCode} ${text}`));
    })
      .on("error", ({ code }: NodeJS.ErrnoException) => resolve(code ?? ""))
      .end();
  });
}

test("one port has a listener for each address, and a reload moves addresses without closing the others", async () => {
  const [port = 0] = await freePorts(1);
  const binds = [
    { port, address: "127.0.0.1", listeners: [says("one")] },
    { port, address: ["127.0.0.2", "127.0.0.3"], listeners: [says("two")] },
  ];
  await using gateway = await TestGateway.start({ config: { workerThreads: 2 }, binds });
  const at = (host: string): Promise<string> => get({ host, port });
  assert.deepEqual(await Promise.all(["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"].map(at)), [
    "200 one",
    "200 two",
    "200 two",
    "ECONNREFUSED",
  ]);
  const overview = (await (await fetch(`${gateway.url("admin")}/overview`)).json()) as {
    listeners: { address: string }[];
  };
  assert.deepEqual(
    overview.listeners.map(({ address }) => address),
    [`127.0.0.1:${port}`, `127.0.0.2:${port}, 127.0.0.3:${port}`],
  );
  // The listener for all addresses takes what no other one takes, and 127.0.0.3 moves from one bind to another.
  const moved = [
    { port, address: ["127.0.0.1", "127.0.0.3"], listeners: [says("one")] },
    { port, listeners: [says("all")] },
  ];
  assert.equal(await gateway.reconfigure({ config: { workerThreads: 2 }, binds: moved }), "applied");
  assert.deepEqual(await Promise.all(["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(at)), [
    "200 one",
    "200 all",
    "200 one",
  ]);
});

test("a gateway at one address calls a server with the same port at another, but never itself", async () => {
  const [port = 0] = await freePorts(1);
  const to = (host: string): object => ({ routes: [{ backends: [{ host: `${host}:${port}` }] }] });
  await using app = await TestGateway.start({ binds: [{ port, address: "127.0.0.2", listeners: [says("the app")] }] });
  await using gateway = await TestGateway.start({
    binds: [{ port, address: "127.0.0.1", listeners: [to("127.0.0.2")] }],
  });
  assert.ok(app.ready && gateway.ready);
  assert.equal(await get({ host: "127.0.0.1", port }), "200 the app");
  const loop = { binds: [{ port, address: "127.0.0.1", listeners: [to("127.0.0.1")] }] };
  assert.equal(await gateway.reconfigure(loop), "rejected");
});

test("a Unix socket: permissions, clients without an address, a stale file, and its end", async () => {
  const route = (path: string, policies: object): object => ({
    name: `r${path.slice(1)}`,
    matches: [{ path: { exact: path } }],
    policies,
  });
  const listener = {
    routes: [
      route("/deny", { ipAccess: { deny: ["192.0.2.0/24"] } }),
      route("/allow", { ipAccess: { allow: ["0.0.0.0/0", "::/0"] } }),
      route("/rule", { authorization: { rules: [{ deny: 'cidr("192.0.2.0/24").containsIP(source.address)' }] } }),
      route("/", {}),
    ].map((each) => ({ ...each, backends: [{ host: "127.0.0.1:1" }] })),
  };
  const config = (folder: string): object => ({
    config: { workerThreads: 2 },
    binds: [{ address: `unix:${join(folder, "app.sock")}`, socketMode: "0660", listeners: [listener] }],
  });
  await using first = await GatewayProcess.start({ binds: [{ port: 0, listeners: [says("")] }] });
  const socketPath = join(first.folder, "app.sock");
  assert.equal(await first.reconfigure(config(first.folder)), "applied");
  assert.equal(statSync(socketPath).mode & 0o777, 0o660);
  const statuses = await Promise.all(
    ["/deny", "/allow", "/rule", "/"].map(async (path) => (await get({ socketPath, path })).slice(0, 3)),
  );
  assert.deepEqual(statuses, ["403", "403", "403", "503"]);
  await first.until(() => first.lines.some((line) => line["src.addr"] === "unix"), "the log of a client");

  assert.match(await refusedStart(config(first.folder)), /another process listens there/);
  // Killed: the file stays, and the next gateway replaces it.
  first.process.kill("SIGKILL");
  await first.exited();
  assert.ok(existsSync(socketPath));
  await using third = await TestGateway.start(config(first.folder));
  assert.equal((await get({ socketPath })).slice(0, 3), "503");
  await third.drain();
  assert.ok(!existsSync(socketPath));
});
