import assert from "node:assert/strict";
import { test } from "node:test";
import { redactTarget, redactUrls, SECRET_PARAMETERS } from "./redaction.ts";
import { SENSITIVE_HEADERS, SensitiveNames, SensitiveParameters } from "./sensitive-names.ts";

const target = (text: string): string => redactTarget(text, SECRET_PARAMETERS);

test("the values of secret parameters are redacted, whatever the spelling of their names", () => {
  for (const name of [
    "access_token",
    "access-token",
    "accessToken",
    "ID_TOKEN",
    "refresh%5Ftoken",
    "%70assword",
    "passwd",
    "pwd",
    "pass",
    "client_secret",
    "api_key",
    "apikey",
    "API-Key",
    "key",
    "code",
    "auth",
    "signature",
    "sig",
    "X-Amz-Signature",
    "X-Amz-Security-Token",
    "X-Amz-Credential",
    "session",
    "user[password]",
    "code[]",
    "ticket",
  ]) {
    assert.equal(target(`/a?page=2&${name}=s3cret&x=1`), `/a?page=2&${name}=<redacted>&x=1`);
    assert.equal(redactUrls(`see http://a.test/?${name}=s3cret.`), `see http://a.test/?${name}=<redacted>`);
  }
});

test("ordinary parameters stay as they are, and a target without secrets is the same text", () => {
  for (const text of [
    "/",
    "/a?",
    "/a?b",
    "/a?b=c&max_tokens=5&monkey=1&keyword=x&state=open&zip_code=1&sort_key=2",
    "/a;v=1/b?next=https%3A%2F%2Fa.test%2F%3Fpage%3D2",
    "/a?=x&&=",
  ])
    assert.equal(target(text), text);
});

test("neither semicolons, nested URLs nor parameters of path segments hide a secret", () => {
  assert.equal(target("/a?x=1;token=s3cret;y&z=2"), "/a?x=1;token=<redacted>&z=2");
  assert.equal(target("/a?token=s3;cret=x&z=2"), "/a?token=<redacted>&z=2");
  assert.equal(target("/a;jsessionid=s3cret/b;v=1?x=1"), "/a;jsessionid=<redacted>/b;v=1?x=1");
  assert.equal(target("/a?next=http%3A%2F%2Fb%2F%3Ftoken%3Ds3cret"), "/a?next=<redacted>");
  assert.equal(target("/a?token=a=b&token=c&token"), "/a?token=<redacted>&token=<redacted>&token");
});

test("no form of nesting hides a secret: URLs, JSON, user information, encoded once or often", () => {
  for (const [text, shown] of [
    ["/a?next=https://b.test/?token=s3cret&x=1", "/a?next=<redacted>&x=1"],
    ["/a?next=/cb?code=s3cret", "/a?next=<redacted>"],
    ["/a?next=https://me:s3cret@b.test/", "/a?next=<redacted>"],
    ["/a?next=https%3A%2F%2Fme%3As3cret%40b.test", "/a?next=<redacted>"],
    ["/a?next=https%253A%252F%252Fb%252F%253Ftoken%253Ds3cret", "/a?next=<redacted>"],
    ["/a?next=%2Fcb%3Fcode=s3cret", "/a?next=<redacted>"],
    ["/a?x=1%26token=s3cret", "/a?x=<redacted>"],
    ["/a?variables=%7B%22user%22%3A%7B%22password%22%3A%22s3cret%22%7D%7D", "/a?variables=<redacted>"],
    ["/fetch/https://me:s3@cret@b.test/x;token=s3cret?a=1", "/fetch/https://<redacted>@b.test/x;token=<redacted>?a=1"],
    ["/a%3Ftoken=s3cret", "/a<redacted>"],
    ["/a/b%253btoken=s3cret?x=1", "/a/b<redacted>?x=1"],
  ] as const)
    assert.equal(target(text), shown);
  assert.equal(
    redactUrls("https://a.test/?next=https%3A%2F%2Fb.test%2F%3Ftoken%3Ds3cret&x=1"),
    "https://a.test/?next=<redacted>&x=1",
  );
  assert.equal(redactUrls("db://me:s3@cret@b.test/"), "db://<redacted>@b.test/");
});

test("text that looks nested but has no secret stays as it is", () => {
  for (const text of ["/@me/a%20b?q=50%25&r=a%26b", "/a%3Fb/c?next=/d?page=2", "/a?j=%7B%22name%22%3A%22x%22%7D"])
    assert.equal(target(text), text);
});

test("tokens in the protocols of a WebSocket and in binary metadata have secret names", () => {
  const names = new SensitiveNames(SENSITIVE_HEADERS);
  for (const name of ["sec-websocket-protocol", "x-auth-bin", "x-csrf"]) assert.ok(names.has(name), name);
});

test("names that a policy adds are redacted too", () => {
  assert.equal(redactTarget("/a?k=s3cret&b=1", new SensitiveParameters(["k"])), "/a?k=<redacted>&b=1");
});

test("in a text, users of URLs and parameters are redacted, fragments included", () => {
  assert.equal(
    redactUrls('cannot fetch "https://me:pw@a.test/jwks?token=s3cret&v=1#access_token=x": refused'),
    'cannot fetch "https://<redacted>@a.test/jwks?token=<redacted>&v=1#access_token=<redacted>": refused',
  );
  assert.equal(redactUrls("mail me@a.test, a=b"), "mail me@a.test, a=b");
});

test("secrets in lists and objects of JSON, and encoded user information of URLs in paths, are redacted", () => {
  for (const target of [
    "/a?data=%7B%22password%22%3A%7B%22v%22%3A%22s3cret%22%7D%7D",
    "/a?data=%5B%7B%22token%22%3A%5B%22s3cret%22%5D%7D%5D",
    "/fetch/https%3A%2F%2Fuser:s3cret%40a.test%2Fb",
    "/fetch/https%253A%252F%252Fuser%253As3cret%2540a.test",
    "/fetch/https://user:s3cret%40a.test/b",
  ])
    assert.doesNotMatch(redactTarget(target, SECRET_PARAMETERS), /s3cret/, target);
  for (const target of ["/a?data=%7B%22size%22%3A%7B%22w%22%3A1%7D%7D", "/fetch/https%3A%2F%2Fa.test%2Fb%20c"])
    assert.equal(redactTarget(target, SECRET_PARAMETERS), target);
});
