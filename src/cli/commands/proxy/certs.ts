import type { CertificatesAnswer, CertificateView } from "../../../admin/plane/certificates.ts";
import { DUMP_OUTPUT_OPTION, table } from "../../dump/dump.ts";
import { printMerged } from "../../merge/print-merged.ts";
import { adminResult } from "../../proxy/admin.ts";
import { RESOURCE, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { openProxies } from "../open-proxies.ts";

export const certs = defineCommand({
  name: "certs",
  summary: "Show the certificates of listeners: names, issuer, expiry, next step and last error",
  description: [
    "SOURCE is acme for certificates that the gateway orders and renews, static for those of files and Secrets, dynamicCa for a CA that signs on demand. NEXT says what the gateway does by itself; of static ones, nothing. See docs/acme.md.",
  ],
  argument: RESOURCE,
  options: { ...TARGET_OPTIONS, output: DUMP_OUTPUT_OPTION },
  examples: [
    { does: "What expires when, and what failed", run: "certs" },
    { does: "As JSON, for scripts", run: "certs -o json" },
  ],
  async run(invocation, context) {
    await using proxies = await openProxies(invocation, context);
    return await printMerged(proxies, context, {
      endpoint: "/certificates",
      ask: (proxy) => adminResult(proxy, proxy.client.certificates({ signal: context.signal })),
      output: invocation.options.output,
      table: certificateTable,
    });
  },
});

/** Names that a row shows before it counts the others. */
const MAX_NAMES = 3;

function certificateTable({ certificates }: CertificatesAnswer): string {
  if (certificates.length === 0) return "no listener has a certificate\n";
  const header = ["NAMES", "SOURCE", "ISSUER", "EXPIRES", "NEXT", "LAST ERROR"];
  return table(header, certificates.map(cells));
}

function cells({ names, source, issuer, expires, state, untilIssued, next, lastError }: CertificateView): string[] {
  const more = names.length - MAX_NAMES;
  const until = untilIssued === "refuse" ? "refuses clients" : "self-signed";
  return [
    names.slice(0, MAX_NAMES).join(",") + (more > 0 ? ` and ${more} more` : ""),
    source,
    issuer ?? `none yet, ${until}`,
    expires === null ? "" : `${expires.slice(0, 19)}Z${state === "valid" ? "" : ` (${state})`}`,
    next === null ? "" : next.at === null ? `${next.step} now` : `${next.step} ${next.at.slice(0, 19)}Z`,
    lastError === null ? "" : `${lastError.message} (${lastError.count} in a row)`,
  ];
}
