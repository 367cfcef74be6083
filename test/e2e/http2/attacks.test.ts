import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { attackOnce } from "../../attacks/attacker.ts";
import { ATTACKS } from "../../attacks/attacks.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { NodeClient } from "./support.ts";

/** Milliseconds for an attack that the gateway has to end; it takes a fraction of them. */
const PATIENCE_MS = 60_000;
/** Milliseconds of an attack that the gateway serves like other clients. */
const SERVED_MS = 100;

let backend: Server;
let gateway: LocalGateway;

before(async () => {
  backend = createServer((request, response) => {
    request.resume();
    if (request.url === "/large") response.end(Buffer.alloc(10_000_000));
    else request.on("end", () => response.end("hello"));
  });
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(backend.address() as AddressInfo).port}`;
  gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes: [{ backends: [{ host }] }] }] }] });
});

after(async () => {
  await gateway[Symbol.asyncDispose]();
  backend.closeAllConnections();
  backend.close();
});

// npm run attacks does the same for longer, and measures what it costs.
for (const attack of ATTACKS) {
  test(`${attack.name} (${attack.cve}) ends ${attack.ends || "nothing"}, and other connections are served`, async () => {
    await using client = await NodeClient.connect(gateway.port());
    const outcome = attackOnce(gateway.port(), attack, attack.ends === "" ? SERVED_MS : PATIENCE_MS);
    assert.equal((await client.fetch()).status, 200);
    assert.equal((await outcome).goAway.split(":")[0], attack.ends);
    assert.equal((await client.fetch()).status, 200);
  });
}
