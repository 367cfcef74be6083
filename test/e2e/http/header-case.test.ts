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
    assert.deepEqual(response, ["X-Answer-ID", "server", "Content-LENGTH", "date"]);
  });

  test("lowercase: names are lower-case", async () => {
    const { request, response } = await names("lowercase");
    for (const name of [...request, ...response]) assert.equal(name, name.toLowerCase());
  });

  test("preserve: repeated names each keep their case, also if a policy removes or adds one", async () => {
    const requests: string[][] = [];
    await using upstream = await RawUpstream.answering(({ fields }) => {
      requests.push(fields.map(nameOf).filter((name) => name.toLowerCase() !== "host"));
      return "HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nset-cookie: b\r\nContent-Length: 0\r\nSET-COOKIE: c\r\n\r\n";
    });
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    const change = { add: { "x-id": "4" }, remove: ["x-gone"] };
    await using plane = await TestPlane.start([{ target, policies: { requestHeaderModifier: change } }], {
      frontend: { headerCase: "preserve" },
    });
    const client = await RawPeer.connect(plane.port);
    client.send("GET / HTTP/1.1\r\nHost: h\r\nX-ID: 1\r\nX-Gone: 1\r\nx-id: 2\r\nX-Id: 3\r\n\r\n");
    const response = await client.message();
    assert.deepEqual(requests, [["X-ID", "x-id", "X-Id", "X-Id"]]);
    assert.deepEqual(response.fields.map(nameOf), ["Set-Cookie", "set-cookie", "Content-Length", "SET-COOKIE", "date"]);
    client.end();
  });

  for (const [headerCase, expected] of [
    ["preserve", ["X-Sum", "x-sum", "ETAG"]],
    ["lowercase", ["x-sum", "x-sum", "etag"]],
  ] as const)
    test(`${headerCase}: trailers too`, async () => {
      const trailers = "X-Sum: 1\r\nx-sum: 2\r\nETAG: e\r\n";
      const requests: string[][] = [];
      await using upstream = await RawUpstream.answering((request) => {
        requests.push(request.trailers.map(nameOf));
        return `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${trailers}\r\n`;
      });
      await using plane = await TestPlane.start(upstream.port, { frontend: { headerCase } });
      const client = await RawPeer.connect(plane.port);
      for (let i = 0; i < 2; i++) {
        const head = "POST / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(`${head}1\r\nx\r\n0\r\n${trailers}\r\n`);
        assert.deepEqual((await client.message()).trailers.map(nameOf), expected);
      }
      assert.deepEqual(requests, [expected, expected]);
      client.end();
    });
});
