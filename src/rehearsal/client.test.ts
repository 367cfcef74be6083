import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { opened } from "../../test/helpers/opened.ts";
import { irOf } from "../../test/helpers/supervisor.ts";
import { requestOf } from "./curl.ts";
import { BadFacts, factsOfRequest } from "./facts.ts";
import type { Outcome } from "./outcome.ts";
import { Rehearsal } from "./rehearsal.ts";

const SETTINGS = { sensitiveHeaders: [], perRequest: 1_000_000, sessionKey: new Uint8Array(32) };
const skip = { skip: noOpenssl };
const ca = noOpenssl === false ? new TestCa() : undefined;
after(() => ca?.[Symbol.dispose]());

const SEEN = { "x-version": "request.version", "x-scheme": "request.scheme", "x-client": "string(source.subjectCn)" };

/** The only outcome of a request as for curl. `tls`: settings of the listener besides its certificate. */
async function rehearse(words: readonly string[], tls: object = {}): Promise<Outcome> {
  const { certFile: cert = "", keyFile: key = "" } = ca?.issue("shop.test", "*.shop.test") ?? {};
  const routes = [
    { policies: { transformations: { request: { set: SEEN } } }, backends: [{ host: "backend.test:80" }] },
  ];
  const secure = { protocol: "HTTPS", hostname: "*.test", tls: { cert, key, ...tls }, routes };
  const binds = [
    { port: 80, listeners: [{ routes }] },
    ...(ca === undefined ? [] : [{ port: 443, listeners: [secure, { ...secure, name: "any", hostname: "" }] }]),
  ];
  const rehearsal = new Rehearsal(irOf({ binds }), SETTINGS);
  try {
    const facts = factsOfRequest(requestOf(words));
    const [outcome, ...others] = (await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url), {})).outcomes;
    assert.ok(outcome !== undefined && others.length === 0);
    return outcome;
  } finally {
    rehearsal.close();
  }
}

/** What expressions see of version, scheme and client. */
function seen({ sent }: Outcome): string[] {
  const { headers = [] } = sent[0] ?? {};
  return Object.keys(SEEN).map((name) =>
    headers.includes(name) ? (headers[headers.indexOf(name) + 1] ?? "") : "none",
  );
}

test("the version of HTTP is what curl would speak", skip, async () => {
  const cases: readonly [words: readonly string[], version: string, scheme: string][] = [
    [["http://shop.test/"], "HTTP/1.1", "http"],
    [["--http2", "http://shop.test/"], "HTTP/1.1", "http"],
    [["--http2-prior-knowledge", "http://shop.test/"], "HTTP/2", "http"],
    [["https://shop.test/"], "HTTP/2", "https"],
    [["--http2", "https://shop.test/"], "HTTP/2", "https"],
    [["--http1.1", "https://shop.test/"], "HTTP/1.1", "https"],
  ];
  for (const [words, version, scheme] of cases) {
    const outcome = await rehearse([...words, "-d", "a=b", "-H", "x-a: 1", "-H", "Connection: close"]);
    assert.deepEqual(seen(outcome).slice(0, 2), [version, scheme], words.join(" "));
    const { sent, received, record } = outcome;
    assert.deepEqual([record?.status, record?.version, record?.bytesReceived], [200, version, 3]);
    assert.ok(received.headers.includes("date") && !received.headers.includes(":status"));
    assert.equal(sent[0]?.headers.includes("x-a"), true);
  }
});

test("a listener that asks for certificates: refused without one, and what a certificate says", skip, async () => {
  const { certFile, keyFile } = ca?.issue("client.test") ?? { certFile: "", keyFile: "" };
  const withOne = ["--cert", certFile, "--key", keyFile];
  for (const version of ["--http1.1", "--http2"]) {
    const words = [version, "https://shop.test/"];
    const refused = await rehearse(words, { root: ca?.certFile });
    assert.equal(refused.record?.error, "TLS handshake failed: peer did not return a certificate");
    assert.deepEqual(refused.received.headers, []);
    const optional = await rehearse(words, { root: ca?.certFile, clientCertificates: "optional" });
    assert.equal(seen(optional)[2], "none");
    assert.equal(seen(await rehearse([...words, ...withOne], { root: ca?.certFile }))[2], "client.test");
    // The listener asks for none.
    assert.equal(seen(await rehearse([...words, ...withOne]))[2], "none");
  }
});

test("an address is no server name", skip, async () => {
  assert.equal((await rehearse(["https://192.0.2.1/"])).record?.listener, "any");
  assert.equal((await rehearse(["https://[2001:db8::1]/"])).record?.listener, "any");
  assert.equal((await rehearse(["https://a.test/"])).record?.listener, "listener0");
});

test("a body in chunks, in each version", async () => {
  for (const version of ["--http1.1", "--http2-prior-knowledge"]) {
    const { record, sent } = await rehearse([version, "http://a/", "-d", "a=b", "-H", "Transfer-Encoding: chunked"]);
    assert.deepEqual([record?.status, record?.bytesReceived], [200, 3]);
    assert.ok(!sent[0]?.headers.includes("Content-Length"));
  }
});

test("handshakes take no socket", skip, async () => {
  assert.deepEqual(await opened(() => rehearse(["https://shop.test/"])), []);
});

test("mistakes about the client say what to write", async () => {
  const mistakes: readonly [words: readonly string[], message: RegExp][] = [
    [["http://a/", "--cert", import.meta.filename], /^a client without TLS has no certificate$/],
    [["https://a/", "--cert", "/nowhere/client.pem"], /^cannot read \/nowhere\/client\.pem: it does not exist$/],
    [["https://a/", "--cert", import.meta.filename], /^the client's certificate has no private key$/],
    [["--http2-prior-knowledge", "http://a/", "-H", "te: gzip"], /^the client cannot send this: /],
  ];
  for (const [words, message] of mistakes) {
    if (ca === undefined && words[0] === "https://a/") continue;
    await assert.rejects(rehearse(words), (error) => error instanceof BadFacts && message.test(error.message));
  }
});
