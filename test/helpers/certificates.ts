import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Identity {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** A reason to skip tests that need certificates, or false: Node reads certificates but cannot make them. */
export const noOpenssl: string | false = (() => {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return false;
  } catch {
    return "needs the openssl command";
  }
})();

/** A certificate authority of one test, with its files in a folder of their own. */
export class TestCa implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "tracegate-ca-"));
  readonly certFile = join(this.folder, "ca.pem");
  readonly #keyFile = join(this.folder, "ca.key");
  #issued = 0;

  constructor(name = "test CA") {
    const subject = ["-subj", `/CN=${name}`, "-days", "2"];
    openssl("req", "-x509", ...NEW_KEY, ...subject, "-keyout", this.#keyFile, "-out", this.certFile);
  }

  get cert(): string {
    return readFileSync(this.certFile, "utf8");
  }

  /** A certificate for these DNS names; the first is its common name too. */
  issue(...names: string[]): Identity {
    const base = join(this.folder, String(this.#issued++));
    const [certFile, keyFile, requestFile] = [`${base}.pem`, `${base}.key`, `${base}.csr`];
    openssl("req", ...NEW_KEY, "-subj", `/CN=${names[0]}`, "-keyout", keyFile, "-out", requestFile);
    writeFileSync(`${base}.ext`, `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}\n`);
    const signer = ["-CA", this.certFile, "-CAkey", this.#keyFile, "-CAcreateserial", "-days", "2"];
    openssl("x509", "-req", "-in", requestFile, ...signer, "-extfile", `${base}.ext`, "-out", certFile);
    return { cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8"), certFile, keyFile };
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

function openssl(...args: string[]): void {
  execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
}
