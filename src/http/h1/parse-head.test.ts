import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ERRORS } from "../../base/errors.ts";
import { parseRequestHead, parseResponseHead, RequestHead, ResponseHead } from "./parse-head.ts";

const LIMITS = { maxHeaders: 5, maxTargetSize: 40 };
const HOST = "Host: a\r\n";

function request(text: string, preserveCase = false): RequestHead {
  const head = new RequestHead();
  assert.equal(parseRequestHead(text, LIMITS, head, preserveCase), undefined);
  return head;
}

/** A GET or POST with these lines between Host and the empty line. */
function withFields(...lines: string[]): string {
  return `POST / HTTP/1.1\r\n${HOST}${lines.map((line) => `${line}\r\n`).join("")}\r\n`;
}

function response(text: string): ResponseHead {
  const head = new ResponseHead();
  assert.equal(parseResponseHead(text, LIMITS, head, false), undefined);
  return head;
}

describe("request heads that are accepted", () => {
  test("request line, fields in order with lower-case names and trimmed values", () => {
    const head = request(
      "PATCH /a?b HTTP/1.1\r\nHOST: A.example:80\r\nUser-Agent:\t x \t\r\nX_New-Name: \r\nuser-AGENT: a\x80\tb\r\n\r\n",
    );
    assert.equal(head.method, "PATCH");
    assert.equal(head.target, "/a?b");
    assert.equal(head.minor, 1);
    assert.equal(head.host, "A.example:80");
    assert.deepEqual(head.headers, ["user-agent", "x", "x_new-name", "", "user-agent", "a\x80\tb"]);
    assert.equal(head.rawNames, null);
    assert.equal(head.contentLength, -1);
    assert.equal(head.chunked, false);
    assert.equal(head.keepAlive, true);
  });

  test("a method is any token of up to 32 characters, in its own case", () => {
    assert.equal(request(`get / HTTP/1.1\r\n${HOST}\r\n`).method, "get");
    assert.equal(request(`GETX / HTTP/1.1\r\n${HOST}\r\n`).method, "GETX");
    assert.equal(request(`${"M".repeat(32)} / HTTP/1.1\r\n${HOST}\r\n`).method, "M".repeat(32));
  });

  test("names that only begin like known ones stay themselves", () => {
    const head = request(withFields("hos: 1", "hostx: 2", "content-lengt: 3", "connectionn: close"));
    assert.deepEqual(head.headers, ["hos", "1", "hostx", "2", "content-lengt", "3", "connectionn", "close"]);
    assert.equal(head.keepAlive, true);
  });

  test("rawNames has the received name of each forwarded field", () => {
    const head = request(withFields("X-First: 1", "Connection: x-gone", "X-Gone: 2", "AcCePt: 3"), true);
    assert.deepEqual(head.headers, ["x-first", "1", "accept", "3"]);
    assert.deepEqual(head.rawNames, ["X-First", "AcCePt"]);
  });

  test("hop-by-hop fields are left out; Content-Length and Expect stay", () => {
    const head = new RequestHead();
    const lines = "te keep-alive proxy-connection proxy-authenticate trailer upgrade connection accept".split(" ");
    const fields = lines.map((name) => `${name}: x\r\n`).join("");
    const text = `GET / HTTP/1.1\r\n${HOST}${fields}Content-Length: 3\r\nExpect: 100-Continue\r\n\r\n`;
    assert.equal(parseRequestHead(text, { maxHeaders: 20, maxTargetSize: 9 }, head, false), undefined);
    assert.deepEqual(head.headers, ["accept", "x", "content-length", "3", "expect", "100-Continue"]);
    assert.equal(head.contentLength, 3);
    assert.equal(head.expectContinue, true);
  });

  test("the trace token is removed, in any case; the first of several counts", () => {
    const head = request(withFields("X-Tracegate-Trace-Token: one", "Accept: x", "x-tracegate-trace-token: two"), true);
    assert.deepEqual([head.headers, head.rawNames, head.traceToken], [["accept", "x"], ["Accept"], "one"]);
    assert.equal(parseRequestHead("GET / HTTP/1.0\r\n\r\n", LIMITS, head, false), undefined);
    assert.equal(head.traceToken, "");
  });

  test("one instance serves request after request, each with a new list", () => {
    const head = request(withFields("Connection: close", "Content-Length: 7", "TE: trailers", "Expect: 100-continue"));
    const first = head.headers;
    assert.equal(head.trailersAccepted, true);
    assert.equal(parseRequestHead("GET / HTTP/1.0\r\n\r\n", LIMITS, head, false), undefined);
    assert.deepEqual(first, ["content-length", "7", "expect", "100-continue"]);
    const expected = new RequestHead();
    Object.assign(expected, { method: "GET", target: "/", minor: 0, keepAlive: false });
    assert.deepEqual(head, expected);
  });

  const KEEP_ALIVE: readonly (readonly [string, string, boolean])[] = [
    ["1.1", "", true],
    ["1.1", "Connection: close\r\n", false],
    ["1.1", "Connection: x, Close \r\n", false],
    ["1.1", "Connection: keep-alive\r\nConnection: CLOSE\r\n", false],
    ["1.0", "", false],
    ["1.0", "Connection: Keep-Alive\r\n", true],
    ["1.0", "Connection: keep-alive, close\r\n", false],
  ];
  for (const [version, field, keepAlive] of KEEP_ALIVE) {
    test(`keepAlive is ${keepAlive} for HTTP/${version} with ${JSON.stringify(field)}`, () => {
      assert.equal(request(`GET / HTTP/${version}\r\n${HOST}${field}\r\n`).keepAlive, keepAlive);
    });
  }

  test("Upgrade counts when Connection names it, on HTTP/1.1, without a body", () => {
    const upgrade = ["Connection: keep-alive, Upgrade", "Upgrade: websocket"];
    assert.equal(request(withFields(...upgrade)).upgrade, "websocket");
    assert.equal(request(withFields(...upgrade, "Content-Length: 0")).upgrade, "websocket");
    assert.equal(request(withFields("Upgrade: websocket")).upgrade, "");
    assert.equal(request(withFields(...upgrade, "Content-Length: 1")).upgrade, "");
    assert.equal(request(withFields(...upgrade, "Transfer-Encoding: chunked")).upgrade, "");
    assert.equal(request(withFields(...upgrade).replace("1.1", "1.0")).upgrade, "");
  });

  test("an Upgrade to HTTP/2 is dropped: requests inside would bypass all routes and policies", () => {
    const upgradeOf = (value: string): string =>
      request(withFields("Connection: Upgrade, HTTP2-Settings", `Upgrade: ${value}`)).upgrade;
    for (const value of ["h2c", "H2C", "h2", "h2c/1", "HTTP/2.0", ", h2c", "\th2c\t"])
      assert.equal(upgradeOf(value), "", value);
    assert.equal(upgradeOf("websocket, h2c"), "websocket");
    assert.equal(upgradeOf("h2c,websocket,x"), "websocket, x");
    for (const value of ["websocket", "h2cx", "xh2"]) assert.equal(upgradeOf(value), value);
  });

  test("chunked in any case, and lengths up to 2^53 - 1, without leading zeros", () => {
    assert.equal(request(withFields("transfer-encoding: ChunkeD")).chunked, true);
    // OWS (RFC 9110 5.6.3) is not part of the value.
    for (const value of ["\tchunked", "chunked\t", " chunked ", "\t chunked \t"])
      assert.equal(request(withFields(`Transfer-Encoding:${value}`)).chunked, true, JSON.stringify(value));
    assert.equal(request(withFields("Content-Length: 9007199254740991")).contentLength, Number.MAX_SAFE_INTEGER);
    assert.deepEqual(request(withFields("Content-Length: 010")).headers, ["content-length", "10"]);
  });

  test("TE: trailers in a list; Expect is ignored for HTTP/1.0", () => {
    assert.equal(request(withFields("TE: gzip;q=1, Trailers")).trailersAccepted, true);
    assert.equal(request(withFields("TE: gzip")).trailersAccepted, false);
    assert.equal(request(withFields("Expect: 100-continue").replace("1.1", "1.0")).expectContinue, false);
  });
});

