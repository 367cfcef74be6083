import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { certificatesProblem } from "./certificate-list.ts";
import { checkTlsServer } from "./tls-check.ts";

suite("a file of certificates", { skip: noOpenssl }, () => {
  const lists = (): { one: string; two: string } => {
    using ca = new TestCa();
    using other = new TestCa("other CA");
    return { one: ca.cert, two: other.cert };
  };

  test("may have text between them, line breaks of Windows, and a private key", () => {
    const { one, two } = lists();
    using ca = new TestCa();
    const windows = `# CAs\n${one}\nthe other:\n${two}`.replaceAll("\n", "\r\n");
    for (const pem of [one, one + two, one + two.trim(), windows, ca.key + one])
      assert.equal(certificatesProblem(pem), undefined);
  });

  test("is rejected with the number of the one that cannot be read", () => {
    const { one, two } = lists();
    const damaged = two.replace("MII", "M!!");
    const cases = [
      [one + two.slice(0, 200), /^certificate 2 of 2 .* incomplete or damaged/],
      [one + damaged + one, /^certificate 2 of 3 /],
      [one.trim() + two, /^the certificate in the file is incomplete or damaged/],
      [one.slice(0, 200), /^the certificate in the file is incomplete or damaged/],
      ["", /no certificate/],
    ] as const;
    for (const [pem, problem] of cases) assert.match(certificatesProblem(pem) ?? "", problem);
  });

  test("is checked as a listener's chain and as its CAs of clients", () => {
    using ca = new TestCa();
    const { cert, key } = ca.issue("a.example");
    const half = ca.cert.slice(0, 200);
    assert.deepEqual(checkTlsServer({ cert: cert + half, key })?.field, "cert");
    assert.deepEqual(checkTlsServer({ cert, key, clientCa: ca.cert + half })?.field, "clientCa");
    assert.equal(checkTlsServer({ cert: cert + ca.cert, key, clientCa: ca.cert + ca.cert }), undefined);
  });
});
