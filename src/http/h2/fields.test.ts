import assert from "node:assert/strict";
import { test } from "node:test";
import type { Latin1 } from "../message/message.ts";
import { connectStart, endToEnd, readResponse, readTrailers, requestStart } from "./fields.ts";

const REQUEST = { method: "GET", authority: "a.example:81", path: "/p", search: "?q" };

test("a request has its pseudo-header fields first, and no fields of the connection", () => {
  const start = [":method", "GET", ":scheme", "https", ":path", "/p?q", ":authority", "a.example:81"];
  assert.deepEqual(requestStart(REQUEST, "https", false, ""), start);
  assert.deepEqual(requestStart(REQUEST, "https", true, "a" as Latin1), [...start, "cdn-loop", "a", "te", "trailers"]);
  const whole = requestStart({ method: "OPTIONS", path: "*", search: "", authority: "" }, "http", false, "");
  assert.deepEqual(whole, [":method", "OPTIONS", ":scheme", "http", ":path", "*"]);
  assert.deepEqual(connectStart(REQUEST, "https", "websocket", "a" as Latin1), [
    ...[":method", "CONNECT", ...start.slice(2)],
    ...[":protocol", "websocket", "cdn-loop", "a"],
  ]);
  const headers = ["connection", "x", "x-a", "te", "te", "gzip", "host", "b", "upgrade", "h2c", "x-a", "2"];
  assert.deepEqual(endToEnd(headers), ["x-a", "te", "x-a", "2"]);
  const clean = ["x-a", "upgrade"];
  assert.equal(endToEnd(clean), clean);
});

test("a response is read with its length, which is one number", () => {
  assert.deepEqual(readResponse([":status", "200", "content-length", "12", "x-a", "1"]), {
    status: 200,
    headers: ["content-length", "12", "x-a", "1"],
    contentLength: 12,
  });
  assert.deepEqual(readResponse([":status", "103"]), { status: 103, headers: [], contentLength: -1 });
  for (const lengths of [["1", "1"], ["-1"], ["1, 1"], ["+1"], [""], ["9999999999999999"]])
    assert.match(
      String(readResponse([":status", "200", ...lengths.flatMap((each) => ["content-length", each])])),
      /Length/,
    );
});

test("an invalid response is rejected", () => {
  for (const status of ["", "20", "2000", "099", "2e2"])
    assert.match(String(readResponse([":status", status])), /status/);
  assert.match(String(readResponse(["x", "y"])), /status/);
  for (const fields of [
    [":status", "200", ":status", "200"],
    [":status", "200", ":path", "/"],
    [":status", "200", "x", "y", ":status", "200"],
  ])
    assert.match(String(readResponse(fields)), /pseudo-header/);
  for (const name of ["connection", "transfer-encoding", "keep-alive", "upgrade", "proxy-connection"])
    assert.equal(readResponse([":status", "200", name, "x"]), `${name} is not allowed in HTTP/2`);
});

test("trailers keep what trailers may hold", () => {
  assert.deepEqual(
    readTrailers([
      ...["grpc-status", "0", "content-length", "1", "transfer-encoding", "chunked"],
      ...["authorization", "no", "set-cookie", "no", "x-sum", "1", "x-sum", "2"],
    ]),
    ["grpc-status", "0", "x-sum", "1", "x-sum", "2"],
  );
  assert.equal(readTrailers([":status", "200"]), ":status is not allowed in trailers");
  assert.equal(readTrailers(["x-a", "1", "x-b", "2"], new Set(["x-b"])), "x-b is not allowed in trailers");
});
