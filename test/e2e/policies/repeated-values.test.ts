import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { suite, test } from "node:test";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import type { CredentialLocation } from "../../../src/policies/schema/location.ts";
import { TestPlane, type TestRoute } from "../../helpers/data-plane.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";

const TARGET = { type: "invalid", reference: "" } as const;
const SEEN: PolicySet = { directResponse: { status: 200, body: "seen" } };

function accepting(key: string, location: CredentialLocation): PolicySet {
  const hash = createHash("sha256").update(key).digest("hex");
  return { ...SEEN, apiKey: { mode: "strict", keys: [{ hash }], location } };
}

function requiring(expression: string): PolicySet {
  return { ...SEEN, authorization: { rules: [{ mode: "require", expression }] } };
}

/** Whether each of `readers` finds the value in the request. */
async function taken(
  readers: readonly TestRoute[],
  target: string,
  fields: readonly string[] = [],
): Promise<boolean[]> {
  const results: boolean[] = [];
  for (const reader of readers) {
    await using plane = await TestPlane.start([reader]);
    const client = await RawPeer.connect(plane.port);
    client.send([`GET ${target} HTTP/1.1`, "Host: a", ...fields, "", ""].join("\r\n"));
    results.push(statusOf(await client.message()) === 200);
    client.end();
  }
  return results;
}

/** All readers of the query parameter `k`, with `value` as the expected value. */
const ofParameter = (value: string): TestRoute[] => [
  { target: TARGET, policies: SEEN, query: [{ name: "k", type: "exact", value }] },
  { target: TARGET, policies: SEEN, query: [{ name: "k", type: "regex", value: value.replaceAll("+", "\\+") }] },
  { target: TARGET, policies: requiring(`request.uri.query().k == ${JSON.stringify(value)}`) },
  { target: TARGET, policies: accepting(value, { queryParameter: { name: "k" } }) },
];

suite("query parameters: routes, expressions and credentials use the same one, decoded the same way", () => {
  for (const [search, value, others] of [
    ["?k=a&k=b", "b", ["a"]],
    ["?k=b&x=1&%6B=a", "a", ["b"]],
    ["?k=a&&k", "", ["a"]],
    ["?k=a%2Bb+c", "a+b c", ["a b c", "a%2Bb+c"]],
    ["?k=%zzx%41", "%zzxA", ["%zzx%41"]],
    ["??k=a&k=b&?k=c", "b", ["a", "c"]],
    ["?k=a=b", "a=b", ["a"]],
  ] as const)
    test(search, async () => {
      assert.deepEqual(await taken(ofParameter(value), `/${search}`), [true, true, true, true]);
      for (const other of others)
        assert.deepEqual(await taken(ofParameter(other), `/${search}`), [false, false, false, false], other);
    });
});

test("cookies: expressions and credentials use the first, in one field or in several", async () => {
  const readers = (value: string): TestRoute[] => [
    { target: TARGET, policies: requiring(`request.headers.cookie("k") == ${JSON.stringify(value)}`) },
    { target: TARGET, policies: accepting(value, { cookie: { name: "k" } }) },
  ];
  for (const fields of [["Cookie: x=1; k=a; k=b"], ["Cookie: x=k=b; k=a", "Cookie: k=b"], ['Cookie: k="a"; k=b']]) {
    assert.deepEqual(await taken(readers("a"), "/", fields), [true, true], fields.join());
    assert.deepEqual(await taken(readers("b"), "/", fields), [false, false], fields.join());
  }
});

suite("repeated headers", () => {
  const location = { header: { name: "x-k", prefix: "" } } as const;
  const FIELDS = ["X-K: a", "x-k: b"];

  test("routes match any line; in expressions, several values are equal to none of them", async () => {
    for (const value of ["a", "b"]) {
      const route: TestRoute = { target: TARGET, policies: SEEN, headers: [{ name: "x-k", type: "exact", value }] };
      const rule = { target: TARGET, policies: requiring(`request.headers["x-k"] == ${JSON.stringify(value)}`) };
      assert.deepEqual(await taken([route, rule], "/", FIELDS), [true, false]);
      assert.deepEqual(await taken([route, rule], "/", [`X-K: ${value}`]), [true, true]);
    }
  });

  test("two credentials count as none: a backend or rule might use the other", async () => {
    const keys = [accepting("a", location), accepting("b", location)].map((policies) => ({ target: TARGET, policies }));
    assert.deepEqual(await taken(keys, "/", FIELDS), [false, false]);
    assert.deepEqual(await taken(keys, "/", ["X-K: b"]), [false, true]);
  });
});
