import { messageOf } from "../../base/errors.ts";
import { certificatesProblem } from "../../tls/certificate-list.ts";
import { TlsClient } from "../../tls/tls-client.ts";
import type { BackendTls } from "../../tls/tls-settings.ts";
import { defined, type Resolver } from "../contract/resolver.ts";
import type { FileName } from "../schema/source.ts";
import type { BackendTlsInput } from "../schema/upstream-settings.ts";

/** Reads the files of `backendTLS` and builds a TLS context: mistakes must show when the configuration loads, not in a handshake. */
export function resolveTls(written: BackendTlsInput, resolver: Resolver): BackendTls {
  const { cert, key, root, ...others } = written;
  const read = (field: "cert" | "key" | "root", name: FileName | undefined): string | undefined =>
    name === undefined ? undefined : resolver.file([field], name);
  const texts = { cert: read("cert", cert), key: read("key", key), root: read("root", root) };
  const tls: BackendTls = defined({ ...texts, ...others });
  const untrusted = texts.root === undefined ? undefined : certificatesProblem(texts.root);
  const broken = texts.cert === undefined ? undefined : certificatesProblem(texts.cert);
  if (untrusted !== undefined)
    resolver.report(["root"], { message: `cannot be used: ${untrusted}; expected CAs in PEM` });
  else if (broken !== undefined) resolver.report(["cert"], { message: `cannot be used: ${broken}; expected PEM` });
  else tryContext(tls, resolver);
  return tls;
}

/** Certificates have been checked, so a failure here means that the key is invalid or belongs to another certificate. */
function tryContext(tls: BackendTls, resolver: Resolver): void {
  try {
    new TlsClient(tls);
  } catch (error) {
    const why = messageOf(error);
    resolver.report(["key"], { message: `cannot be used: ${why}; expected the certificate's key in PEM` });
  }
}
