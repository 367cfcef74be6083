import { accessSync, constants } from "node:fs";
import { dirname } from "node:path";
import { certificateFile } from "../../acme/layout.ts";
import type { AcmeSettings, DnsHook, ManagedCertificate } from "../../acme/settings.ts";
import { codeOf } from "../../base/errors.ts";
import type { Path } from "../../base/paths.ts";
import type { Bind } from "../../ir/ir.ts";
import { readCertificate } from "../../tls/certificate-list.ts";
import { checkTlsServer, type TlsProblem } from "../../tls/tls-check.ts";
import type { CertificateAndKey, PendingCertificate, TlsServer } from "../../tls/tls-settings.ts";
import { makeSelfSigned } from "../../tls/x509/self-signed.ts";
import { lint } from "../../translation/problems/lint.ts";
import type { Report } from "../../translation/problems/problem.ts";
import type { AcmeInput } from "../schema/listeners.ts";
import type { Context } from "./context.ts";

/** The certificate of a listener that the gateway orders. */
export interface AcmeCertificate {
  readonly managed: ManagedCertificate;
  /** What the storage has; undefined: nothing that could be used. */
  readonly pair: CertificateAndKey | undefined;
  /** What is served without it. */
  readonly pending: PendingCertificate;
}

/** `tls.acme` at `path`. Undefined if it has been reported that there can be no certificate for the hostname. */
export function translateAcme(
  input: AcmeInput,
  hostname: string,
  path: Path,
  context: Context,
): AcmeCertificate | undefined {
  const name = hostname.toLowerCase();
  const problem = nameProblem(name, input);
  if (problem !== undefined) {
    context.report(path, { message: problem });
    return undefined;
  }
  const settings = translateSettings(input, path, context);
  const stored = context.sources.readIfPresent(certificateFile(settings, name));
  return {
    managed: { name, settings },
    pair: stored === undefined ? undefined : usablePair(stored),
    pending: { name, until: input.untilIssued },
  };
}

function translateSettings(input: AcmeInput, path: Path, context: Context): AcmeSettings {
  const { sources } = context;
  const { email, directory, challenge, storage, root, externalAccount, dns } = input;
  const hmacKey = externalAccount && sources.readText([...path, "externalAccount", "hmacKey"], externalAccount.hmacKey);
  const roots = root === undefined ? undefined : sources.readFile([...path, "root"], root);
  return {
    directory,
    challenge,
    storage: sources.folder([...path, "storage"], storage),
    ...(email !== undefined && { email }),
    ...(roots !== undefined && { root: roots }),
    ...(externalAccount && { externalAccount: { keyId: externalAccount.keyId, hmacKey: hmacKey?.trim() ?? "" } }),
    ...(dns && { dns: { hook: translateHook(dns, [...path, "dns"], context), propagation: dns.propagation } }),
  };
}

function translateHook(input: NonNullable<AcmeInput["dns"]>, path: Path, { sources, report }: Context): DnsHook {
  const { command, url, authorization, root } = input;
  for (const [field, value] of Object.entries({ authorization, root }))
    if (command !== undefined && value !== undefined)
      report([...path, field], { message: "is for url; a command gets what it needs from its environment" });
  if (command !== undefined) return { command };
  const secret = authorization && sources.readText([...path, "authorization"], authorization);
  const roots = root === undefined ? undefined : sources.readFile([...path, "root"], root);
  return {
    url: url ?? "",
    ...(secret !== undefined && { authorization: secret.trim() }),
    ...(roots !== undefined && { root: roots }),
  };
}

/** About the certificates that listeners order: once for each account, at the first listener that has it. */
export function adviseOnAcme(binds: readonly Bind[], report: Report): void {
  const known = new Set<string>();
  const plaintext = binds.filter(({ protocol }) => protocol === "http").map(({ port }) => port);
  for (const { port, listeners } of binds)
    for (const { acme, origin } of listeners) {
      if (acme === undefined) continue;
      const { challenge, email, directory, storage } = acme.settings;
      const ports = challenge === "http-01" ? plaintext : [port];
      const account = JSON.stringify([challenge, email, directory, storage, ports]);
      if (known.has(account)) continue;
      known.add(account);
      const path = [...(origin?.path ?? []), "tls", "acme"];
      const needed = challenge === "http-01" ? 80 : 443;
      if (challenge !== "dns-01" && !ports.includes(needed))
        lint(report, [...path, "challenge"], "acme-port", challenge, needed, ports[0]);
      if (email === undefined) lint(report, path, "acme-without-email");
      if (/\bstaging\b/.test(directory)) lint(report, [...path, "directory"], "acme-staging");
      if (!isWritable(storage)) lint(report, [...path, "storage"], "acme-storage", storage);
    }
}

/** Whether files can be written to a folder, which may have to be created. */
function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch (error) {
    const above = dirname(folder);
    return codeOf(error) === "ENOENT" && above !== folder && isWritable(above);
  }
}

/** Why no server would issue a certificate for this hostname. */
function nameProblem(name: string, { challenge }: AcmeInput): string | undefined {
  if (name === "" || name === "*")
    return "needs the name that the certificate is for; set the listener's hostname, such as shop.example.com, and use a listener for each name";
  if (name.startsWith("*.") && challenge !== "dns-01")
    return `a certificate for ${name} can only be validated by DNS; set challenge: dns-01 and dns, or use a listener for each name`;
  if (name.startsWith("[") || /^[\d.]+$/.test(name) || name.includes("_"))
    return `${name} is not a DNS name, so no certificate can be issued for it; set the listener's hostname to one`;
  return undefined;
}

/**
 * Key and chain of one file, which `writeCertificate` has checked against each other. A file that cannot be used counts as missing: it is
 * ordered again. With a thousand names, trying each pair as those of users are tried would add a second to each load.
 */
function usablePair(stored: string): CertificateAndKey | undefined {
  const at = stored.indexOf("-----BEGIN CERTIFICATE-----");
  if (!stored.slice(0, Math.max(at, 0)).includes("-----END PRIVATE KEY-----")) return undefined;
  const pair = { key: stored.slice(0, at), cert: stored.slice(at) };
  const expires = readCertificate(pair.cert)?.validToDate.getTime();
  // Clients reject an expired one as they do a self-signed one.
  return expires !== undefined && expires > Date.now() ? pair : undefined;
}

/** The last settings that were tried, and what was wrong with them: listeners with one account mostly have the same. */
let tried: { readonly settings: string; readonly problem: TlsProblem | undefined } | undefined;

/** What is wrong with the settings of a listener besides its certificate; they are tried with one that is never served. */
export function checkBesideCertificate({
  cert: _cert,
  key: _key,
  pending: _pending,
  ...others
}: TlsServer): TlsProblem | undefined {
  const settings = JSON.stringify(others);
  if (tried?.settings !== settings) tried = { settings, problem: checkTlsServer({ ...others, ...placeholder() }) };
  return tried.problem;
}

let made: CertificateAndKey | undefined;

function placeholder(): CertificateAndKey {
  made ??= makeSelfSigned("host.invalid", Date.now());
  return made;
}