const REFUSED_REQUESTS: readonly (readonly [string, number, string])[] = [
  ["empty", 400, ""],
  ["empty line", 400, "\r\n\r\n"],
  ["method with a separator", 400, `G(T / HTTP/1.1\r\n${HOST}\r\n`],
  ["method of 33 characters", 400, `${"M".repeat(33)} / HTTP/1.1\r\n${HOST}\r\n`],
  ["no method", 400, ` / HTTP/1.1\r\n${HOST}\r\n`],
  ["two spaces before the target", 400, `GET  / HTTP/1.1\r\n${HOST}\r\n`],
  ["two spaces after the target", 400, `GET /  HTTP/1.1\r\n${HOST}\r\n`],
  ["tab in the request line", 400, `GET\t/ HTTP/1.1\r\n${HOST}\r\n`],
  ["space in the target", 400, `GET /a b HTTP/1.1\r\n${HOST}\r\n`],
  ["non-ASCII in the target", 400, `GET /\xe4 HTTP/1.1\r\n${HOST}\r\n`],
  ["NUL in the target", 400, `GET /\0 HTTP/1.1\r\n${HOST}\r\n`],
  ["target too long", 414, `GET /${"a".repeat(40)} HTTP/1.1\r\n${HOST}\r\n`],
  ["HTTP/0.9", 400, "GET /\r\n\r\n"],
  ["no version", 400, `GET / \r\n${HOST}\r\n`],
  ["version in lower case", 400, `GET / http/1.1\r\n${HOST}\r\n`],
  ["version without minor", 400, `GET / HTTP/1\r\n${HOST}\r\n`],
  ["version with two digits", 400, `GET / HTTP/1.10\r\n${HOST}\r\n`],
  ["space after the version", 400, `GET / HTTP/1.1 \r\n${HOST}\r\n`],
  ["LF alone after the version", 400, `GET / HTTP/1.1\n${HOST}\r\n`],
  ["CR alone after the version", 400, `GET / HTTP/1.1\r${HOST}\r\n`],
  ["HTTP/1.2", 505, `GET / HTTP/1.2\r\n${HOST}\r\n`],
  ["HTTP/3.0", 505, `GET / HTTP/3.0\r\n${HOST}\r\n`],
  ["HTTP/2 preface", 505, "PRI * HTTP/2.0\r\n\r\n"],
  ["two Hosts", 400, withFields("host: a")],
  ["space before a colon", 400, withFields("Accept : a")],
  ["tab before a colon", 400, withFields("Transfer-Encoding\t: chunked")],
  ["no colon", 400, withFields("Accept")],
  ["empty name", 400, withFields(": a")],
  ["folded line", 400, withFields("Accept: a", " b")],
  ["line folded with a tab", 400, withFields("Accept: a", "\tb")],
  ["separator in a name", 400, withFields("Acc(ept: a")],
  ["non-ASCII in a name", 400, withFields("Acc\xe4pt: a")],
  ["NUL in a name", 400, withFields("Accept\0: a")],
  ["NUL in a value", 400, withFields("Accept: a\0b")],
  ["vertical tab in a value", 400, withFields("Accept: \x0bchunked")],
  ["DEL in a value", 400, withFields("Accept: \x7f")],
  ["CR in a value", 400, withFields("Accept: a\rb")],
  ["CR before CRLF", 400, withFields("Accept: a\r")],
  ["LF in a value", 400, withFields("Accept: a\nb: c")],
  ["too many fields", 431, withFields("a: 1", "a: 2", "a: 3", "a: 4", "a: 5")],
  ["no empty line", 400, `GET / HTTP/1.1\r\n${HOST}`],
  ["bytes after the empty line", 400, `GET / HTTP/1.1\r\n${HOST}\r\n\r\n`],
  ["length and coding", 400, withFields("Content-Length: 5", "Transfer-Encoding: chunked")],
  ["coding and length", 400, withFields("Transfer-Encoding: chunked", "Content-Length: 5")],
  ["two lengths", 400, withFields("Content-Length: 5", "Content-Length: 5")],
  ["list of lengths", 400, withFields("Content-Length: 5, 5")],
  ["empty length", 400, withFields("Content-Length:")],
  ["length with sign", 400, withFields("Content-Length: +5")],
  ["negative length", 400, withFields("Content-Length: -5")],
  ["hexadecimal length", 400, withFields("Content-Length: 0x5")],
  ["length with a space", 400, withFields("Content-Length: 5 5")],
  ["length of 2^53", 400, withFields("Content-Length: 9007199254740992")],
  ["length of 30 digits", 400, withFields(`Content-Length: ${"9".repeat(30)}`)],
  ["two codings in two fields", 400, withFields("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")],
  ["chunked twice", 400, withFields("Transfer-Encoding: chunked, chunked")],
  ["chunked not last", 400, withFields("Transfer-Encoding: chunked, gzip")],
  ["empty coding", 400, withFields("Transfer-Encoding:")],
  ["empty element of codings", 400, withFields("Transfer-Encoding: chunked,")],
  ["quoted coding", 400, withFields('Transfer-Encoding: "chunked"')],
  ["chunked with a parameter", 400, withFields("Transfer-Encoding: chunked;a=b")],
  ["two words of coding", 400, withFields("Transfer-Encoding: x chunked")],
  ["vertical tab after chunked", 400, withFields("Transfer-Encoding: chunked\x0b")],
  ["unknown coding", 501, withFields("Transfer-Encoding: gzip")],
  ["unknown coding before chunked", 501, withFields("Transfer-Encoding: gzip, chunked")],
  ["something like chunked", 501, withFields("Transfer-Encoding: xchunked")],
  ["coding on HTTP/1.0", 400, withFields("Transfer-Encoding: chunked").replace("1.1", "1.0")],
  ["Connection takes the length", 400, withFields("Connection: content-length", "Content-Length: 5")],
  ["Connection takes the coding", 400, withFields("Connection: close, Transfer-Encoding")],
  ["Connection with 33 options", 400, withFields(`Connection: ${"a,".repeat(32)}`)],
  ["Connection takes Host", 400, withFields("Connection: host")],
  ["Connection with something else than tokens", 400, withFields('Connection: "close"')],
  ["unknown expectation", 417, withFields("Expect: 200-ok")],
  ["two expectations", 417, withFields("Expect: 100-continue", "Expect: x")],
];

