import type { Logger } from "../base/log.ts";
import type { Listener } from "../ir/ir.ts";
import { TlsTerminator } from "../tls/tls-terminator.ts";

/** What ends TLS for a listener; undefined when nothing does. Certificates that it makes are logged. */
export function terminatorOf(
  { key, protocol, tls }: Pick<Listener, "key" | "protocol" | "tls">,
  log: Logger | undefined,
): TlsTerminator | undefined {
  if (tls === undefined) return undefined;
  return new TlsTerminator(tls, protocol === "HTTPS" ? ["http/1.1"] : [], (name, { serialNumber, notAfter }) => {
    const expires = new Date(notAfter).toISOString();
    log?.debug("certificate made", { listener: key, "tls.sni": name, serial: serialNumber, expires });
  });
}
