import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { OwnSockets } from "../base/own-sockets.ts";
import type { Bind } from "../ir/ir.ts";
import type { Ports } from "../proxy/data-plane.ts";
import { PortError, probePorts } from "./ports.ts";

const REUSE = process.platform === "linux";

const bind = (port: number, rest: Partial<Bind> = {}): Bind =>
  ({ key: `bind/${port}`, host: "127.0.0.1", port, mode: "standard", listeners: [], ...rest }) as unknown as Bind;

async function probe(binds: readonly Bind[], open: Ports = {}): Promise<Ports> {
  const { ports, release } = await probePorts(binds, open, REUSE, new OwnSockets());
  release();
  return ports;
}

test("port 0 becomes a number that later reloads keep; internal binds have no port", async () => {
  const first = await probe([bind(0), bind(7, { mode: "internal" })]);
  assert.deepEqual(Object.keys(first), ["bind/0"]);
  assert.ok(Number(first["bind/0"]) > 0);
  assert.deepEqual(await probe([bind(0)], first), first);
});

test("a port chosen by the system is reserved for the workers until release", { skip: !REUSE }, async () => {
  const { ports, release } = await probePorts([bind(0)], {}, true, new OwnSockets());
  const port = Number(ports["bind/0"]);
  const other = createServer().listen({ port, host: "127.0.0.1" });
  const [error] = (await once(other, "error")) as [NodeJS.ErrnoException];
  assert.equal(error.code, "EADDRINUSE");
  const worker = createServer().listen({ port, host: "127.0.0.1", reusePort: true });
  await once(worker, "listening");
  release();
  worker.close();
});

test("new ports are own ones until release, so no worker connects to another that has just begun to listen", async () => {
  const own = new OwnSockets();
  const port = Number((await probe([bind(0)]))["bind/0"]);
  for (const protocol of ["tcp", "udp"] as const) {
    const more = protocol === "udp" ? { protocol } : {};
    const { release } = await probePorts([bind(port, more as Partial<Bind>)], {}, REUSE, own);
    // The sockets that proved that it is free have closed.
    await new Promise(setImmediate);
    assert.equal(own.find(protocol, port), "bind");
    release();
    assert.equal(own.find(protocol, port), undefined);
  }
});

test("a port in use is an error, even when its owner listens with SO_REUSEPORT", async () => {
  const owner = createServer().listen({ port: 0, host: "127.0.0.1", reusePort: REUSE });
  await once(owner, "listening");
  const address = owner.address();
  assert.ok(typeof address === "object" && address !== null);
  const { port } = address;
  await assert.rejects(
    probe([bind(0), bind(port)]),
    (error) =>
      error instanceof PortError && error.message.startsWith(`cannot listen on port ${port} for bind/${port}: `),
  );
  assert.deepEqual(await probe([bind(port)], { [`bind/${port}`]: port }), { [`bind/${port}`]: port }, "our own");
  owner.close();
});
