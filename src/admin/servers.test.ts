import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { dial, exchangeRaw, head, parseResponse } from "../../test/helpers/admin/raw-request.ts";
import { TestPlane } from "../../test/helpers/admin/test-plane.ts";
import { startAdminServer } from "./admin-server.ts";
import { AdminClient } from "./client.ts";
import { startReadinessServer } from "./readiness-server.ts";
import { startStatsServer } from "./stats-server.ts";

const any = { type: "socket", host: "127.0.0.1", port: 0 } as const;

async function ask(
  address: string | undefined,
  method: string,
  target: string,
): Promise<ReturnType<typeof parseResponse>> {
  return parseResponse(await exchangeRaw(address ?? "", head(method, target, ["host: metrics.example"])));
}

test("the stats server serves the metrics under both paths and nothing else", async () => {
  const plane = new TestPlane();
  const server = await startStatsServer(plane, any, plane.log);
  try {
    const [address] = server.addresses;
    for (const path of ["/metrics", "/stats/prometheus", "/metrics?x=1"]) {
      const { status, head: fields, body } = await ask(address, "GET", path);
      assert.equal(status, 200);
      assert.match(fields, /content-type: text\/plain; version=0\.0\.4/i);
      assert.equal(body, "# TYPE tracegate_requests_total counter\n");
    }
    assert.equal((await ask(address, "GET", "/config_dump")).status, 404);
    assert.equal((await ask(address, "POST", "/metrics")).status, 405);
  } finally {
    await server.close();
  }
});

