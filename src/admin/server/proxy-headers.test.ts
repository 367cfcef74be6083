import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { ask, dial, exchangeRaw, head, parseResponse } from "../../../test/helpers/admin/raw-request.ts";
import { TestPlane } from "../../../test/helpers/admin/test-plane.ts";
import { unguarded } from "../../net/testing/egress.ts";
import { startReadinessServer } from "../readiness-server.ts";

const HOST = ["host: metrics.example"];
const any = { type: "socket", host: "127.0.0.1", port: 0 } as const;

test("readiness probes may begin with a PROXY header of either version", async () => {
  const plane = new TestPlane();
  const server = await startReadinessServer(plane, any, plane.log, unguarded());
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
    assert.equal((await ask(address, "GET", "/healthz/ready", HOST)).status, 200);
    await Promise.all([server.close(), once(silent, "close")]);
  } finally {
    await server.close();
  }
});
