import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import type { StepLine } from "../../report/step-lines.ts";
import { writeLines } from "./screen.ts";

const LINES: readonly StepLine[] = [
  { depth: 0, text: "GET /cart → 403" },
  { depth: 0, result: "no", text: "policy authorization  no rule allows this request", place: "gateway.yaml:18" },
  { depth: 1, text: 'request.headers["x-team"] → "\u001b[2J"' },
  { depth: 0, result: "notReached", text: "policy retry  not reached" },
];

async function shown(terminal: object, env = {}): Promise<string> {
  const stdout = Object.assign(new PassThrough(), terminal);
  const context = { stdin: stdout, stdout, stderr: stdout, env, json: false, signal: AbortSignal.any([]) };
  await writeLines(context, LINES);
  return String(stdout.read());
}

test("a pipe gets each line as it is, without colors", async () => {
  assert.equal(
    await shown({}),
    `GET /cart → 403
✗ policy authorization  no rule allows this request  gateway.yaml:18
    request.headers["x-team"] → "\\u001b[2J"
– policy retry  not reached
`,
  );
});

test("a terminal gets lines of its width, indented below their text, and places apart from what does not fit", async () => {
  const text = await shown({ isTTY: true, columns: 40 });
  assert.equal(
    stripVTControlCharacters(text),
    `GET /cart → 403
✗ policy authorization  no rule allows
    this request  gateway.yaml:18
    request.headers["x-team"] →
      "\\u001b[2J"
– policy retry  not reached
`,
  );
  const wide = stripVTControlCharacters(await shown({ isTTY: true, columns: 60 }));
  assert.ok(wide.includes("\n✗ policy authorization  no rule allows this request\n    gateway.yaml:18\n"), wide);
});

test("colors are the gateway's own, and NO_COLOR turns them off", async () => {
  const text = await shown({ isTTY: true, columns: 80 });
  assert.ok(text.includes("\u001b[31m✗ \u001b[39mpolicy authorization"), JSON.stringify(text));
  assert.ok(text.includes("\u001b[2mgateway.yaml:18\u001b[22m"));
  assert.ok(!text.includes("\u001b[2J"));
  const plain = await shown({ isTTY: true, columns: 80 }, { NO_COLOR: "1" });
  assert.equal(plain, stripVTControlCharacters(plain));
});
