/** What processes that share a storage need to know of a certificate besides the certificate itself. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { isObject, jsonOf } from "../base/fields.ts";
import { readCertificate } from "../tls/certificate-list.ts";
import { certificateFile, stateFile } from "./layout.ts";
import { readIfThere, writePrivate } from "./private-files.ts";
import type { RenewalInfo } from "./renewal.ts";
import type { ManagedCertificate } from "./settings.ts";

/** Why the last attempt failed. */
export interface Failure {
  /** ISO 8601 */
  readonly at: string;
  readonly message: string;
  /** In a row. */
  readonly count: number;
  /** Milliseconds since 1970: the next attempt. */
  readonly retryAt: number;
}

/** Kept in a file, so that a restart neither forgets how long to wait nor asks the server again. */
export interface CertificateState {
  readonly failure?: Failure | undefined;
  readonly renewal?: RenewalInfo | undefined;
}

export async function readState({ name, settings }: ManagedCertificate): Promise<CertificateState> {
  const state = jsonOf((await readIfThere(stateFile(settings, name))) ?? "");
  if (!isObject(state)) return {};
  const { failure, renewal } = state;
  return {
    ...(isFailure(failure) && { failure }),
    ...(isRenewal(renewal) && { renewal }),
  };
}

export async function writeState({ name, settings }: ManagedCertificate, state: CertificateState): Promise<void> {
  await writePrivate(stateFile(settings, name), `${JSON.stringify(state)}\n`);
}

/** The stored certificate; undefined if it is missing or unreadable. */
export async function readStored({ name, settings }: ManagedCertificate): Promise<X509Certificate | undefined> {
  return readCertificate((await readIfThere(certificateFile(settings, name))) ?? "");
}

/** Key and chain of a certificate in one text; the key first, as it is shorter. */
export async function writeCertificate(
  { name, settings }: ManagedCertificate,
  { cert, key }: { readonly cert: string; readonly key: string },
): Promise<void> {
  const leaf = new X509Certificate(cert);
  if (!leaf.checkPrivateKey(createPrivateKey(key)))
    throw new Error("the server has issued a certificate for another key");
  if (leaf.checkHost(name.replace(/^\*\./, "any.")) === undefined)
    throw new Error(`the server has issued a certificate that is not for ${name}`);
  await writePrivate(certificateFile(settings, name), `${key.trim()}\n${cert.trim()}\n`);
}

function isFailure(value: unknown): value is Failure {
  return (
    isObject(value) &&
    typeof value.at === "string" &&
    typeof value.message === "string" &&
    typeof value.count === "number" &&
    typeof value.retryAt === "number"
  );
}

function isRenewal(value: unknown): value is RenewalInfo {
  if (!isObject(value) || !Array.isArray(value.window)) return false;
  return typeof value.id === "string" && typeof value.at === "number" && typeof value.askAgainAt === "number";
}
