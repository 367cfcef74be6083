import { X509Certificate } from "node:crypto";
import type { Ir } from "../ir/ir.ts";
import type { ExtraMetric } from "../telemetry/prometheus.ts";
import type { TlsServer } from "../tls/tls-settings.ts";

/** Seconds since 1970, by the listener's settings: a scrape reads no certificate twice. */
const expiries = new WeakMap<TlsServer, number>();

/** When the certificates that listeners show to clients expire; no metric when there are none. */
export function certificateMetrics({ binds }: Ir): ExtraMetric[] {
  const samples: ExtraMetric["samples"][number][] = [];
  for (const { key: bind, listeners } of binds)
    for (const { tls, name: listener, gatewayNamespace, gatewayName } of listeners)
      if (tls !== undefined) {
        const labels = { bind, gateway: `${gatewayNamespace}/${gatewayName}`, listener };
        samples.push({ labels, value: expiryOf(tls) });
      }
  if (samples.length === 0) return [];
  const help = "When a listener's certificate expires, or its CA for a listener that makes certificates.";
  return [{ name: "tracegate_certificate_expiry_timestamp_seconds", type: "gauge", help, samples }];
}

function expiryOf(tls: TlsServer): number {
  let expiry = expiries.get(tls);
  if (expiry === undefined) {
    // The first certificate of a chain is the server's.
    expiry = new X509Certificate(tls.cert).validToDate.getTime() / 1000;
    expiries.set(tls, expiry);
  }
  return expiry;
}
