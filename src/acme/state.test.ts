import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { certificateFile } from "./layout.ts";
import { readStored, writeCertificate } from "./state.ts";

test("only a certificate for the name and of the key is stored", { skip: noOpenssl }, async (t) => {
  const storage = mkdtempSync(join(tmpdir(), "tracegate-acme-"));
  t.after(() => rmSync(storage, { recursive: true }));
  using ca = new TestCa();
  const settings = { directory: "https://acme.example/", storage, challenge: "http-01" } as const;
  const [one, other] = [ca.issue("one.example"), ca.issue("other.example")];
  const wanted = { name: "one.example", settings };
  await assert.rejects(writeCertificate(wanted, { cert: one.cert, key: other.key }), /for another key/);
  await assert.rejects(writeCertificate(wanted, other), /that is not for one\.example/);
  // Issued for a host below the wildcard instead of the wildcard.
  const wildcard = { name: "*.one.example", settings };
  await assert.rejects(writeCertificate(wildcard, ca.issue("www.one.example")), /that is not for \*\.one\.example/);
  for (const { name } of [wanted, wildcard]) assert.equal(existsSync(certificateFile(settings, name)), false);

  await writeCertificate(wanted, one);
  await writeCertificate(wildcard, ca.issue("*.one.example"));
  assert.equal((await readStored(wanted))?.checkHost("one.example"), "one.example");
  assert.ok(await readStored(wildcard));
});
