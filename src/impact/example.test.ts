import assert from "node:assert/strict";
import { test } from "node:test";
import type { SampledRequest } from "../recorder/sample.ts";
import { factsOfRequest, readRequest } from "../rehearsal/facts.ts";
import { exampleOf } from "./example.ts";

const SAMPLE: SampledRequest = {
  time: "2026-11-28T12:00:00.000Z",
  weight: 10,
  bind: "bind/8080",
  scheme: "http",
  version: "1.1",
  method: "POST",
  authority: "shop.example",
  target: "/cart?token=<redacted>",
  headers: [
    { name: "Host", value: "shop.example" },
    { name: "cookie", digest: "AAAA" },
    { name: "x-name", value: "J\u00c3\u00bcrgen" },
  ],
  contentLength: 7,
  source: { address: "192.0.2.7", port: 40_000 },
};

test("an example has the request as /explain takes it, at the port where it arrived", () => {
  const { request, ...rest } = exampleOf(SAMPLE, 8080);
  const { time, method, authority, target } = SAMPLE;
  assert.deepEqual(rest, { time, method, authority, target });
  assert.deepEqual(request, {
    url: "http://shop.example:8080/cart?token=<redacted>",
    method: "POST",
    headers: [
      ["host", "shop.example"],
      ["cookie", "<redacted>"],
      ["x-name", "Jürgen"],
      ["content-length", "7"],
    ],
    source: "192.0.2.7",
    version: "1.1",
  });
  const { head, source } = factsOfRequest(readRequest(request));
  assert.match(
    head,
    /^POST \/cart\?token=%3Credacted%3E HTTP\/1.1\r\nhost: shop.example\r\ncookie: <redacted>\r\nx-name: J\u00c3\u00bcrgen\r\n/,
  );
  assert.equal(source.address, "192.0.2.7");
});

test("TLS is asked for the name that the client asked for; ports that are not known are left out", () => {
  const { request } = exampleOf({ ...SAMPLE, scheme: "https", version: "2", serverName: "sni.example" }, undefined);
  assert.equal(request?.url, "https://sni.example/cart?token=<redacted>");
  assert.equal(request?.version, "2");
  assert.equal(exampleOf({ ...SAMPLE, authority: "[::1]:80", target: "/" }, 8080).request?.url, "http://[::1]:8080/");
});

test("of long requests, and those that cannot be written as a URL, an example has the line only", () => {
  const long = { headers: [{ name: "x-long", value: "x".repeat(5000) }] };
  for (const change of [long, { upgrade: "websocket" }, { target: "*", method: "OPTIONS" }, { authority: "" }])
    assert.deepEqual(exampleOf({ ...SAMPLE, ...change }, 8080).request, undefined);
});
