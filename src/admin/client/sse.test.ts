import assert from "node:assert/strict";
import { test } from "node:test";
import { TraceTextParser } from "./sse.ts";

function parse(...pieces: string[]): string[] {
  return located(...pieces).map(({ raw }) => raw);
}

function located(...pieces: string[]) {
  const parser = new TraceTextParser();
  return [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end()];
}

test("events are data lines up to a blank line; comments and other fields are skipped", () => {
  const text = ': ready\n\nid: 7\nevent: x\ndata: {"a":1}\n\n: keepalive\n\ndata:{"b":\ndata: 2}\n\n';
  assert.deepEqual(parse(text), ['{"a":1}', '{"b":\n2}']);
});

test("the last id is that of the last complete event, or the last one without an event", () => {
  const parser = new TraceTextParser();
  const ids = ["id: 7\n\n", 'id: 8\ndata: {"a":1}\n', "\n", 'data: {"b":2}\n\n', "id: 9\ndata: {"].map((text) => {
    parser.push(text);
    return parser.lastEventId;
  });
  assert.deepEqual(ids, ["7", "7", "8", "8", "8"]);
});

test("the result does not depend on where the text is cut", () => {
  const text = ': ready\r\n\r\ndata: {"a":1}\r\n\r\n{"bare":true}\ndata: {"b":2}\n\n';
  const expected = ['{"a":1}', '{"bare":true}', '{"b":2}'];
  assert.deepEqual(parse(text), expected);
  assert.deepEqual(parse(...text), expected);
});

test("the last event needs neither a blank line nor a line end", () => {
  assert.deepEqual(parse('{"a":1}\n{"b":2}'), ['{"a":1}', '{"b":2}']);
  assert.deepEqual(parse('data: {"a":1}'), ['{"a":1}']);
});

test("an event comes with the line at which it begins", () => {
  const text = ': ready\n\ndata: {"a":\ndata: 1}\n\n{"bare":true}\n{"last":1}';
  const lines = [3, 6, 7];
  assert.deepEqual(
    located(text).map(({ line }) => line),
    lines,
  );
  assert.deepEqual(
    located(...text).map(({ line }) => line),
    lines,
  );
});
