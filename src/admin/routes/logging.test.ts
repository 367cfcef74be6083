import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { exchangeRaw, head, parseResponse } from "../../../test/helpers/admin/raw-request.ts";
import { TestPlane } from "../../../test/helpers/admin/test-plane.ts";
import { LOG_MODULES } from "../../base/log-filter.ts";
import { startAdminServer } from "../admin-server.ts";
import type { RunningServer } from "../server/http-server.ts";

const plane = new TestPlane();
let server: RunningServer;
let address = "";

before(async () => {
  server = await startAdminServer(plane, { type: "socket", host: "127.0.0.1", port: 0 }, plane.log);
  address = server.addresses[0] ?? "";
});
after(() => server.close());

async function ask(
  method: string,
  target: string,
  fields?: readonly string[],
): Promise<ReturnType<typeof parseResponse>> {
  return parseResponse(await exchangeRaw(address, head(method, target, fields)));
}

test("the log filter is shown, changed and reset", async () => {
  assert.equal((await ask("GET", "/logging")).body, "current log level is info\n");
  assert.equal((await ask("POST", "/logging?level=debug")).body, "current log level is debug\n");
  assert.equal(
    (await ask("POST", "/logging?level=proxy::match=trace,request=off")).body,
    "current log level is debug,proxy::match=trace,request=off\n",
  );
  assert.equal((await ask("POST", "/logging")).body, "current log level is debug,proxy::match=trace,request=off\n");
  assert.equal((await ask("POST", "/logging?reset&level=warn")).body, "current log level is warn\n");
  assert.equal(
    (await ask("POST", "/logging?reset&level=info,agentgateway=debug,proxy::nothing=off,proxy=debug")).body,
    `current log level is info,agentgateway=debug,proxy::nothing=off,proxy=debug\nunknown: agentgateway, proxy::nothing; known modules: ${LOG_MODULES.join(", ")}\n`,
  );
  assert.equal((await ask("POST", "/logging?reset&level=warn")).body, "current log level is warn\n");
  const wrong = await ask("POST", "/logging?level=loud");
  assert.equal(wrong.status, 400);
  assert.match(wrong.body, /^Invalid level provided: loud\nusage: /);
  const read = await ask("GET", "/logging?level=trace");
  assert.equal(read.status, 405);
  assert.match(read.head, /^allow: POST$/im);
  assert.equal((await ask("POST", "/logging?reset")).body, "current log level is info\n");
});
