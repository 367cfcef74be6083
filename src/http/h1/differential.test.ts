import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { compare } from "../../../test/fuzz/http1/differential.ts";
import { generateStream } from "../../../test/fuzz/http1/generate.ts";

const STREAMS = 6000;
const FIRST_SEED = 20_240_611;

test("what the gateway accepts, Node's strict parser reads as the same requests", () => {
  let accepted = 0;
  for (let seed = FIRST_SEED; seed < FIRST_SEED + STREAMS; seed++) {
    const stream = generateStream(seed);
    const result = compare(stream);
    accepted += result.accepted;
    assert.equal(result.disagreement, undefined, `seed ${seed}: ${inspect(result.disagreement, { depth: null })}`);
  }
  // A parser that rejects everything would pass otherwise.
  assert.ok(accepted > STREAMS, `only ${accepted} requests were accepted`);
});

const SMUGGLING: readonly (readonly [string, string])[] = [
  ["Content-Length as a trailer", chunkedWithTrailer("content-length: 5")],
  ["Transfer-Encoding as a trailer", chunkedWithTrailer("transfer-encoding: chunked")],
  ["Connection as a trailer", `${chunkedWithTrailer("connection: close")}GET / HTTP/1.1\r\nhost: a\r\n\r\n`],
];

function chunkedWithTrailer(field: string): string {
  return `POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n${field}\r\n\r\n`;
}

// Disagreements that fuzzing has found.
for (const [name, stream] of SMUGGLING) {
  test(`no disagreement about: ${name}`, () => {
    const result = compare(Buffer.from(stream, "latin1"));
    assert.deepEqual(result, { accepted: 0, disagreement: undefined });
  });
}
