import assert from "node:assert/strict";
import { test } from "node:test";
import type { ListenerState } from "../src/admin/plane/answers.ts";
import {
  addressOf,
  type Draft,
  draftOf,
  draftOfQuestion,
  draftOfRequest,
  EMPTY_DRAFT,
  headersIn,
  questionOf,
  urlAt,
} from "./explain-question.ts";
import { placeOf } from "./place.ts";

/** The draft in the address of another one, as somebody gets it who opens the link. */
function opened(draft: Draft): Draft {
  return draftOf(placeOf(addressOf(draft).hash).query);
}

test("a link asks the same question", () => {
  const draft: Draft = {
    method: "POST",
    url: "https://shop.example/cart?a=1&b=%20",
    headers: [
      ["x-canary", "yes, no"],
      ["x-empty", ""],
    ],
    body: "line 1\nline 2 & more",
    source: "192.0.2.7",
    version: "2",
    certificate: "",
    assume: new Map([
      ["extAuthz", "deny"],
      ["jwt", '{"sub":"a=b"}'],
      ['condition request.headers["x-role"] == "admin"', "false"],
    ]),
  };
  assert.deepEqual(addressOf(draft).leftOut, []);
  assert.deepEqual(opened(draft), draft);
  const blank = { ...draft, headers: [["", " "] as const, ...draft.headers] };
  assert.deepEqual(opened(blank), draft, "a row in which nothing is written is no field");
  assert.deepEqual(questionOf(blank), questionOf(draft));
  assert.deepEqual(questionOf(draft), {
    request: {
      method: "POST",
      url: draft.url,
      headers: [
        ["x-canary", "yes, no"],
        ["x-empty", ""],
      ],
      body: draft.body,
      source: "192.0.2.7",
      version: "2",
    },
    assume: { extAuthz: "deny", jwt: '{"sub":"a=b"}' },
  });
});

test("a request fills the form", () => {
  const headers = [
    ["host", "shop.example"],
    ["x-canary", "yes"],
  ] as const;
  const request = {
    url: "http://shop.example:8080/",
    method: "PUT",
    headers,
    source: "192.0.2.7",
    version: "2",
  } as const;
  assert.deepEqual(questionOf(draftOfRequest(request)), { request, assume: {} });
});

test("a link has no secrets, and says which ones it lacks", () => {
  const draft: Draft = {
    ...EMPTY_DRAFT,
    url: "http://shop.example/?token=s3cret&page=2",
    headers: headersIn(
      "Authorization: Bearer s3cret\nx-canary: yes\nx-api-key: <redacted>\nreferer: http://a.example/?q=1&code=s3cret",
    ),
    body: '{"user":{"password":"s3cret"}}',
    certificate: "-----BEGIN PRIVATE KEY-----\ns3cret",
    assume: new Map([
      ["extAuthz", '{"headers":{"authorization":"Bearer s3cret"}}'],
      ["jwt", '{"sub":"a"}'],
    ]),
  };
  const { hash, leftOut } = addressOf(draft);
  assert.doesNotMatch(hash, /s3cret/);
  assert.deepEqual(leftOut, [
    "a part of the URL",
    "the certificate",
    "the body",
    "Authorization",
    "referer",
    "the value of extAuthz",
  ]);
  const headers = headersIn(
    "Authorization: <redacted>\nx-canary: yes\nx-api-key: <redacted>\nreferer: http://a.example/?q=1&code=<redacted>",
  );
  const url = "http://shop.example/?token=<redacted>&page=2";
  const shared = { ...EMPTY_DRAFT, url, headers, assume: new Map([["jwt", '{"sub":"a"}']]) };
  assert.deepEqual(opened(draft), shared);
  assert.deepEqual(addressOf(shared), { hash, leftOut: [] });
  assert.match(
    JSON.stringify(questionOf(draft)),
    /Bearer s3cret.*password.*BEGIN PRIVATE KEY/,
    "the page itself has them",
  );
  for (const body of ["user=a&pwd=s3cret", "pwd=s3cret"])
    assert.deepEqual(addressOf({ ...EMPTY_DRAFT, url: "http://a/", body }).leftOut, ["the body"]);
});

test("a question of the gateway fills the form, with what it assumes", () => {
  const request = {
    url: "http://a/",
    method: "PUT",
    headers: [["x-a", "<redacted>"]],
    body: "b",
    version: "1.1",
  } as const;
  const draft = draftOfQuestion({ request, assume: { apiKey: "valid", jwt: { sub: "a" }, response: 503 } });
  assert.deepEqual(opened(draft), draft);
  assert.deepEqual(questionOf(draft), { request, assume: { apiKey: "valid", jwt: '{"sub":"a"}', response: "503" } });
});

test("the URL for a listener keeps what fits: path, query, and a host that it serves", () => {
  const at = (
    protocol: ListenerState["protocol"],
    hostname: string,
    url: string,
    address: string | null = "[::]:8443",
  ) => urlAt({ key: "k", name: "web", gateway: "g", protocol, hostname, bind: "b", address, routes: 1 }, url);
  for (const [protocol, hostname, url, expected] of [
    ["HTTP", "*", "", "http://localhost:8443/"],
    ["HTTP", "*", "https://shop.example:80/a//b?x=1:2", "http://shop.example:8443/a//b?x=1:2"],
    ["HTTPS", "shop.example", "http://other.example/cart", "https://shop.example:8443/cart"],
    ["HTTPS", "*.shop.example", "shop.example/cart", "https://www.shop.example:8443/cart"],
    ["HTTPS", "*.shop.example", "A.Shop.example?q", "https://A.Shop.example:8443?q"],
    ["HTTP", "*", "http://[::1]:80/", "http://[::1]:8443/"],
    ["TLS", "db.example", "http://shop.example/cart", "tls://db.example:8443"],
  ] as const)
    assert.equal(at(protocol, hostname, url), expected);
  assert.equal(at("HTTP", "*", "http://a/", null), undefined, "no client reaches it");
});
