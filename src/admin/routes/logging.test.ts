import assert from "node:assert/strict";
import { test } from "node:test";
import { TestAdmin } from "../../../test/helpers/admin/test-admin.ts";
import { LOG_MODULES } from "../../base/log-filter.ts";

const admin = new TestAdmin();

test("the log filter is shown, changed and reset", async () => {
  assert.equal((await admin.ask("GET", "/logging")).body, "current log level is info\n");
  assert.equal((await admin.ask("POST", "/logging?level=debug")).body, "current log level is debug\n");
  assert.equal(
    (await admin.ask("POST", "/logging?level=proxy::match=trace,request=off")).body,
    "current log level is debug,proxy::match=trace,request=off\n",
  );
  assert.equal(
    (await admin.ask("POST", "/logging")).body,
    "current log level is debug,proxy::match=trace,request=off\n",
  );
  assert.equal((await admin.ask("POST", "/logging?reset&level=warn")).body, "current log level is warn\n");
  assert.equal(
    (await admin.ask("POST", "/logging?reset&level=info,agentgateway=debug,proxy::nothing=off,proxy=debug")).body,
    `current log level is info,agentgateway=debug,proxy::nothing=off,proxy=debug\nunknown: agentgateway, proxy::nothing; known modules: ${LOG_MODULES.join(", ")}\n`,
  );
  assert.equal((await admin.ask("POST", "/logging?reset&level=warn")).body, "current log level is warn\n");
  const wrong = await admin.ask("POST", "/logging?level=loud");
  assert.equal(wrong.status, 400);
  assert.match(wrong.body, /^Invalid level provided: loud\nusage: /);
  const read = await admin.ask("GET", "/logging?level=trace");
  assert.equal(read.status, 405);
  assert.match(read.head, /^allow: POST$/im);
  assert.equal((await admin.ask("POST", "/logging?reset")).body, "current log level is info\n");
});
