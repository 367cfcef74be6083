/** The account at an ACME server (RFC 8555 7.3), which processes with the same storage share. */
import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { FlattenedSign } from "jose";
import { isObject, jsonOf } from "../base/fields.ts";
import { type AccountKey, AcmeError, type AcmeServer, accountKey } from "./acme-server.ts";
import { accountFile, accountLock } from "./layout.ts";
import type { LockFiles } from "./lock-files.ts";
import { readIfThere, writePrivate } from "./private-files.ts";
import type { AcmeSettings } from "./settings.ts";

export interface Account {
  readonly key: AccountKey;
  readonly url: string;
}

/** Another process creates the account; it is there in a moment. */
export class AccountInCreation extends Error {
  constructor() {
    super("another process creates the account");
  }
}

/** The account of the storage, or a new one. Rejects with an AcmeError or AccountInCreation. */
export async function openAccount(server: AcmeServer, settings: AcmeSettings, locks: LockFiles): Promise<Account> {
  const known = await readAccount(settings);
  if (known !== undefined) return known;
  const lock = await locks.take(accountLock(settings));
  if (lock === undefined) throw new AccountInCreation();
  try {
    return (await readAccount(settings)) ?? (await createAccount(server, settings));
  } finally {
    await lock.release();
  }
}

/** Forgets an account that the server no longer knows; the next order creates another. */
export async function forgetAccount(settings: AcmeSettings, { url }: Account): Promise<void> {
  const known = await readAccount(settings);
  if (known?.url === url) await writePrivate(accountFile(settings), "{}");
}

async function readAccount(settings: AcmeSettings): Promise<Account | undefined> {
  const stored = jsonOf((await readIfThere(accountFile(settings))) ?? "");
  if (!isObject(stored) || typeof stored.url !== "string" || typeof stored.key !== "string") return undefined;
  return { url: stored.url, key: await accountKey(createPrivateKey(stored.key)) };
}

async function createAccount(server: AcmeServer, settings: AcmeSettings): Promise<Account> {
  const { email, externalAccount } = settings;
  const { newAccount, meta } = await server.directory();
  if (meta?.externalAccountRequired === true && externalAccount === undefined)
    throw new AcmeError(
      "externalAccountRequired",
      403,
      "the server takes only accounts of its customers; set externalAccount to the key that it gives them",
    );
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = await accountKey(privateKey);
  const { location } = await server.post(newAccount, key, undefined, {
    termsOfServiceAgreed: true,
    ...(email !== undefined && { contact: [`mailto:${email}`] }),
    ...(externalAccount && { externalAccountBinding: await bind(externalAccount, key, newAccount) }),
  });
  if (location === undefined) throw new AcmeError("", 201, "the server has not said where the new account is");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" });
  await writePrivate(accountFile(settings), JSON.stringify({ url: location, key: pem }));
  return { key, url: location };
}

/** RFC 8555 7.3.4: the account's public key, signed with the key that the CA gave to its customer. */
async function bind(
  { keyId, hmacKey }: NonNullable<AcmeSettings["externalAccount"]>,
  { jwk }: AccountKey,
  url: string,
): Promise<unknown> {
  return new FlattenedSign(Buffer.from(JSON.stringify(jwk)))
    .setProtectedHeader({ alg: "HS256", kid: keyId, url })
    .sign(Buffer.from(hmacKey, "base64url"));
}
