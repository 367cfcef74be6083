import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../base/errors.ts";
import { STANDARD_ENVIRONMENT } from "../../../cel/index.ts";
import type { HttpRequest } from "../../../http/message/message.ts";
import { CredentialPlaces } from "../../contract/credential-names.ts";
import type { CredentialLocation } from "../../schema/location.ts";
import { contextOf } from "../../testing/context.ts";
import { credentialFinder } from "./find.ts";

/** The credential, then the request without it. */
function taken(location: CredentialLocation, request: Partial<HttpRequest>): [string | undefined, string, string[]] {
  const context = contextOf({ search: "", ...request });
  const finder = credentialFinder(location, new CredentialPlaces(), STANDARD_ENVIRONMENT);
  const found = finder.find(context);
  finder.remove(context);
  return [found, context.request.search, context.request.headers];
}

test("header: the prefix in any case; every field of the name is removed", () => {
  const location = { header: { name: "authorization", prefix: "Bearer " } };
  const headers = ["a", "1", "authorization", "Basic x", "b", "2", "authorization", "BEARER  token "];
  assert.deepEqual(taken(location, { headers }), ["token", "", ["a", "1", "b", "2"]]);
  assert.equal(taken(location, { headers: ["authorization", "Bearertoken"] })[0], undefined);
  assert.equal(taken({ header: { name: "x-key", prefix: "" } }, { headers: ["x-key", "k"] })[0], "k");
});

test("a request that passes without its credential keeps nothing that a backend could take for it", () => {
  const left = (location: CredentialLocation, request: Partial<HttpRequest>): [string, string[]] => {
    const context = contextOf({ search: "", ...request });
    credentialFinder(location, new CredentialPlaces(), STANDARD_ENVIRONMENT).discard(context);
    return [context.request.search, context.request.headers];
  };
  const headers = ["authorization", "Basic x", "authorization", "BEARER\ttoken", "cookie", "a=1; s=2"];
  const bearer = { header: { name: "authorization", prefix: "Bearer " } };
  assert.deepEqual(left(bearer, { headers: [...headers] })[1], ["authorization", "Basic x", "cookie", "a=1; s=2"]);
  assert.deepEqual(left({ cookie: { name: "s" } }, { headers: [...headers] })[1], [
    ...headers.slice(0, 4),
    ...["cookie", "a=1"],
  ]);
  assert.deepEqual(left({ queryParameter: { name: "key" } }, { search: "?key=a&b=c" })[0], "?b=c");
});

test("query: the last of its name, decoded; the rest stays unchanged", () => {
  const location = { queryParameter: { name: "api key" } };
  const table = [
    ["?api%20key=a%2Bb+c", "a+b c", ""],
    ["?x=%7e&api+key=first&api%20key=last&y", "last", "?x=%7e&y"],
    ["?x=%zz&api key", "", "?x=%zz"],
    ["?x=1", undefined, "?x=1"],
    ["", undefined, ""],
  ] as const;
  for (const [search, credential, rest] of table) assert.deepEqual(taken(location, { search }), [credential, rest, []]);
});

test("cookie: removed from all Cookie fields; a field without another cookie is removed", () => {
  const location = { cookie: { name: "s" } };
  const headers = ["cookie", "a=1; s=x=y; ss=2", "cookie", 's="z"', "b", "2"];
  assert.deepEqual(taken(location, { headers }), ["x=y", "", ["cookie", "a=1; ss=2", "b", "2"]]);
  assert.equal(taken(location, { headers: ["cookie", 's="z"'] })[0], "z");
  assert.equal(taken(location, { headers: ["cookie", "xs=1"] })[0], undefined);
});

test("expression: its text; a value that is absent or not text is no credential, any other failure rejects the request", () => {
  const headers = ["x-key", "token k"];
  assert.deepEqual(taken({ expression: 'request.headers["x-key"].split(" ")[1]' }, { headers }), ["k", "", headers]);
  assert.equal(taken({ expression: 'request.headers["x-none"]' }, { headers })[0], undefined);
  assert.equal(taken({ expression: "1" }, { headers })[0], undefined);
  const failing = { expression: 'string(int(request.headers["x-key"]))' };
  assert.throws(
    () => taken(failing, { headers }),
    (error) => error instanceof GatewayError && error.code === "TG_INVALID_REQUEST",
  );
});
