/**
 * Where things are in the `storage` folder of ACME. Each file is written under another name and renamed, so readers see all of it or
 * nothing; and each can be deleted, which costs an order at most.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { AcmeSettings } from "./settings.ts";

type Storage = Pick<AcmeSettings, "storage">;
type Issuer = Pick<AcmeSettings, "storage" | "directory">;

/** Key and certificate chain of a name, PEM in one file: a reader never gets one without the other. */
export function certificateFile(issuer: Issuer, name: string): string {
  return join(issuerFolder(issuer), `${fileNameOf(name)}.pem`);
}

/** When the certificate is due and what went wrong last; see `CertificateState`. */
export function stateFile(issuer: Issuer, name: string): string {
  return join(issuerFolder(issuer), `${fileNameOf(name)}.json`);
}

/** Held by the process that orders the certificate. */
export function lockFile(issuer: Issuer, name: string): string {
  return join(issuerFolder(issuer), `${fileNameOf(name)}.lock`);
}

/** Key and URL of an account. Another email or binding is another account. */
export function accountFile(settings: AcmeSettings): string {
  const { email = "", externalAccount } = settings;
  const identity = digest(`${email}\n${externalAccount?.keyId ?? ""}`);
  return join(issuerFolder(settings), `account-${identity}.json`);
}

/** Held by the process that creates an account. */
export function accountLock(settings: AcmeSettings): string {
  return `${accountFile(settings)}.lock`;
}

/** The key authorizations (RFC 8555 8.1) of pending challenges, which every process that shares the storage can answer. */
export function challengeFolder({ storage }: Storage): string {
  return join(storage, "challenges");
}

/** File of a token of http-01. Undefined for text that is no token (RFC 8555 8.3): base64url, which has no separators of paths. */
export function httpChallenge(token: string): string | undefined {
  return /^[\w-]{16,256}$/.test(token) ? token : undefined;
}

/** File of a name that is validated by tls-alpn-01; the dot keeps it apart from tokens. */
export function tlsChallenge(name: string): string | undefined {
  return /^[\w.-]{1,253}$/.test(name) ? `${name}.tls-alpn` : undefined;
}

/** The last folder: thousands of names mostly have the same, and making it takes 10 µs. */
let last: (Issuer & { readonly folder: string }) | undefined;

/** A folder for each directory, so a change of the directory orders new certificates and keeps the former. */
function issuerFolder({ storage, directory }: Issuer): string {
  if (last?.storage !== storage || last.directory !== directory) {
    const host = (URL.parse(directory)?.hostname ?? "").replace(/[^\w.-]/g, "_");
    last = { storage, directory, folder: join(storage, `${host}-${digest(directory)}`) };
  }
  return last.folder;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

function fileNameOf(name: string): string {
  return name.replace(/^\*\./, "_wildcard.");
}
