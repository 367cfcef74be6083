import assert from "node:assert/strict";
import { test } from "node:test";
import { ASSUMPTIONS, isAssumption, readAssumptions, splitAssumption, textOf } from "./assumptions.ts";
import { BadFacts } from "./facts.ts";

const readAssumptionTexts = (texts: readonly string[]) =>
  readAssumptions(Object.fromEntries(texts.map(splitAssumption)));

test("both spellings mean the same", () => {
  const texts = ["extAuthz=deny", "response=503", 'jwt={"sub":"a"}', "backend=default/a:80", "body={}", "random=0.5"];
  const values = {
    extAuthz: "deny",
    response: 503,
    jwt: { sub: "a" },
    backend: "default/a:80",
    body: "{}",
    random: "0.5",
  };
  assert.deepEqual(readAssumptionTexts(texts), readAssumptions(values));
  assert.deepEqual(readAssumptionTexts(texts), {
    extAuthz: "deny",
    response: { status: 503 },
    jwt: { sub: "a" },
    backend: "default/a:80",
    body: "{}",
    random: 0.5,
  });
});

test("field names of responses are in lower case, and fields that frame a message are not taken", () => {
  assert.deepEqual(readAssumptions({ response: { headers: { "X-A": "1" } } }), {
    response: { headers: { "x-a": "1" } },
  });
  for (const response of [
    { headers: { "Content-Length": "1" } },
    { headers: { "a b": "1" } },
    { headers: { a: "1\r\nb: 2" } },
    { status: 99 },
    { state: 503 },
  ])
    assert.throws(() => readAssumptions({ response }), BadFacts);
});

test("a mistake says what can be written", () => {
  const mistakes: readonly [text: string, message: string, hint: RegExp][] = [
    ["extauthz=deny", 'nothing can be assumed about "extauthz"', /^write extAuthz$/],
    ["weather=fine", 'nothing can be assumed about "weather"', /^write one of response, endpoints, .*, random$/],
    ["remoteRateLimit=no", 'remoteRateLimit cannot be "no"', /^assume remoteRateLimit=under or remoteRateLimit=over$/],
    ["jwt=[]", 'jwt cannot be "[]"', /^assume jwt=\{"sub":"a"\}, jwt=valid or jwt=invalid$/],
    ["time=noon", 'time cannot be "noon"', /^assume time=2026-01-31T12:00:00Z$/],
    ["random", 'random cannot be ""', /^assume random=0.5$/],
  ];
  for (const [text, message, hint] of mistakes)
    assert.throws(
      () => readAssumptionTexts([text]),
      (error: unknown) => error instanceof BadFacts && error.message === message && hint.test(error.hint),
    );
});

test("each value that the table shows can be assumed, and reads back as it is written", () => {
  const { clientCertificate: _file, ...texts } = ASSUMPTIONS;
  for (const [name, { values }] of Object.entries(texts))
    for (const value of values.map((each) => each.replace("{…}", "{}"))) {
      const read = readAssumptionTexts([`${name}=${value}`]);
      assert.ok(isAssumption(name));
      assert.deepEqual(readAssumptionTexts([`${name}=${textOf(read[name])}`]), read);
    }
});
