import assert from "node:assert/strict";
import { test } from "node:test";
import { type RequestError, RequestReader } from "./request-head.ts";

const LIMITS = { maxHeaders: 10, maxTargetSize: 64, maxRequestBodySize: 1000 };
const GET = [":method", "GET", ":scheme", "http", ":path", "/p?q=1", ":authority", "A.example:81"];

interface Options {
  readonly endStream?: boolean;
  readonly limits?: Partial<Parameters<RequestReader["read"]>[3]>;
}

function read(fields: readonly string[], { endStream = true, limits = {} }: Options = {}) {
  const reader = new RequestReader();
  return { reader, result: reader.read(fields, endStream, "https", { ...LIMITS, ...limits }) };
}

function errorOf(fields: readonly string[], options?: Options): RequestError {
  const { result } = read(fields, options);
  assert.ok("code" in result, `accepted ${JSON.stringify(fields)}`);
  return result;
}

/** The same fields with one pseudo-header field changed, or without it. */
function withPseudo(name: string, value: string | undefined): string[] {
  const at = GET.indexOf(name);
  return value === undefined
    ? [...GET.slice(0, at), ...GET.slice(at + 2)]
    : [...GET.slice(0, at), name, value, ...GET.slice(at + 2)];
}

test("a request is the same message as one of HTTP/1.1", () => {
  const { result } = read([...GET, "accept", "*/*", "x-a", "1", "x-a", "2"]);
  assert.deepEqual(result, {
    method: "GET",
    // That of the connection.
    scheme: "https",
    authority: "A.example:81",
    path: "/p",
    search: "?q=1",
    version: "HTTP/2",
    headers: ["accept", "*/*", "x-a", "1", "x-a", "2"],
  });
});

test("invalid pseudo-header fields are malformed", () => {
  const cases: [readonly string[], RegExp][] = [
    [withPseudo(":method", undefined), /:method/],
    [withPseudo(":method", "G T"), /:method/],
    [withPseudo(":method", "X".repeat(33)), /:method/],
    [withPseudo(":scheme", undefined), /:scheme/],
    [withPseudo(":scheme", "ftp"), /:scheme/],
    [withPseudo(":path", undefined), /:path/],
    [withPseudo(":path", ""), /:path/],
    [withPseudo(":path", "p"), /:path/],
    [withPseudo(":path", "*"), /:path/],
    [withPseudo(":path", "http://a/p"), /:path/],
    [withPseudo(":authority", undefined), /neither :authority nor Host/],
    [withPseudo(":authority", ""), /neither :authority nor Host/],
    [withPseudo(":authority", "user:secret@a"), /user information/],
    [[...GET, ":status", "200"], /unknown/],
    [[...GET, ":extra", "1"], /unknown/],
    [["x-a", "1", ...GET], /after a header field/],
    [[...GET, "x-a", "1", ":path", "/q"], /after a header field/],
    [[...GET, ":protocol", "websocket"], /without CONNECT/],
    [[":method", "CONNECT", ":authority", "a:443", ":path", "/"], /CONNECT/],
    [[":method", "CONNECT", ":authority", "a:443", ":scheme", "http"], /CONNECT/],
    [[":method", "CONNECT", "host", "a:443"], /CONNECT/],
  ];
  for (const name of [":method", ":scheme", ":path", ":authority"]) {
    const value = GET[GET.indexOf(name) + 1] as string;
    cases.push([[...GET, name, value], /repeated/]);
  }
  for (const [fields, detail] of cases) {
    const error = errorOf(fields);
    assert.match(error.detail, detail);
    assert.equal(error.malformed, true, error.detail);
    assert.equal(error.code, "TG_INVALID_REQUEST");
  }
});

