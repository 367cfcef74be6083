import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { GatewayProcess, proxyTo } from "../helpers/gateway.ts";
import { until } from "../helpers/until.ts";
import { ControlGroup } from "./control-group.ts";

const MIB = 1024 * 1024;
/** A checkout with one worker needs 150 of them at rest. */
const LIMIT = 260 * MIB;
/** Each asks for a large body and reads nothing, which costs the gateway 30 KiB and the system the buffers of two sockets. */
const CLIENTS = 4000;

const body = Buffer.alloc(20 * MIB, "x");
const backend = createServer((request, response) => {
  if (request.url === "/large") response.end(body);
  else response.end("hello");
});
before(() => new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve)));
after(() => {
  backend.close();
  backend.closeAllConnections();
});

class SlowClients implements Disposable {
  readonly #sockets: Socket[] = [];

  /** Connects them, a few at a time, until `enough`. */
  async connect(port: number, count: number, enough: () => boolean = () => false): Promise<void> {
    for (let i = 0; i < count && !enough(); i++) {
      const socket = connect(port, "127.0.0.1").pause();
      socket.on("error", () => {});
      socket.write("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
      this.#sockets.push(socket);
      if (i % 8 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

function start(group: ControlGroup, overload: object): Promise<GatewayProcess> {
  const { port } = backend.address() as AddressInfo;
  const config = { ...proxyTo(`127.0.0.1:${port}`), config: { overload } };
  return GatewayProcess.start(config, { controlGroup: group.folder });
}

test("without the protection, the system ends a gateway whose clients do not read", async () => {
  using group = ControlGroup.create("unprotected", LIMIT);
  await using gateway = await start(group, { memoryShare: 0 });
  using clients = new SlowClients();
  const ended = (): boolean => gateway.process.signalCode !== null;
  await clients.connect(gateway.port(), CLIENTS, ended);
  await until(ended, "the end of the process");
  assert.equal(gateway.process.signalCode, "SIGKILL");
  assert.equal(group.kills, 1);
});

test("with it, the gateway turns clients away before the limit, serves accepted requests, and recovers", async (t) => {
  using group = ControlGroup.create("protected", LIMIT);
  await using gateway = await start(group, {});
  const says = (text: string): boolean => gateway.lines.some(({ message }) => String(message).startsWith(text));
  {
    using clients = new SlowClients();
    await clients.connect(gateway.port(), CLIENTS);
    await gateway.until(() => says("memory is almost full"), "the pressure");
    const refused = /overload_rejected_total\{kind="connection",reason="memory"\} (\d+)/;
    const count = Number(refused.exec(await gateway.metricsText())?.[1] ?? 0);
    t.diagnostic(
      `peak ${Math.round(group.peak / MIB)} of ${LIMIT / MIB} MiB; ${count} of ${CLIENTS} connections refused`,
    );
    assert.ok(count > 0);
    assert.ok(group.peak < LIMIT);
    assert.equal(group.kills, 0);
  }
  await gateway.until(() => says("memory is available again"), "the end of the pressure");
  const response = await fetch(`http://127.0.0.1:${gateway.port()}/`);
  assert.equal(await response.text(), "hello");
  assert.equal(group.kills, 0);
});
