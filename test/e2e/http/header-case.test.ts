import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream } from "../../helpers/raw-peer.ts";

const REQUEST = "GET / HTTP/1.1\r\nHost: h\r\nX-Custom-ID: 1\r\naCCept: */*\r\n\r\n";
const ANSWER = "HTTP/1.1 200 OK\r\nX-Answer-ID: 1\r\nserver: s\r\nContent-LENGTH: 2\r\n\r\nok";

/** What the backend and the client get of two exchanges on one connection: names in their order. */
async function names(headerCase: "lowercase" | "preserve"): Promise<{ request: string[]; response: string[] }> {
  const requests: string[][] = [];
  await using upstream = await RawUpstream.answering(({ fields }) => {
    requests.push(fields.map(nameOf));
    return ANSWER;
  });
  await using plane = await TestPlane.start(upstream.port, { frontend: { headerCase } });
  const client = await RawPeer.connect(plane.port);
  const responses: string[][] = [];
  for (let i = 0; i < 2; i++) {
    client.send(REQUEST);
    responses.push((await client.message()).fields.map(nameOf));
  }
  client.end();
  assert.deepEqual(requests[0], requests[1]);
  assert.deepEqual(responses[0], responses[1]);
  return { request: requests[0] ?? [], response: responses[0] ?? [] };
}

function nameOf(line: string): string {
  return line.slice(0, line.indexOf(":"));
}

suite("http1HeaderCase", () => {
  test("preserve: names reach the other side as they were written", async () => {
    const { request, response } = await names("preserve");
    assert.deepEqual(
      request.filter((name) => name.toLowerCase() !== "host"),
      ["X-Custom-ID", "aCCept"],
    );
    assert.deepEqual(response, ["X-Answer-ID", "server", "Content-LENGTH"]);
  });

  test("lowercase: names are lower-case", async () => {
    const { request, response } = await names("lowercase");
    for (const name of [...request, ...response]) assert.equal(name, name.toLowerCase());
  });
});
