import { execFileSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import type { Bench, CertificateFiles } from "./types.ts";

/** Kinds of keys that servers have, as `openssl req -newkey` takes them. */
const KEYS = { "ECDSA P-256": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "RSA 2048": ["rsa:2048"] } as const;

export type KeyKind = keyof typeof KEYS;

/** A certificate for `bench.test`, signed with its own key, which all proxies of a row show. */
export function makeCertificate(bench: Bench, kind: KeyKind): CertificateFiles {
  const name = kind.replace(/\W/g, "-");
  const [cert, key] = [join(bench.folder, `${name}.pem`), join(bench.folder, `${name}.key`)];
  const subject = ["-subj", "/CN=bench.test", "-addext", "subjectAltName=DNS:bench.test", "-days", "2"];
  execFileSync(
    "openssl",
    ["req", "-x509", "-nodes", "-newkey", ...KEYS[kind], ...subject, "-keyout", key, "-out", cert],
    {
      stdio: "ignore",
    },
  );
  // nginx drops its rights.
  chmodSync(key, 0o644);
  return { cert, key };
}
