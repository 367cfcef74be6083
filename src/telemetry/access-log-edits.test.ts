import assert from "node:assert/strict";
import { test } from "node:test";
import { type RedactedTarget, SECRET_PARAMETERS } from "../base/redaction.ts";
import { type Activation, type SourceParts, STANDARD_ENVIRONMENT } from "../cel/index.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import { RequestSecrets } from "../trace/secrets.ts";
import { mostBytes, writeAccessLine } from "./access-line.ts";
import { AccessLogEdits } from "./access-log-edits.ts";
import { ShownVariables } from "./shown-variables.ts";

const RECORD = {
  time: 0,
  method: "GET",
  path: "/a b" as RedactedTarget,
  protocol: "http",
  bytesReceived: 3,
  bytesSent: 4,
  durationMs: 3,
  error: "gone",
};
const VARIABLES = {
  request: {
    method: "GET",
    scheme: "http",
    authority: "a",
    path: "/a b",
    search: "",
    version: "HTTP/1.1",
    headers: ["x-user", "zoe smith"],
  },
  response: { status: 404, headers: [] },
};

/** Reads from private fields, as the sources of connections do. */
class TunnelledSource implements SourceParts {
  readonly #address = "192.0.2.1";
  readonly port = 1;
  readonly rawPort = 1;
  readonly connectHeaders = { authority: "a", headers: ["proxy-authorization", "Basic marker-proxy"] };
  get address(): string {
    return this.#address;
  }
  get rawAddress(): string {
    return this.#address;
  }
}

function shown(variables: Activation): ShownVariables {
  return new ShownVariables(variables, new RequestSecrets(false, sensitiveHeaders([]), SECRET_PARAMETERS));
}
const SHOWN = shown(VARIABLES);

test("without fields to change the line is the usual one", () => {
  const edits = new AccessLogEdits({ filter: "true" }, STANDARD_ENVIRONMENT);
  assert.equal(edits.changesFields, false);
  for (const format of ["text", "json"] as const) {
    const bytes = Buffer.alloc(mostBytes(RECORD));
    const usual = bytes.toString("utf8", 0, writeAccessLine(RECORD, format, bytes, 0));
    assert.equal(edits.format(RECORD, format, SHOWN), usual);
  }
});

test("fields are added, replaced and removed; one that fails is left out", () => {
  const edits = new AccessLogEdits(
    {
      add: {
        user: 'request.headers["x-user"]',
        code: "response.code",
        duration: '"long"',
        none: "request.headers.none",
      },
      remove: ["http.method"],
    },
    STANDARD_ENVIRONMENT,
  );
  const kept = new AccessLogEdits({ remove: ["error"] }, STANDARD_ENVIRONMENT).format(RECORD, "text", SHOWN);
  assert.match(kept, / protocol=http bytes\.received=3 bytes\.sent=4 duration=\d+ms\n$/);
  const text =
    '\tinfo\trequest http.path="/a b" protocol=http error="gone" bytes.received=3 bytes.sent=4 duration=long user="zoe smith" code=404\n';
  assert.equal(edits.format(RECORD, "text", SHOWN).slice("1970-01-01T00:00:00.000Z".length), text);
  const json = JSON.parse(edits.format(RECORD, "json", SHOWN)) as Record<string, unknown>;
  assert.deepEqual([json.user, json.code, json.duration, "http.method" in json], ["zoe smith", 404, "long", false]);
});

test("a flattened map becomes a field for each of its keys", () => {
  const edits = new AccessLogEdits({ add: { sent: "flatten(request.headers)" } }, STANDARD_ENVIRONMENT);
  assert.deepEqual(edits.edit({}, SHOWN), { "sent.x-user": "zoe smith", "sent.host": "a" });
});

test("a filter decides; it is not met without a value that it reads, and logs the request if it fails", () => {
  const filters = {
    "response.code >= 400": true,
    "response.code >= 500": false,
    'request.headers.none == ""': false,
    'int(request.headers["x-user"]) == 3': true,
  };
  for (const [filter, wanted] of Object.entries(filters))
    assert.equal(new AccessLogEdits({ filter }, STANDARD_ENVIRONMENT).wants(VARIABLES), wanted, filter);
});

test("what clients send cannot drive a terminal from a line with changed fields", () => {
  const edits = new AccessLogEdits({ remove: ["http.method"] }, STANDARD_ENVIRONMENT);
  for (const format of ["text", "json"] as const) {
    const line = edits.format({ ...RECORD, path: "a\u009b2Jb\u2028\n" as RedactedTarget }, format, SHOWN);
    assert.match(line, /a\\u009b2Jb\\u2028\\n/);
    assert.doesNotMatch(line.slice(0, -1).replaceAll("\t", ""), /[\p{Cc}\u2028]/u);
  }
});

test("however an expression reads a secret of the request, the field has none", () => {
  const variables: Activation = {
    request: {
      ...VARIABLES.request,
      path: "/cart;jsessionid=marker-path",
      search: "?page=2&Access%5FToken=marker-query&next=https%3A%2F%2Fa.test%2F%3Fcode%3Dmarker-nested",
      headers: [
        "authorization",
        "Bearer marker-header",
        "cookie",
        "sid=marker-cookie",
        "referer",
        "https://me:marker-user@a.test/?password=marker-referer",
        "x-name",
        "authorization",
        "x-copied",
        "was marker-header",
      ],
    },
    response: { status: 200, headers: ["set-cookie", "sid=marker-set", "location", "/cb?code=marker-location"] },
    source: new TunnelledSource(),
    jwt: { sub: "zoe", refreshToken: "marker-claim" },
    metadata: { copied: "was marker-header", plan: "gold", deep: [{ password: "marker-metadata" }] },
  };
  const add = {
    plain: 'request.headers["authorization"]',
    dynamic: 'request.headers[request.headers["x-name"]]',
    scheme: 'request.headers["authorization"].split(" ")[1]',
    raw: 'request.headers.raw()["authorization"]',
    all: "request.headers",
    encoded: 'base64.encode(bytes(request.headers["authorization"]))',
    cookie: 'request.headers.cookie("sid")',
    referer: "request.headers.referer",
    copied: 'request.headers["x-copied"]',
    path: "request.path",
    uri: "request.uri",
    query: "request.uri.query()",
    parameter: 'request.pathAndQuery.query()["Access_Token"]',
    answer: "response.headers",
    tunnel: 'source.connectHeaders["proxy-authorization"]',
    address: "source.address",
    claim: "jwt.refreshToken",
    claims: "jwt",
    metadata: "metadata",
    together: '"<" + metadata.copied + ">"',
    variables: "variables()",
  };
  const edits = new AccessLogEdits({ add }, STANDARD_ENVIRONMENT);
  const fields = edits.edit({}, shown(variables));
  const text = JSON.stringify(fields);
  assert.doesNotMatch(text, /marker/);
  assert.doesNotMatch(text, new RegExp(Buffer.from("marker-head").toString("base64").slice(0, 10)));
  assert.equal(fields.plain, "<redacted>");
  assert.equal(fields.address, "192.0.2.1");
  assert.equal(fields.referer, "https://<redacted>@a.test/?password=<redacted>");
  assert.deepEqual(fields.claims, { sub: "zoe", refreshToken: "<redacted>" });
  assert.equal((fields.query as Record<string, unknown>).page, "2");
});