describe("request heads that are rejected", () => {
  for (const [name, status, text] of REFUSED_REQUESTS) {
    test(`${status}: ${name}`, () => {
      const error = parseRequestHead(text, LIMITS, new RequestHead(), false);
      assert.ok(error !== undefined, "it was accepted");
      assert.equal(ERRORS[error.code].status, status, error.detail);
      assert.match(error.detail, /^[\x20-\x7e]+$/);
    });
  }

  test("every control byte is rejected anywhere in a head", () => {
    const text = withFields("Accept: a", "x-b: c");
    const accepted: string[] = [];
    for (let code = 0; code < 32; code++) {
      for (let at = 0; at < text.length; at++) {
        const damaged = text.slice(0, at) + String.fromCharCode(code) + text.slice(at);
        const inValue = code === 9 && /: ?[ac]?$/.test(text.slice(text.lastIndexOf("\n", at - 1) + 1, at));
        if (inValue) continue;
        if (parseRequestHead(damaged, LIMITS, new RequestHead(), false) === undefined) accepted.push(damaged);
      }
    }
    assert.deepEqual(accepted, []);
  });
});

test("every invalid byte of a value is rejected in every position, beside any others", () => {
  for (const neighbours of ["abcdefghi", "\x80\xff\x80\xff\x80\xff\x80\xff\x80", "  ~ ~ ~  "]) {
    for (let code = 0; code < 256; code++) {
      const allowed = code === 9 || (code >= 32 && code !== 127);
      for (let at = 1; at < neighbours.length; at++) {
        const value = `x${neighbours.slice(0, at)}${String.fromCharCode(code)}${neighbours.slice(at)}x`;
        const head = new RequestHead();
        const error = parseRequestHead(withFields(`a: ${value}`), LIMITS, head, false);
        assert.equal(error === undefined, allowed, JSON.stringify(value));
        if (allowed) assert.deepEqual(head.headers, ["a", value]);
      }
    }
  }
});

