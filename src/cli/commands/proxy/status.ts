import { counted } from "../../../base/counted.ts";
import { type Fields, fieldsOf } from "../../../base/fields.ts";
import type { ControllerOptions, ProxySync } from "../../cluster/status.ts";
import { DUMP_OUTPUT_OPTION, list, print, text } from "../../dump/dump.ts";
import { adminResult } from "../../proxy/admin.ts";
import { chooseTarget, type Proxies, RESOURCE, TARGET_OPTIONS, type TargetWords } from "../../proxy/proxies.ts";
import type { Context } from "../../runner/context.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { CliError, usage } from "../../runner/errors.ts";
import { ASKED_CONTROLLER } from "../controller/options.ts";
import { openProxies } from "../open-proxies.ts";

export const status = defineCommand({
  name: "status",
  summary: "Show which configuration is in effect, and whether it is the newest one",
  description: [
    "Exits with 1 when the proxy is not synchronized: the newest configuration was rejected, or is not in effect in every worker yet. The lines above the error give the reason.",
    "In Kubernetes, compares what the controller has sent to each pod with what the pod runs; without a resource, for every Gateway of the namespace. STATE is synchronized, pending, rejected, heldBack, disconnected or unreachable; SENT and RUNS are versions. heldBack: the proxy, which several Gateways share, rejected the part of this one alone.",
  ],
  argument: { ...RESOURCE, summary: RESOURCE.summary.replace("the only Gateway", "all Gateways of the namespace") },
  options: {
    ...TARGET_OPTIONS,
    "all-namespaces": { type: "switch", short: "A", summary: "The Gateways of all namespaces" },
    ...ASKED_CONTROLLER,
    output: DUMP_OUTPUT_OPTION,
  },
  examples: [
    { does: "Is the last change of the file in effect?", run: "proxy status" },
    { does: "Does every pod of a Gateway run what the controller sent?", run: "status gateway/web -n shop" },
    { does: "The same for all Gateways of the cluster", run: "status -A" },
    { does: "As JSON, for scripts", run: "status -o json" },
  ],
  async run(invocation, context) {
    const { argument, options } = invocation;
    const everywhere = options["all-namespaces"];
    if (everywhere && (argument !== undefined || options.local || options.namespace !== undefined))
      throw usage("--all-namespaces does not accept a resource argument, --local or --namespace");
    const inCluster = everywhere || chooseTarget(invocation, context.env) === "cluster";
    if (inCluster && argument === undefined && options.pod === undefined) return await statusOfAll(options, context);
    await using proxies = await openProxies(invocation, context);
    if (proxies.inCluster) return await clusterStatus(proxies, invocation.options, context);
    const proxy = await proxies.first();
    const found = await adminResult(proxy, proxy.client.configStatus({ signal: context.signal }));
    await print(found, invocation.options.output, context, () => statusLines(fieldsOf(found)));
    if (found.synchronized) return;
    throw new CliError("failure", "the newest configuration is not in effect", {
      why:
        text(found.lastError?.message).split("\n")[0] ||
        (fieldsOf(found).diskDiffers === true
          ? "the files on disk differ from it"
          : "the proxy has not applied it yet"),
    });
  },
});

/** Of every Gateway of the namespace, or of all namespaces, one table after the other. */
async function statusOfAll(options: StatusOptions, context: Context): Promise<void> {
  const { allGateways, proxySyncs, syncFailure, syncTable } = await import("../../cluster/status.ts");
  const found: { name: string; rows: readonly ProxySync[]; failure: CliError | undefined }[] = [];
  for (const name of await allGateways(options, context)) {
    try {
      await using proxies = await openProxies({ argument: name, options }, context);
      const rows = await proxySyncs(proxies, options, context);
      found.push({ name, rows, failure: syncFailure(name, rows) });
    } catch (error) {
      if (context.signal.aborted) throw error;
      found.push({ name, rows: [], failure: CliError.from(error) });
    }
  }
  const shown = found.map(({ name, rows, failure }) => ({
    gateway: name,
    problem: failure?.message ?? null,
    proxies: rows,
  }));
  const body = ({ name, rows, failure }: (typeof found)[number]): string =>
    `${name}\n${rows.length === 0 ? `${failure?.message ?? ""}\n` : syncTable(rows)}`;
  await print(shown, options.output, context, () => found.map(body).join("\n"));
  const failures = found.flatMap(({ failure }) => failure ?? []);
  const [first, ...others] = failures;
  if (first === undefined) return;
  if (others.length === 0) throw first;
  throw new CliError("failure", `${failures.length} of ${found.length} Gateways do not run the newest state`, {
    why: first.message,
  });
}

