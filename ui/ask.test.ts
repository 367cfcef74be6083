import assert from "node:assert/strict";
import { test } from "node:test";
import { AskError, ask, type Question } from "./ask.ts";

const OPENED = "http://user:pw@gateway.example/behind/ui/#requests";
Object.assign(globalThis, { location: { href: OPENED } });

test("a page that was opened with credentials in its URL asks without them", async (t) => {
  const { mock } = t.mock.method(globalThis, "fetch", async () => new Response("no", { status: 404 }));
  await assert.rejects(ask("/overview"), AskError);
  assert.equal(mock.calls[0]?.arguments[0], "http://gateway.example/behind/overview");
});

test("a page asks again where another answer may come, and says what the gateway says", async (t) => {
  const problem = async (status: number, body: string, question: Question = {}): Promise<AskError> => {
    const { mock } = t.mock.method(globalThis, "fetch", async () => new Response(body, { status }));
    const error = await ask("/overview", question).then(
      () => undefined,
      (cause: unknown) => cause,
    );
    mock.restore();
    assert.ok(error instanceof AskError);
    return error;
  };
  for (const [status, passes] of [
    [400, false],
    [404, false],
    [500, false],
    [502, true],
    [503, true],
    [504, true],
  ] as const) {
    const error = await problem(status, "said\n");
    assert.deepEqual([error.message, error.passes], ["said", passes], String(status));
  }
  const refused = await problem(400, '{"error": {"message": "no", "hint": "write yes", "about": {"request": "url"}}}');
  assert.deepEqual([refused.message, refused.about], ["no\nwrite yes", { request: "url" }]);
  assert.equal((await problem(403, "no")).message, "no");
  assert.equal((await problem(403, "no", { changes: true })).message, "You may not change anything here: no");
  const other = await problem(200, '{"another": "shape"}');
  assert.match(other.message, /load the page again/);
  t.mock.method(globalThis, "fetch", () => Promise.reject(new TypeError("connection refused")));
  await assert.rejects(ask("/overview"), (error) => error instanceof AskError && error.passes);
});
