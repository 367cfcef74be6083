import { X509Certificate } from "node:crypto";
import { messageOf } from "../../base/errors.ts";
import type { BackendTlsInput } from "../../policies/backend-tls/schema.ts";
import { TlsClient } from "../../tls/tls-client.ts";
import type { BackendTls } from "../../tls/tls-settings.ts";
import type { Report } from "../parse/document.ts";
import type { Path } from "../parse/paths.ts";
import type { Sources } from "./sources.ts";

/** Reads the files of `backendTLS` and tries them: a call must not be the first to find a mistake. */
export function translateBackendTls(input: unknown, path: Path, sources: Sources, report: Report): BackendTls {
  const config = input as BackendTlsInput;
  const read = (field: "cert" | "key" | "root"): string | undefined => {
    const file = config[field];
    return file === undefined ? undefined : sources.readFile([...path, field], file);
  };
  const [cert, key, root] = [read("cert"), read("key"), read("root")];
  const { hostname, insecure, insecureHost, alpn, subjectAltNames, keyExchangeGroups } = config;
  const tls: BackendTls = {
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(root !== undefined && { root }),
    ...(hostname !== undefined && { hostname }),
    insecure,
    insecureHost,
    ...(alpn !== undefined && { alpn }),
    ...(subjectAltNames !== undefined && { subjectAltNames }),
    ...(keyExchangeGroups !== undefined && { keyExchangeGroups }),
  };
  if (root !== undefined && !isCertificate(root))
    report([...path, "root"], { message: "cannot be used: the file holds no certificate; expected CAs in PEM" });
  else if (cert !== undefined && !isCertificate(cert))
    report([...path, "cert"], { message: "cannot be used: the file holds no certificate; expected PEM" });
  else tryContext(tls, path, report);
  return tls;
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem);
    return true;
  } catch {
    return false;
  }
}

/** What is wrong now is the key, or that it belongs to another certificate. */
function tryContext(tls: BackendTls, path: Path, report: Report): void {
  try {
    new TlsClient(tls);
  } catch (error) {
    const why = messageOf(error);
    report([...path, "key"], { message: `cannot be used: ${why}; expected the certificate's key in PEM` });
  }
}
