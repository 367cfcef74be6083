import assert from "node:assert/strict";
import { test } from "node:test";
import type { RedactedTarget } from "../base/redaction.ts";
import { ncsaLine } from "./ncsa-line.ts";

const RECORD = {
  time: Date.UTC(2026, 1, 3, 4, 5, 6, 789),
  source: "192.0.2.7:5000",
  method: "GET",
  path: "/cart?a=1" as RedactedTarget,
  version: "HTTP/1.1",
  status: 200,
  protocol: "http",
  bytesReceived: 3,
  bytesSent: 512,
  durationMs: 1,
};
const NOTHING = { user: undefined, referrer: undefined, agent: undefined };

test("common and combined lines are those that Apache writes", () => {
  const common = '192.0.2.7 - - [03/Feb/2026:04:05:06 +0000] "GET /cart?a=1 HTTP/1.1" 200 512';
  assert.equal(ncsaLine(RECORD, "common", NOTHING), `${common}\n`);
  const fields = { user: "ann", referrer: "https://a.example/", agent: "curl/8.5.0" };
  assert.equal(
    ncsaLine(RECORD, "combined", fields),
    `${common.replace("- -", "- ann")} "https://a.example/" "curl/8.5.0"\n`,
  );
  const none = ncsaLine(
    { ...RECORD, source: "[2001:db8::1]:5000", version: "HTTP/2", bytesSent: 0 },
    "combined",
    NOTHING,
  );
  assert.equal(none, '2001:db8::1 - - [03/Feb/2026:04:05:06 +0000] "GET /cart?a=1 HTTP/2.0" 200 - "-" "-"\n');
});

test("a connection has no request and no status", () => {
  const { method: _m, path: _p, version: _v, status: _s, ...connection } = RECORD;
  assert.match(ncsaLine({ ...connection, protocol: "tcp" }, "common", NOTHING), /\] "-" - 512\n$/);
});

test("what clients send makes neither lines nor fields", () => {
  const evil = 'a" 200 1 "\n10.0.0.1 - - [x] \\" \u2028é\u001b[2J\u0000';
  const line = ncsaLine(RECORD, "combined", { user: `x y${evil}`, referrer: evil, agent: evil });
  assert.equal(line.indexOf("\n"), line.length - 1);
  assert.match(line, /^[\x20-\x7e]+\n$/);
  const field = '"(?:[^"\\\\]|\\\\.)*"';
  assert.match(line, new RegExp(`^\\S+ - \\S+ \\[[^\\]]+\\] ${field} 200 512 ${field} ${field}\\n$`));
  assert.match(line, /\\xc3\\xa9\\x1b\[2J\\x00/);
});