test("a client that does not wait for answers gets none of them made", async () => {
  const plane = new TestPlane();
  let made = 0;
  const metricsText = (): Promise<string> => {
    made++;
    return plane.metricsText();
  };
  const server = await startStatsServer({ metricsText }, any, plane.log);
  try {
    const [address = ""] = server.addresses;
    await exchangeRaw(address, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n".repeat(100));
    assert.equal(made, 1);
    assert.equal((await ask(address, "GET", "/metrics")).status, 200);
  } finally {
    await server.close();
  }
});

test("readiness names what is pending, and logs louder the longer it lasts", async () => {
  const plane = new TestPlane();
  plane.waiting = ["state manager", "tracegate"];
  const server = await startReadinessServer(plane, any, plane.log);
  try {
    const [address] = server.addresses;
    for (let i = 0; i < 31; i++) {
      const { status, body } = await ask(address, "GET", "/healthz/ready");
      assert.deepEqual([status, body], [500, "not ready, pending: state manager, tracegate\n"]);
    }
    const levels = plane.lines.map((line) => line.split("\t")[1]);
    assert.deepEqual(
      ["debug", "info", "warn"].map((level) => levels.filter((each) => each === level).length),
      [5, 25, 1],
    );
    plane.waiting = [];
    const ready = await ask(address, "GET", "/healthz/ready");
    assert.deepEqual([ready.status, ready.body], [200, "ready\n"]);
    const post = await ask(address, "POST", "/healthz/ready");
    assert.deepEqual([post.status, post.body], [405, ""]);
    assert.equal((await ask(address, "GET", "/")).status, 404);
  } finally {
    await server.close();
  }
});

test("readiness probes may begin with a PROXY header of either version", async () => {
  const plane = new TestPlane();
  const server = await startReadinessServer(plane, any, plane.log);
  const probe = head("GET", "/healthz/ready");
  const v2 = Buffer.from("0d0a0d0a000d0a515549540a2111000cc0000201c6336402dc0401bb", "hex").toString("latin1");
  try {
    const [address = ""] = server.addresses;
    for (const header of ["PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n", v2]) {
      const bytes = Buffer.from(header + probe, "latin1");
      const socket = dial(address);
      let text = "";
      socket.on("data", (chunk) => {
        text += String(chunk);
      });
      await once(socket, "connect");
      for (const byte of bytes) socket.write(Buffer.of(byte));
      await once(socket, "close");
      assert.equal(parseResponse(text).status, 200);
    }
    assert.equal(await exchangeRaw(address, `PROXY TCP4 nonsense\r\n${probe}`), "");
    const silent = dial(address);
    silent.resume();
    await once(silent, "connect");
    assert.equal((await ask(address, "GET", "/healthz/ready")).status, 200);
    await Promise.all([server.close(), once(silent, "close")]);
  } finally {
    await server.close();
  }
});

test("localhost means both loopback addresses on one port", async () => {
  const plane = new TestPlane();
  const server = await startAdminServer(plane, { type: "localhost", port: 0 }, plane.log);
  try {
    assert.match(server.addresses[0] ?? "", /^127\.0\.0\.1:\d+$/);
    for (const address of server.addresses)
      assert.equal((await new AdminClient(`http://${address}`).configStatus()).generation, 3);
    const ports = new Set(server.addresses.map((address) => address.slice(address.lastIndexOf(":"))));
    assert.equal(ports.size, 1);
  } finally {
    await server.close();
  }
});

test("off listens nowhere", async () => {
  const plane = new TestPlane();
  const server = await startAdminServer(plane, { type: "off" }, plane.log);
  assert.deepEqual(server.addresses, []);
  await server.close();
});

test("a port in use is an error that names the server, the port and the setting", async () => {
  const plane = new TestPlane();
  const first = await startStatsServer(plane, any, plane.log);
  try {
    const port = Number(first.addresses[0]?.split(":")[1]);
    const used = new RegExp(`^readiness server: 127\\.0\\.0\\.1:${port} is in use; .* change readinessAddr$`);
    await assert.rejects(startReadinessServer(plane, { ...any, port }, plane.log), { message: used });
    await assert.rejects(startAdminServer(plane, { type: "localhost", port }, plane.log), /admin server: .* is in use/);
  } finally {
    await first.close();
  }
});

test("a unix socket is private, is served to the client, and goes with the server", async (t) => {
  const plane = new TestPlane();
  const folder = await mkdtemp(join(tmpdir(), "tracegate-admin-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "admin.sock");
  const server = await startAdminServer(plane, { type: "unix", path }, plane.log);
  assert.deepEqual(server.addresses, [`unix:${path}`]);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  const client = new AdminClient({ unix: path });
  assert.deepEqual(await client.configDump(), plane.dump);
  await assert.rejects(startAdminServer(plane, { type: "unix", path }, plane.log), /another process listens on/);
  assert.equal((await client.configStatus()).generation, 3, "the first server was left alone");
  await server.close();
  await assert.rejects(stat(path), { code: "ENOENT" });
  await assert.rejects(client.configDump(), {
    kind: "unreachable",
    message: new RegExp(`^no admin server reached at unix:${path}: no such socket`),
  });
});

test("a stale socket file is replaced, any other file is left alone", async (t) => {
  const plane = new TestPlane();
  const folder = await mkdtemp(join(tmpdir(), "tracegate-admin-"));
  t.after(() => rm(folder, { recursive: true }));
  const stale = join(folder, "stale.sock");
  // A process that dies leaves its socket file behind.
  const script = join(folder, "die.mjs");
  await writeFile(
    script,
    `import { createServer } from "node:net"; createServer().listen(process.argv[2], () => process.kill(process.pid, "SIGKILL"));`,
  );
  await once(fork(script, [stale]), "exit");
  assert.ok((await stat(stale)).isSocket());
  const server = await startAdminServer(plane, { type: "unix", path: stale }, plane.log);
  assert.match(await new AdminClient({ unix: stale }).logging(), /^current log level is info/);
  await server.close();
  const file = join(folder, "precious");
  await writeFile(file, "data");
  await assert.rejects(
    startAdminServer(plane, { type: "unix", path: file }, plane.log),
    /exists and is not a socket; remove it or change adminAddr/,
  );
});

test("the client reads and changes, and says what went wrong", async () => {
  const plane = new TestPlane();
  const server = await startAdminServer(plane, any, plane.log);
  const url = `http://${server.addresses[0]}`;
  const client = new AdminClient(`${url}/`);
  try {
    assert.equal(await client.setLogging("debug,proxy=warn"), "current log level is debug,proxy=warn\n");
    assert.equal(await client.setLogging("", { reset: true }), "current log level is info\n");
    await assert.rejects(client.setLogging("loud"), {
      kind: "status",
      status: 400,
      body: /^Invalid level provided: loud\nusage/,
    });
    assert.equal(Buffer.from(await client.cpuProfile(1, { frequency: 50 })).toString(), "cpu");
    assert.equal(Buffer.from(await client.heapProfile()).toString(), "heap");
    assert.equal(plane.profiles[0]?.hz, 50);
    assert.deepEqual(await client.tasks(), { admin: [], workload: [] });
    assert.ok(await client.memory());
    assert.equal(await client.quit(), "shutdown now\n");
    await assert.rejects(client.memory({ signal: AbortSignal.abort() }), { kind: "aborted" });
  } finally {
    await server.close();
  }
  await assert.rejects(client.configDump(), {
    kind: "unreachable",
    message: `no admin server reached at ${url}/: connection refused; is a gateway running with its admin server there?`,
  });
  await assert.rejects(new AdminClient("localhost:15000").configDump(), {
    kind: "unreachable",
    message: /expected http:/,
  });
});

test("the client is not fooled by a server that is something else or breaks off", async (t) => {
  let answer = "";
  const other = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(answer));
  });
  await once(other.listen(0, "127.0.0.1"), "listening");
  t.after(() => new Promise((resolve) => other.close(resolve)));
  const address = other.address();
  assert.ok(typeof address === "object" && address !== null);
  const client = new AdminClient(`http://127.0.0.1:${address.port}`);
  answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
  await assert.rejects(client.configDump(), { kind: "protocol", message: /something other than JSON/ });
  answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
  await assert.rejects(client.configStatus(), { kind: "protocol" });
  answer = 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{"a"';
  await assert.rejects(client.configDump(), { kind: "protocol", message: /broke off/ });
  answer = "";
  await assert.rejects(client.configDump(), { kind: "unreachable", message: /without an answer/ });
});
