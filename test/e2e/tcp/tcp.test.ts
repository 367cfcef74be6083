import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, test } from "node:test";
import { refusedStart, TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream } from "../../helpers/raw-peer.ts";
import { logged, metric } from "../tls/support.ts";
import { closedPort } from "../trace/support.ts";
import { EchoServer } from "./echo-server.ts";

const bind = (...tcpRoutes: object[]): object => ({
  binds: [{ port: 0, listeners: [{ name: "raw", protocol: "TCP", tcpRoutes }] }],
});
const to = (...hosts: string[]): object => ({ name: "r", backends: hosts.map((host) => ({ host })) });

suite("TCP listeners", () => {
  test("bytes go both ways, the backend may send first, and the connection is logged and counted", async () => {
    await using upstream = await RawUpstream.listen();
    await using gateway = await LocalGateway.start(bind(to(`127.0.0.1:${upstream.port}`)));
    const client = await RawPeer.connect(gateway.port());
    const backend = await upstream.connection();
    backend.send("220 ready\r\n");
    await client.take("220 ready\r\n");
    client.send(Buffer.from([0, 255, 13, 10, 128]));
    await backend.take("\x00\xff\r\n\x80");
    client.end();
    assert.equal(await backend.closed(), "end");
    // Half-close: this direction is open until the backend ends it.
    backend.send("bye");
    await client.take("bye");
    backend.end();
    await logged(gateway, {
      scope: "request",
      listener: "raw",
      route: "default/r",
      endpoint: `127.0.0.1:${upstream.port}`,
      protocol: "tcp",
      "http.method": undefined,
      error: undefined,
    });
    const labels = ['listener="raw"', 'protocol="tcp"'];
    assert.equal(await metric(gateway, "downstream_connections_total", ...labels), 1);
    assert.equal(await metric(gateway, "downstream_received_bytes_total", ...labels), 5);
    assert.equal(await metric(gateway, "downstream_sent_bytes_total", ...labels), 14);
  });

  test("a client that sends and closes its side at once loses no bytes", async () => {
    await using upstream = await RawUpstream.listen();
    await using gateway = await LocalGateway.start(bind(to(`127.0.0.1:${upstream.port}`)));
    const client = await RawPeer.connect(gateway.port());
    const text = "x".repeat(500_000);
    client.send(text);
    client.end();
    const backend = await upstream.connection();
    await backend.take(text);
    backend.send("answer");
    backend.end();
    await client.take("answer");
  });

  test("a backend that does not read pauses the client, and nothing is lost when it reads again", async () => {
    await using upstream = await RawUpstream.listen();
    await using gateway = await LocalGateway.start(bind(to(`127.0.0.1:${upstream.port}`)));
    const client = await RawPeer.connect(gateway.port());
    const backend = await upstream.connection();
    backend.socket.pause();
    const piece = Buffer.alloc(64 * 1024, 1);
    const size = 1024 * piece.length;
    for (let sent = 0; sent < size; sent += piece.length) client.socket.write(piece);
    await stalled(client);
    // The buffers of the four sockets take a few MiB each; without backpressure the gateway would take the rest.
    assert.ok(client.socket.writableLength > size / 4, `${client.socket.writableLength} bytes are waiting`);
    let received = 0;
    backend.socket.removeAllListeners("data");
    backend.socket.on("data", (bytes: Buffer) => {
      received += bytes.length;
    });
    client.end();
    backend.socket.resume();
    await new Promise<void>((resolve) => backend.socket.once("end", () => resolve()));
    assert.equal(received, size);
  });

  test("connections are spread by weight; weight 0 gets none", async () => {
    await using one = await EchoServer.start("one");
    await using two = await EchoServer.start("two");
    const backends = [
      { host: one.address, weight: 1 },
      { host: two.address, weight: 0 },
    ];
    await using gateway = await LocalGateway.start(bind({ backends }));
    for (let round = 0; round < 8; round++) {
      const client = await RawPeer.connect(gateway.port());
      await client.take("one");
      client.reset();
    }
    assert.equal(two.connections, 0);
    await gateway.reconfigure(bind({ backends: [{ host: one.address, weight: 0 }, { host: two.address }] }));
    const client = await RawPeer.connect(gateway.port());
    await client.take("two");
  });

  test("a backend may be a Unix socket or a service", async () => {
    await using gateway = await TestGateway.start(bind());
    const path = join(gateway.folder, "backend.sock");
    await using unix = await EchoServer.start("unix", path);
    await using member = await EchoServer.start("service");
    assert.equal(await gateway.reconfigure(bind(to(unix.address))), "applied");
    const first = await RawPeer.connect(gateway.port());
    await first.take("unix");
    const services = [{ name: "db", namespace: "ns", hostname: "db.local", vips: [], ports: { 5432: member.port } }];
    const workloads = [
      {
        uid: "w",
        name: "w",
        namespace: "ns",
        workloadIps: ["127.0.0.1"],
        services: { "ns/db.local": { 5432: member.port } },
      },
    ];
    const config = bind({ backends: [{ service: { name: "ns/db.local", port: 5432 } }] });
    assert.equal(await gateway.reconfigure({ ...config, services, workloads }), "applied");
    const second = await RawPeer.connect(gateway.port());
    await second.take("service");
  });

  test("an endpoint that cannot be connected is evicted if health is configured", async () => {
    await using alive = await EchoServer.start("alive");
    const dead = await closedPort();
    const service = { name: "db", namespace: "ns", hostname: "db.local", ports: { 1: 1 } };
    const member = (uid: string, port: number): object => ({
      ...{ uid, name: uid, namespace: "ns", workloadIps: ["127.0.0.1"], services: { "ns/db.local": { 1: port } } },
    });
    const health = { eviction: { duration: "1h" } };
    await using gateway = await TestGateway.start({
      ...bind({ policies: { health }, backends: [{ service: { name: "ns/db.local", port: 1 } }] }),
      services: [service],
      workloads: [member("alive", alive.port), member("dead", dead)],
    });
    /** Whether the backend has greeted. */
    const greeted = async (): Promise<boolean> => {
      const client = await RawPeer.connect(gateway.port());
      const closed = client.closed().then(() => false);
      return Promise.race([client.take("alive").then(() => true), closed]);
    };
    const evicted = async (): Promise<string[]> => {
      const dump = (await (await fetch(`${gateway.url("admin")}/config_dump`)).json()) as {
        services: { endpoints: { rejected: object }[] }[];
      };
      return Object.keys(dump.services[0]?.endpoints[0]?.rejected ?? {});
    };
    for (let tries = 0; (await evicted()).length === 0; tries++) {
      assert.ok(tries < 200, "the dead endpoint is never chosen");
      assert.equal(await greeted(), true, "the connection goes on to the other endpoint");
    }
    assert.deepEqual(await evicted(), ["dead:ns/db.local"]);
  });

  test("without a route, a backend or a server behind it the connection is closed and the log says why", async () => {
    const port = await closedPort();
    await using gateway = await LocalGateway.start(bind());
    const expect = async (error: string | RegExp): Promise<void> => {
      const seen = gateway.lines.length;
      const client = await RawPeer.connect(gateway.port());
      await client.closed();
      const fits = (text: unknown): boolean => (typeof error === "string" ? text === error : error.test(String(text)));
      await gateway.until(() => gateway.lines.slice(seen).some((line) => fits(line.error)), String(error));
    };
    await expect("route not found, at binds[0].listeners[0]");
    await gateway.reconfigure(bind({ hostnames: ["a.example"], backends: [{ host: `127.0.0.1:${port}` }] }));
    await expect("route not found, at binds[0].listeners[0]");
    await gateway.reconfigure(bind({ backends: [] }));
    await expect("no valid backends, at binds[0].listeners[0].tcpRoutes[0]");
    const unused = { host: "127.0.0.1:1", weight: 0 };
    await gateway.reconfigure(bind({ backends: [unused, { host: `127.0.0.1:${port}` }] }));
    await expect(
      /^upstream call failed: .*ECONNREFUSED.*, at binds\[0\]\.listeners\[0\]\.tcpRoutes\[0\]\.backends\[1\]$/,
    );
  });

  test("the last event of a trace names the backend that could not be reached", async () => {
    const unused = { host: "127.0.0.1:1", weight: 0 };
    const config = bind({ backends: [unused, { host: `127.0.0.1:${await closedPort()}` }] });
    await using gateway = await LocalGateway.start(config);
    const messages = await gateway.trace(async () => {
      const client = await RawPeer.connect(gateway.port());
      await client.closed();
    });
    const finished = messages.at(-1);
    assert.ok(finished?.type === "requestFinished");
    const path = ["binds", 0, "listeners", 0, "tcpRoutes", 0, "backends", 1];
    assert.deepEqual(finished.origin, { path });
  });

  test("a reset on one side becomes a reset on the other", async () => {
    await using upstream = await RawUpstream.listen();
    await using gateway = await LocalGateway.start(bind(to(`127.0.0.1:${upstream.port}`)));
    const first = await RawPeer.connect(gateway.port());
    const backend = await upstream.connection();
    backend.send("x");
    await first.take("x");
    backend.reset();
    assert.equal(await first.closed(), "reset");
    const second = await RawPeer.connect(gateway.port());
    const other = await upstream.connection(1);
    other.send("x");
    await second.take("x");
    second.reset();
    await other.closed();
    await logged(gateway, { scope: "request", error: "client closed the connection: read ECONNRESET" });
  });

  test("a drain lets connections end by themselves, until its deadline", async () => {
    await using upstream = await RawUpstream.listen();
    const config = bind(to(`127.0.0.1:${upstream.port}`));
    await using gateway = await TestGateway.start(config);
    const client = await RawPeer.connect(gateway.port());
    const backend = await upstream.connection();
    const drained = gateway.drain();
    await refused(gateway.port());
    client.send("still here");
    await backend.take("still here");
    client.end();
    backend.end();
    await drained;

    const limits = { connectionTerminationDeadline: "100ms" };
    await using impatient = await TestGateway.start({ ...config, config: limits });
    const cut = await RawPeer.connect(impatient.port());
    await upstream.connection(1);
    await impatient.drain();
    await cut.closed();
    const reason = "the gateway shut down before the connection was done";
    assert.ok(impatient.lines.some((line) => line.error === reason));
  });

  test("a configuration with two TCP listeners on one port is rejected", async () => {
    const listener = { protocol: "TCP", tcpRoutes: [] };
    const listeners = [listener, { ...listener, hostname: "a.example" }];
    assert.match(await refusedStart({ binds: [{ port: 0, listeners }] }), /binds\[0\]: port 0 has 2 TCP listeners/);
  });
});

/** Waits until a client's bytes make no further progress. */
async function stalled({ socket }: RawPeer): Promise<void> {
  for (let left = -1; left !== socket.writableLength; ) {
    left = socket.writableLength;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function refused(port: number): Promise<void> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const peer = await RawPeer.connect(port).catch(() => undefined);
    if (peer === undefined) return;
    peer.reset();
    assert.ok(Date.now() < deadline, "new connections are still accepted");
  }
}
