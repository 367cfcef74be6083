import assert from "node:assert/strict";
import { test } from "node:test";
import type { SampledRequest } from "./sample.ts";
import { BadSampleFile, readSampleFile, sampleFileText } from "./sample-file.ts";

const SAMPLE: SampledRequest = {
  time: "2026-11-28T12:00:00.000Z",
  weight: 10,
  bind: "bind/80",
  scheme: "https",
  version: "2",
  method: "POST",
  authority: "shop.example",
  target: "/cart?token=<redacted>",
  headers: [
    { name: "accept", value: "*/*" },
    { name: "cookie", digest: "c29tZQ" },
  ],
  contentLength: 12,
  source: { address: "192.0.2.7", port: 40_000 },
  serverName: "shop.example",
};

const CONFIGURATION = { digest: "0123456789abcdef", routes: ["default/shop"] };
const textOf = (samples: readonly SampledRequest[]): string =>
  sampleFileText(samples, { generation: 3, configuration: CONFIGURATION });

test("what is written is read again", () => {
  assert.deepEqual(readSampleFile(textOf([SAMPLE, SAMPLE])), {
    configuration: CONFIGURATION,
    samples: [SAMPLE, SAMPLE],
  });
  assert.deepEqual(readSampleFile(textOf([])).samples, []);
  const upgrade: SampledRequest = { ...SAMPLE, contentLength: "unknown", upgrade: "websocket" };
  assert.deepEqual(readSampleFile(textOf([upgrade])).samples, [upgrade]);
});

test("a file that is something else, of another format, cut short or changed is refused with the reason", () => {
  const text = textOf([SAMPLE, SAMPLE]);
  const changed = (change: object): string => {
    const [header = "", line = ""] = text.split("\n");
    return `${header}\n${line}\n${JSON.stringify({ ...SAMPLE, ...change })}\n`;
  };
  const cases: readonly [text: string, message: RegExp][] = [
    ["", /does not begin with the header/],
    ["binds: []\n", /does not begin with the header/],
    [text.replace('"sampleFile":1', '"sampleFile":2'), /has format 2, and this version reads 1/],
    [text.slice(0, text.lastIndexOf("\n", text.length - 2) + 1), /has 1 samples and should have 2: it was cut short/],
    [text.replace('"digest"', '"other"'), /does not say with which configuration it was taken/],
    [`${text.trimEnd().slice(0, -5)}\n`, /line 3 is not a sample: it is no object/],
    [changed({ version: "3" }), /line 3 is not a sample: version/],
    [changed({ headers: [{ name: "a" }] }), /line 3 is not a sample: headers/],
    [changed({ contentLength: "some" }), /line 3 is not a sample: contentLength/],
    [changed({ upgrade: true }), /line 3 is not a sample: upgrade/],
    [changed({ source: "192.0.2.7" }), /line 3 is not a sample: source/],
  ];
  for (const [wrong, message] of cases)
    assert.throws(
      () => readSampleFile(wrong),
      (error) => error instanceof BadSampleFile && message.test(error.message),
    );
});