test("fields of the connection are malformed, and TE unless it is trailers", () => {
  for (const name of ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"])
    assert.equal(errorOf([...GET, name, "x"]).malformed, true);
  assert.equal(errorOf([...GET, "te", "trailers, deflate"]).malformed, true);
  const { result, reader } = read([...GET, "te", "trailers"]);
  assert.deepEqual("headers" in result && result.headers, []);
  assert.equal(reader.trailersAccepted, true);
});

test("Host stands in for :authority, and must not differ from it", () => {
  const accepted: [string, string][] = [
    ["A.example:81", "A.example:81"],
    ["a.EXAMPLE:81", "A.example:81"],
    ["a", "a:443"],
    ["a.", "a"],
  ];
  for (const [host, authority] of accepted) {
    const { result } = read([...withPseudo(":authority", authority), "host", host]);
    assert.ok("authority" in result, `${host} and ${authority}`);
    assert.deepEqual(result.headers, []);
  }
  const { result } = read([...withPseudo(":authority", undefined), "host", "b:82"]);
  assert.equal("authority" in result && result.authority, "b:82");
  for (const [host, authority] of [
    ["a", "b"],
    ["a", "a:80"],
    ["a:80", "a"],
    ["a/", "a"],
    ["", "a"],
  ] as const)
    assert.match(errorOf([...withPseudo(":authority", authority), "host", host]).detail, /differ/);
  assert.match(errorOf([...GET, "host", "a.example:81", "host", "a.example:81"]).detail, /more than one Host/);
});

test("targets are as strict as those of HTTP/1.1, and get a response", () => {
  const cases: [string, string, string][] = [
    [":path", "/a/../b", "TG_INVALID_REQUEST"],
    [":path", "/a/%2e%2e/b", "TG_INVALID_REQUEST"],
    [":path", "/%zz", "TG_INVALID_REQUEST"],
    [":path", "/a#b", "TG_INVALID_REQUEST"],
    [":path", "/a b", "TG_INVALID_REQUEST"],
    [":path", `/${"x".repeat(64)}`, "TG_URI_TOO_LONG"],
    [":authority", "a b", "TG_INVALID_REQUEST"],
    [":authority", "a:99999", "TG_INVALID_REQUEST"],
  ];
  for (const [name, value, code] of cases) {
    const error = errorOf(withPseudo(name, value));
    assert.equal(error.code, code);
    assert.equal(error.malformed, undefined, error.detail);
  }
});

test("OPTIONS * has no path", () => {
  const { result } = read([":method", "OPTIONS", ":scheme", "http", ":path", "*", ":authority", "a"]);
  assert.equal("path" in result && result.path, "*");
});

test("the length of the body is one number", () => {
  for (const value of ["", "-1", "1,1", "+1", "1 ", "0x1", "99999999999999999"])
    assert.equal(errorOf([...GET, "content-length", value], { endStream: false }).malformed, true, value);
  assert.equal(errorOf([...GET, "content-length", "1", "content-length", "1"], { endStream: false }).malformed, true);
  assert.match(errorOf([...GET, "content-length", "1"]).detail, /without a body/);
  const { result, reader } = read([...GET, "content-length", "007"], { endStream: false });
  assert.equal(reader.contentLength, 7);
  assert.deepEqual("headers" in result && result.headers, ["content-length", "7"]);
  assert.equal(errorOf([...GET, "content-length", "1001"], { endStream: false }).code, "TG_BODY_TOO_LARGE");
});

test("crumbs of a cookie become one field, where the first one stood, and count as one", () => {
  const crumbs = Array.from({ length: 20 }, (_, i) => ["cookie", `c${i}=1`]).flat();
  const { result } = read([...GET, "x-a", "1", ...crumbs, "x-b", "2"]);
  assert.deepEqual("headers" in result && result.headers.slice(0, 3), ["x-a", "1", "cookie"]);
  assert.equal("headers" in result && result.headers[3], Array.from({ length: 20 }, (_, i) => `c${i}=1`).join("; "));
  assert.deepEqual("headers" in result && result.headers.slice(4), ["x-b", "2"]);
});

test("more fields than the limit are 431", () => {
  const fields = Array.from({ length: 10 }, (_, i) => [`x-${i}`, ""]).flat();
  assert.ok("method" in read([...GET, ...fields]).result);
  assert.equal(errorOf([...GET, ...fields, "x-a", ""]).code, "TG_HEAD_TOO_LARGE");
});

test("an expectation other than 100-continue is 417", () => {
  const { result } = read([...GET, "expect", "100-Continue"], { endStream: false });
  assert.deepEqual("headers" in result && result.headers, ["expect", "100-Continue"]);
  assert.equal(errorOf([...GET, "expect", "200-ok"]).code, "TG_EXPECTATION_FAILED");
});

test("underscores are passed, dropped or rejected", () => {
  const fields = [...GET, "x_a", "1", "x-b", "2"];
  assert.equal(read(fields).reader.hasUnderscore, true);
  const { result, reader } = read(fields, { limits: { underscores: "drop" } });
  assert.deepEqual("headers" in result && result.headers, ["x-b", "2"]);
  assert.equal(reader.hasUnderscore, false);
  const error = errorOf(fields, { limits: { underscores: "reject" } });
  assert.equal(error.malformed, undefined);
});

test("forwarded fields are noticed, and the trace token is taken out", () => {
  for (const name of ["forwarded", "x-forwarded-for", "x-forwarded-client-cert", "x-forwarded-anything"])
    assert.equal(read([...GET, name, "x"]).reader.hasForwarded, true, name);
  const { result, reader } = read([...GET, "x-tracegate-trace-token", "t1", "x-tracegate-trace-token", "t2"]);
  assert.deepEqual("headers" in result && result.headers, []);
  assert.equal(reader.traceToken, "t1");
  assert.equal(reader.hasForwarded, false);
});

test("CONNECT names a host and a port", () => {
  const { result } = read([":method", "CONNECT", ":authority", "a:443", "x-a", "1"], { endStream: false });
  assert.deepEqual("method" in result && [result.method, result.authority, result.path], ["CONNECT", "a:443", ""]);
  assert.equal(errorOf([":method", "CONNECT", ":authority", "a"]).code, "TG_INVALID_REQUEST");
});

test("an extended CONNECT for websocket is a GET; other protocols are 501", () => {
  const connect = [":method", "CONNECT", ":scheme", "https", ":path", "/chat", ":authority", "a"];
  const { result, reader } = read([...connect, ":protocol", "websocket"], { endStream: false });
  assert.deepEqual("method" in result && [result.method, result.path], ["GET", "/chat"]);
  assert.equal(reader.protocol, "websocket");
  const withBody = errorOf([...connect, ":protocol", "websocket", "content-length", "1"], { endStream: false });
  assert.equal(withBody.malformed, true);
  assert.equal(errorOf([...connect, ":protocol", "connect-udp"]).code, "TG_UNKNOWN_PROTOCOL");
});

test("a request keeps nothing of the one before", () => {
  const reader = new RequestReader();
  const fields = ["te", "trailers", "expect", "100-continue", "content-length", "1", "x_a", "1", "forwarded", "for=a"];
  const more = ["x-tracegate-trace-token", "t", "priority", "u=1", "host", "a.example:81"];
  assert.ok("method" in reader.read([...GET, ...fields, ...more], false, "http", LIMITS));
  assert.ok("method" in reader.read(GET, true, "http", LIMITS));
  const { contentLength, trailersAccepted, hasForwarded, hasUnderscore } = reader;
  assert.deepEqual([contentLength, trailersAccepted, hasForwarded, hasUnderscore], [-1, false, false, false]);
  assert.deepEqual([reader.traceToken, reader.protocol, reader.priority], ["", "", ""]);
});
