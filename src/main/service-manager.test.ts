/** What arrives at the socket is in test/e2e/packaging/systemd.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { ServiceManager } from "./service-manager.ts";

test("outside of systemd there is nothing to notify", () => {
  const log = new LogOutput(parseLogFilter("info"), "json", () => {}).logger("gateway");
  assert.equal(ServiceManager.of({ WATCHDOG_USEC: "1000" }, log), undefined);
});

test("without systemd-notify there is one warning, which says what to do", async (t) => {
  const { PATH } = process.env;
  t.after(() => {
    process.env.PATH = PATH;
  });
  process.env.PATH = "/nowhere";
  const lines: string[] = [];
  const output = new LogOutput(parseLogFilter("info"), "json", (line) => lines.push(line));
  const manager = ServiceManager.of({ NOTIFY_SOCKET: "/nowhere/notify" }, output.logger("gateway"));
  manager?.ready("Serving");
  manager?.stopping();
  await manager?.sent;
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /systemd-notify is not installed.*Type=exec/);
});