type StatusOptions = TargetWords["options"] &
  ControllerOptions & { readonly output: string; readonly "all-namespaces": boolean };

async function clusterStatus(
  proxies: Proxies,
  options: Pick<StatusOptions, "kubeconfig" | "context" | "output" | keyof ControllerOptions>,
  context: Context,
): Promise<void> {
  const { proxySyncs, syncFailure, syncTable } = await import("../../cluster/status.ts");
  const rows = await proxySyncs(proxies, options, context);
  await print(rows, options.output, context, () => syncTable(rows));
  const failure = syncFailure(proxies.name, rows);
  if (failure !== undefined) throw failure;
}

/** The most important fields in their order; others follow as received. */
const FIRST = ["synchronized", "generation", "source", "appliedAt", "loadedAt"];

/**
 * The body of `/config/status` as lines of name and value. Unknown fields are shown too, absent and
 * empty ones are left out.
 */
export function statusLines(status: Fields): string {
  const { lastError, warnings, pendingCertificates, missingDocuments, ...rest } = status;
  const names = [...FIRST, ...Object.keys(rest).filter((name) => !FIRST.includes(name))];
  const rows = names.map((name) => [words(name), shown(rest[name])] as const).filter(([, value]) => value !== "");
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`);
  const more = [
    section(fieldsOf(warnings), "warning", problemLine, "tracegate check"),
    section(fieldsOf(pendingCertificates), "pending certificate", certificateLine, "tgctl certs"),
    section({ count: list(missingDocuments).length, first: missingDocuments }, "missing document", documentLine),
  ];
  return lines.join("") + more.join("") + errorLines(fieldsOf(lastError));
}

/** How many of a kind there are, with a line for each of the first; `command` prints the others. */
function section({ count = 0, first }: Fields, kind: string, line: (item: Fields) => string, command = ""): string {
  if (count === 0) return "";
  const lines = list(first).map((each) => `  ${line(fieldsOf(each))}\n`);
  const more = Number(count) - lines.length;
  return `\n${counted(Number(count), kind)}:\n${lines.join("")}${more > 0 ? `  and ${more} more, which ${command} prints\n` : ""}`;
}

/** `shop.example.com: retry 2026-02-03T04:05:06.000Z: connection refused`. */
function certificateLine({ name, next, lastError }: Fields): string {
  const { step, at } = fieldsOf(next);
  const what = [text(step), text(at)].filter(Boolean).join(" ");
  return [text(name), what, text(fieldsOf(lastError).message)].filter(Boolean).join(": ");
}

function documentLine({ url, problem }: Fields): string {
  return [text(url), text(problem)].filter(Boolean).join(": ");
}

function errorLines(error: Fields): string {
  const message = text(error.message);
  if (message === "") return "";
  const at = text(error.at);
  const problems = list(error.diagnostics).map(fieldsOf).map(problemLine).filter(Boolean);
  // Problems that the message lists already are not repeated.
  const more = problems.filter((line) => !message.includes(line));
  const lines = [...message.trimEnd().split("\n"), ...more].map((line) => `  ${line}\n`);
  return `\nlast error${at === "" ? "" : `, ${at}`}:\n${lines.join("")}`;
}

/** `gateway.yaml:3:11: error: binds[0].port: expected a number (hint)`, as far as the parts are known. */
function problemLine(problem: Fields): string {
  const place = [text(problem.file), text(problem.line), text(problem.column)].filter(Boolean).join(":");
  const what = [place, text(problem.severity), text(problem.path), text(problem.message)].filter(Boolean).join(": ");
  const hint = text(problem.hint) || text(problem.remedy);
  return hint === "" || what === "" ? what : `${what} (${hint})`;
}

/** `appliedAt` as `applied at`. */
function words(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(shown).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : text(value);
}
