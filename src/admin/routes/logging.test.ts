import assert from "node:assert/strict";
import { test } from "node:test";
import { TestAdmin } from "../../../test/helpers/admin/test-admin.ts";
import { LOG_MODULES } from "../../base/log-filter.ts";
import type { LogLevels } from "../plane/log-levels.ts";

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

test("programs that ask for JSON get the level of each module", async () => {
  const levels = async (method: string, target: string): Promise<LogLevels> => {
    const { status, body } = await admin.ask(method, target, ["host: localhost", "accept: application/json"]);
    assert.equal(status, 200);
    return JSON.parse(body) as LogLevels;
  };
  await levels("POST", "/logging?reset");
  const changed = await levels("POST", "/logging?level=warn,proxy=debug,mine=off");
  assert.deepEqual(await levels("GET", "/logging"), changed);
  assert.deepEqual([changed.filters, changed.level], [["warn,proxy=debug,mine=off"], "warn"]);
  const of = (name: string) => changed.modules.find((each) => each.name === name);
  assert.deepEqual(of("proxy::match"), { name: "proxy::match", level: "debug", own: false });
  assert.deepEqual(of("proxy"), { name: "proxy", level: "debug", own: true });
  assert.deepEqual(of("xds"), { name: "xds", level: "warn", own: false });
  assert.deepEqual(of("mine"), { name: "mine", level: "off", own: true });
  await levels("POST", "/logging?reset");
});