test("a head larger than any before it is read whole", () => {
  const value = "v".repeat(200_000);
  assert.deepEqual(request(withFields(`a: ${value}`, "b: c")).headers, ["a", value, "b", "c"]);
});

describe("response heads", () => {
  test("status and framing", () => {
    const head = response("HTTP/1.1 404 Not  F\xf6und\r\nContent-Length: 5\r\nHost: h\r\nTrailer: t\r\nTE: x\r\n\r\n");
    assert.equal(head.status, 404);
    assert.equal(head.contentLength, 5);
    assert.deepEqual(head.headers, ["content-length", "5", "host", "h", "trailer", "t"]);
    assert.equal(head.keepAlive, true);
  });

  test("the reason may be empty, with or without the space before it", () => {
    assert.equal(response("HTTP/1.1 200 \r\n\r\n").status, 200);
    assert.equal(response("HTTP/1.1 200\r\n\r\n").status, 200);
  });

  test("HTTP/1.0 closes; chunked; switching protocols", () => {
    assert.equal(response("HTTP/1.0 200 OK\r\n\r\n").keepAlive, false);
    assert.equal(response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").chunked, true);
    const switching = response("HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    assert.equal(switching.upgrade, "websocket");
    assert.deepEqual(switching.headers, []);
  });

  const REFUSED: readonly (readonly [string, string])[] = [
    ["length and coding", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"],
    ["the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"],
    ["two digits of status", "HTTP/1.1 20 OK\r\n\r\n"],
    ["four digits of status", "HTTP/1.1 2000 OK\r\n\r\n"],
    ["status below 100", "HTTP/1.1 099 OK\r\n\r\n"],
    ["no status", "HTTP/1.1\r\n\r\n"],
    ["other version", "HTTP/2.0 200 OK\r\n\r\n"],
    ["other protocol", "ICY 200 OK\r\n\r\n"],
    ["CR in the reason", "HTTP/1.1 200 O\rK\r\n\r\n"],
    ["LF alone", "HTTP/1.1 200 OK\n\r\n"],
    ["folded line", "HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n"],
    ["space before a colon", "HTTP/1.1 200 OK\r\na : b\r\n\r\n"],
    ["unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"],
    ["Connection takes the length", "HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 1\r\n\r\n"],
  ];
  for (const [name, text] of REFUSED) {
    test(`rejected: ${name}`, () => {
      assert.notEqual(parseResponseHead(text, LIMITS, new ResponseHead(), false), undefined);
    });
  }
});
