import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import type { HeaderModifier } from "../schema/fields.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace } from "../testing/context.ts";
import { requestHeaderModifier } from "./index.ts";

const create = creatorOf(requestHeaderModifier);

function modified(config: HeaderModifier, headers: string[]): string[] {
  const context = contextOf({ headers });
  assert.equal(create(config, DEPS).onRequest?.(context), undefined);
  return context.request.headers;
}

test("adds, then sets, then removes", () => {
  const config = { add: { "X-A": "added", "x-b": "added" }, set: { "x-a": "set" }, remove: ["X-B", "gone"] };
  assert.deepEqual(modified(config, ["x-a", "1", "x-b", "2", "gone", "3", "kept", "4"]), ["x-a", "set", "kept", "4"]);
});

test("add keeps existing fields", () => {
  assert.deepEqual(modified({ add: { accept: "text/html" } }, ["accept", "*/*"]), [
    "accept",
    "*/*",
    "accept",
    "text/html",
  ]);
});

test("values are sent as UTF-8", () => {
  const [, value = ""] = modified({ set: { "x-name": "Zoë" } }, []);
  assert.equal(Buffer.from(value, "latin1").toString("utf8"), "Zoë");
});

test("Host is the authority: add and set replace it for good, remove does nothing", () => {
  for (const config of [{ set: { Host: "new:81" } }, { add: { host: "new:81" } }]) {
    const context = contextOf();
    create(config, DEPS).onRequest?.(context);
    assert.equal(context.request.authority, "new:81");
    assert.equal(context.authorityMode, "fixed");
    assert.deepEqual(context.request.headers, []);
  }
  const context = contextOf();
  create({ remove: ["Host"] }, DEPS).onRequest?.(context);
  assert.equal(context.request.authority, "example.com:8080");
  assert.equal(context.authorityMode, "auto");
});

test("fields that cannot be sent are rejected at load, by name", () => {
  const rejected = (config: HeaderModifier, message: RegExp): void => {
    assert.throws(() => create(config, DEPS), message);
  };
  for (const name of ["Content-Length", "transfer-encoding", "Connection", "upgrade", "keep-alive", "te", "trailer"]) {
    rejected({ set: { [name]: "1" } }, new RegExp(`requestHeaderModifier.set: ${name} frames the message`));
    rejected({ remove: [name] }, new RegExp(`requestHeaderModifier.remove.0: ${name} frames the message`));
  }
  rejected({ add: { ":path": "/" } }, /:path is a pseudo header; use urlRewrite/);
  rejected({ add: { "bad name": "1" } }, /"bad name" is not a header name/);
  rejected({ set: { "": "1" } }, /"" is not a header name/);
  for (const value of ["a\r\nb: c", "a\nb", "a\0b"])
    rejected({ set: { "x-a": value } }, /the value of x-a has a control/);
  rejected({ set: { host: "a b" } }, /requestHeaderModifier.set: Host: "a b" is not host\[:port\]/);
});

test("reports the touched headers with secrets redacted", () => {
  const trace = new RecordedTrace();
  const headers = ["authorization", "Basic abc", "cookie", "a=1", "accept", "*/*"];
  const config = { set: { Authorization: "Bearer s3cret", host: "new" }, remove: ["cookie"] };
  create(config, DEPS).onRequest?.(contextOf({ headers }, { trace }));
  const details = { set: { Authorization: "<redacted>", host: "new" }, remove: ["cookie"] };
  assert.deepEqual(requestHeaderModifier.traceView(config, DEPS.hidden), details);
  assert.deepEqual(trace.events, [
    {
      kind: "request_header_modifier",
      details,
      before: { host: "example.com:8080", authorization: "<redacted>", cookie: "<redacted>" },
      after: { host: "new", authorization: "<redacted>" },
    },
  ]);
});

test("a name that is set is in the list once, a removed one not at all", () => {
  const name: fc.Arbitrary<string> = fc.constantFrom("x-a", "x-b", "x-c", "accept");
  const value = fc.stringMatching(/^[!-~]{0,8}$/);
  const values = fc.dictionary(name, value, { noNullPrototype: true });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(name, value)),
      fc.record({ add: values, set: values, remove: fc.array(name) }),
      (fields, config) => {
        const result = modified(config, fields.flat());
        const names = result.filter((_, index) => index % 2 === 0);
        for (const removed of config.remove) assert.ok(!names.includes(removed));
        for (const [set, wanted] of Object.entries(config.set)) {
          if (config.remove.includes(set)) continue;
          assert.equal(names.filter((each) => each === set).length, 1);
          assert.equal(result[names.indexOf(set) * 2 + 1], wanted);
        }
      },
    ),
  );
});
