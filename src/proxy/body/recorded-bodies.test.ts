import assert from "node:assert/strict";
import { test } from "node:test";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import { AccessLogEdits } from "../../telemetry/access-log-edits.ts";
import { CustomLabels } from "../../telemetry/custom-labels.ts";
import { BufferBudget, BufferShare } from "./buffer-budget.ts";
import { bodyCaptureOptions, RecordedBodies } from "./recorded-bodies.ts";

const MIB = 1024 * 1024;

test("nothing is recorded unless an expression names a body", () => {
  const log = new AccessLogEdits(
    {
      filter: "response.code >= 500",
      add: { type: 'request.headers["content-type"]', subject: "jwt.sub" },
      remove: ["duration"],
    },
    STANDARD_ENVIRONMENT,
  );
  assert.equal(
    bodyCaptureOptions([log, new CustomLabels({ host: "request.host" }, STANDARD_ENVIRONMENT), undefined], MIB),
    undefined,
  );
});

test("named bodies are recorded, up to 64 KiB or the configured limit for bodies", () => {
  const filter = new AccessLogEdits({ filter: 'string(request.body).contains("a")' }, STANDARD_ENVIRONMENT);
  const label = new CustomLabels({ kind: "json(response.bodyPrefix).kind" }, STANDARD_ENVIRONMENT);
  assert.deepEqual(bodyCaptureOptions([filter, undefined], MIB), { request: true, response: false, limit: 65_536 });
  assert.deepEqual(bodyCaptureOptions([undefined, label], 1000), { request: false, response: true, limit: 1000 });
  const all = new AccessLogEdits({ add: { all: "variables()" } }, STANDARD_ENVIRONMENT);
  assert.deepEqual(bodyCaptureOptions([all], MIB), { request: true, response: true, limit: 65_536 });
});

test("the beginning of a body is kept, as a copy", () => {
  const share = new BufferShare(new BufferBudget(), MIB, { address: "192.0.2.1", connection: {} });
  const { request, response } = new RecordedBodies({ request: true, response: false, limit: 1000 }, share);
  assert.ok(request !== undefined);
  assert.equal(response, undefined);
  const chunk = Buffer.from("-abc-");
  for (let i = 0; i < 300; i++) request.add(chunk, 1, 4);
  assert.equal(request.truncated, false);
  request.add(chunk, 1, 4);
  chunk.fill("x");
  for (let i = 0; i < 100; i++) request.add(chunk, 0, 5);
  assert.equal(request.truncated, true);
  assert.equal(request.bytes.toString(), `${"abc".repeat(301)}${"x".repeat(97)}`);
});

test("recording ends when the worker's budget is used up, without a gap, and its share is returned", () => {
  const budget = new BufferBudget();
  const other = new BufferShare(budget, 100, { address: "192.0.2.1", connection: {} });
  other.take(60);
  const share = new BufferShare(budget, 100, { address: "192.0.2.1", connection: {} });
  const { request, response } = new RecordedBodies({ request: true, response: true, limit: 30 }, share);
  const bytes = Buffer.from("0123456789".repeat(4));
  request?.add(bytes, 0, 40);
  response?.add(bytes, 0, 10);
  response?.add(bytes, 10, 11);
  other.close();
  response?.add(bytes, 11, 12);
  assert.deepEqual([request?.bytes.length, response?.bytes.toString()], [30, "0123456789"]);
  assert.deepEqual([request?.truncated, response?.truncated, budget.used], [true, true, 40]);
  share.close();
  assert.equal(budget.used, 0);
  // Nothing is counted for an exchange that is over.
  assert.equal(share.take(1000), true);
  assert.equal(budget.used, 0);
});
