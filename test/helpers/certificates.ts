import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readIssuer } from "../../src/tls/x509/issuer.ts";
import { mintLeaf } from "../../src/tls/x509/leaf.ts";

export interface Identity {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export type KeyKind = "P-256" | "P-384" | "P-521" | "rsa:1024" | "rsa:2048" | "ed25519";

/** A reason to skip tests that need certificates, or false: Node reads certificates but cannot make them. */
export const noOpenssl: string | false = (() => {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return false;
  } catch {
    return "needs the openssl command";
  }
})();

/** A record of TLS that no key decrypts: 32 bytes of application data. */
export const DAMAGED_RECORD = Buffer.from(`1703030020${"00".repeat(32)}`, "hex");

/** A certificate authority of one test, with its files in a separate folder. */
export class TestCa implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "tracegate-ca-"));
  readonly certFile = join(this.folder, "ca.pem");
  readonly keyFile = join(this.folder, "ca.key");
  #issued = 0;

  constructor(name = "test CA", key: KeyKind = "P-256") {
    const subject = ["-subj", `/CN=${name}`, "-days", "2"];
    // In place of OpenSSL's defaults, which lack what strict verifiers expect.
    const extensions = [
      "basicConstraints=critical,CA:TRUE",
      "keyUsage=critical,keyCertSign,cRLSign",
      // Any bytes will do: no rule requires the usual hash of the key.
      `subjectKeyIdentifier=${Buffer.from(name).toString("hex")}`,
    ].flatMap((each) => ["-addext", each]);
    const files = ["-keyout", this.keyFile, "-out", this.certFile];
    openssl("req", "-x509", ...newKey(key), "-config", this.#emptyConfig(), ...subject, ...extensions, ...files);
  }

  get cert(): string {
    return readFileSync(this.certFile, "utf8");
  }

  get key(): string {
    return readFileSync(this.keyFile, "utf8");
  }

  /** A certificate for these DNS names and URIs; the first is its common name too. */
  issue(...names: string[]): Identity {
    const typed = names.map((name) => (name.includes(":") ? `URI:${name}` : `DNS:${name}`));
    return this.#sign(names[0] ?? "", `subjectAltName=${typed.join(",")}\n`);
  }

  /** The same with another type of key. */
  issueWith(key: KeyKind, ...names: string[]): Identity {
    return this.#sign(names[0] ?? "", `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}\n`, key);
  }

  /** The same, expired a day ago. */
  issueExpired(...names: string[]): Identity {
    return this.#sign(names[0] ?? "", `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}\n`, "P-256", -1);
  }

  /** The same, valid from tomorrow on. */
  issueEarly(name: string): Identity {
    const now = Date.now() + 30 * 60 * 60_000;
    const { cert, key } = mintLeaf(readIssuer(this.cert, this.key), name, now);
    const base = join(this.folder, String(this.#issued++));
    const [certFile, keyFile] = [`${base}.pem`, `${base}.key`];
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
    return { cert, key, certFile, keyFile };
  }

  /** The path of an OCSP response that says `good` or `revoked` about a certificate, valid for a day. */
  staple({ certFile }: Pick<Identity, "certFile">, state: "good" | "revoked" = "good"): string {
    const serial = execFileSync("openssl", ["x509", "-in", certFile, "-noout", "-serial"], { encoding: "utf8" });
    const [index, response] = [`${certFile}.${state}.index`, `${certFile}.${state}.ocsp`];
    const since = state === "revoked" ? "260101000000Z" : "";
    const number = serial.trim().replace("serial=", "");
    writeFileSync(index, `${state === "good" ? "V" : "R"}\t991231235959Z\t${since}\t${number}\tunknown\t/CN=any\n`);
    const signer = ["-CA", this.certFile, "-rsigner", this.certFile, "-rkey", this.keyFile, "-issuer", this.certFile];
    openssl("ocsp", "-index", index, ...signer, "-cert", certFile, "-ndays", "1", "-noverify", "-respout", response);
    return response;
  }

  /** A CA below this one, without an identifier of its key. */
  issueCa(name: string): Identity {
    return this.#sign(name, "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n");
  }

  /** A certificate that a CA of `issueCa` has issued. */
  issueBelow(issuer: Identity, name: string): Identity {
    return this.#sign(name, `subjectAltName=DNS:${name}\n`, "P-256", 2, issuer);
  }

  #sign(
    name: string,
    extensions: string,
    key: KeyKind = "P-256",
    days = 2,
    issuer: Pick<Identity, "certFile" | "keyFile"> = this,
  ): Identity {
    const base = join(this.folder, String(this.#issued++));
    const [certFile, keyFile, requestFile] = [`${base}.pem`, `${base}.key`, `${base}.csr`];
    openssl("req", ...newKey(key), "-subj", `/CN=${name}`, "-keyout", keyFile, "-out", requestFile);
    writeFileSync(`${base}.ext`, extensions);
    const signer = ["-CA", issuer.certFile, "-CAkey", issuer.keyFile, "-CAcreateserial", "-days", String(days)];
    openssl("x509", "-req", "-in", requestFile, ...signer, "-extfile", `${base}.ext`, "-out", certFile);
    return { cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8"), certFile, keyFile };
  }

  /** The system's would add extensions. */
  #emptyConfig(): string {
    const file = join(this.folder, "openssl.cnf");
    writeFileSync(file, "[req]\ndistinguished_name=name\n[name]\n");
    return file;
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What `openssl req` needs for a new key of this kind. */
function newKey(kind: KeyKind): string[] {
  const named = kind.startsWith("P-");
  return ["-nodes", "-newkey", named ? "ec" : kind, ...(named ? ["-pkeyopt", `ec_paramgen_curve:${kind}`] : [])];
}

function openssl(...args: string[]): void {
  execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
}
