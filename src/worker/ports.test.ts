import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import type { Bind } from "../ir/ir.ts";
import { PortError, probePorts } from "./ports.ts";

const bind = (port: number, rest: Partial<Bind> = {}): Bind =>
  ({ key: `bind/${port}`, host: "127.0.0.1", port, mode: "standard", listeners: [], ...rest }) as unknown as Bind;

test("port 0 becomes a real port and stays it; internal binds have none", async () => {
  const first = await probePorts([bind(0), bind(7, { mode: "internal" })], {});
  assert.deepEqual(Object.keys(first), ["bind/0"]);
  assert.ok(Number(first["bind/0"]) > 0);
  assert.deepEqual(await probePorts([bind(0)], first), first);
});

test("a port that is in use is refused, also when its owner would share it", async () => {
  const owner = createServer().listen({ port: 0, host: "127.0.0.1", reusePort: process.platform === "linux" });
  await once(owner, "listening");
  const address = owner.address();
  assert.ok(typeof address === "object" && address !== null);
  const { port } = address;
  await assert.rejects(
    probePorts([bind(port)], {}),
    (error) =>
      error instanceof PortError && error.message.startsWith(`cannot listen on port ${port} for bind/${port}: `),
  );
  assert.deepEqual(await probePorts([bind(port)], { [`bind/${port}`]: port }), { [`bind/${port}`]: port }, "our own");
  owner.close();
});
