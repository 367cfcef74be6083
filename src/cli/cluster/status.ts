/** What the controller has sent to each proxy of a Gateway, and what each proxy runs. */
import type { ConfigStatus } from "../../admin/client/client.ts";
import { fieldsOf } from "../../base/fields.ts";
import { objectKey } from "../../base/object-key.ts";
import { listObjects } from "../../kube/client.ts";
import type { Gateway } from "../../kube/objects.ts";
import { RESOURCES } from "../../kube/resources.ts";
import { list, table, text } from "../dump/dump.ts";
import { adminResult } from "../proxy/admin.ts";
import type { ClusterOptions, Proxies } from "../proxy/proxies.ts";
import { type Context, write } from "../runner/context.ts";
import { CliError } from "../runner/errors.ts";
import { Cluster } from "./cluster.ts";
import { Controllers } from "./controllers.ts";
import { kubeFailure } from "./errors.ts";

/** `synchronized`: the proxy runs the newest state of its Gateway. The others are explained by `problem`. */
type SyncState = "synchronized" | "pending" | "rejected" | "heldBack" | "disconnected" | "unreachable";

/** One proxy, for the table and for `-o json`. */
export interface ProxySync {
  readonly pod: string;
  readonly namespace: string;
  readonly state: SyncState;
  readonly problem: string | null;
  /** The replica of the controller that the proxy is connected to; null: none, or the controller was not asked. */
  readonly controller: string | null;
  /** Version of the state that the controller has sent last. */
  readonly sent: string | null;
  /** Version of the state that the proxy runs. */
  readonly running: string | null;
  /** States that the proxy has applied since it started. */
  readonly generation: number | null;
  /** ISO 8601 */
  readonly appliedAt: string | null;
}

/** What the controller knows of a connected proxy; see `ProxyStatus` of the stream. */
interface Sent {
  readonly controller: string;
  readonly connectedAt: string;
  readonly version: string;
  readonly synchronized: boolean;
  readonly rejection: string | undefined;
}

export interface ControllerOptions {
  readonly "controller-namespace": string;
  readonly "controller-admin-port": number;
}

/** The proxies in the order of their names. @throws CliError if they cannot be looked up */
export async function proxySyncs(
  proxies: Proxies,
  options: Pick<ClusterOptions, "kubeconfig" | "context"> & ControllerOptions,
  context: Context,
): Promise<readonly ProxySync[]> {
  const { signal } = context;
  const [outcomes, sent] = await Promise.all([
    proxies.each((proxy) => adminResult(proxy, proxy.client.configStatus({ signal }))),
    sentStates(options, context),
  ]);
  return outcomes.map(({ name, pod, result }) => {
    const { name: podName = name, namespace = "" } = pod ?? {};
    const row = { pod: podName, namespace };
    // If the controller cannot be asked, the proxy's own report is used.
    const of = sent?.get(objectKey({ namespace, name: podName }));
    const known = { ...row, controller: of?.controller ?? null, sent: of?.version ?? null };
    if (result.status === "rejected") {
      const { message, why, hint } = CliError.from(result.reason);
      const problem = `${message}${why === undefined ? "" : ` (${why})`}${hint === undefined ? "" : `; ${hint}`}`;
      return { ...known, state: "unreachable", problem, running: null, generation: null, appliedAt: null };
    }
    const { generation, appliedAt, hash } = result.value;
    return {
      ...known,
      ...judge(result.value, sent === undefined ? "unknown" : of, proxies.gateway),
      running: hash,
      generation,
      appliedAt,
    };
  });
}

function judge(
  status: ConfigStatus,
  sent: Sent | "unknown" | undefined,
  gateway: string | undefined,
): { readonly state: SyncState; readonly problem: string | null } {
  const { stream, hash } = status;
  const heldBack = stream?.heldBack ?? [];
  const concerned = heldBack.filter((each) => gateway === undefined || each.gateway === gateway);
  if (concerned.length > 0) {
    const problems = concerned.map((each) => `Gateway ${each.gateway} keeps its former configuration: ${each.reason}`);
    return { state: "heldBack", problem: problems.join("; ") };
  }
  // Those of other Gateways keep nothing from this one.
  const isForOthers = heldBack.length > 0;
  const lastError = isForOthers ? null : status.lastError;
  const synchronized = isForOthers ? stream?.version === hash : status.synchronized;
  const rejection = lastError?.message ?? (sent === "unknown" || isForOthers ? undefined : sent?.rejection);
  if (rejection !== undefined) return { state: "rejected", problem: rejection };
  if (stream !== undefined && !stream.connected) {
    return { state: "disconnected", problem: `no connection to the controller: ${stream.problem ?? "connecting"}` };
  }
  if (sent === undefined)
    return { state: "disconnected", problem: "no replica of the controller has a stream from it" };
  if (sent === "unknown") {
    return synchronized
      ? { state: "synchronized", problem: null }
      : { state: "pending", problem: "it has not applied the newest state yet" };
  }
  if (sent.version === hash && (sent.synchronized || isForOthers)) return { state: "synchronized", problem: null };
  return { state: "pending", problem: "it has not applied the newest state yet" };
}

/** By `<namespace>/<pod>`; undefined, with a warning, if the controller cannot be asked: not every user may read its namespace. */
async function sentStates(
  { kubeconfig, context: name, ...options }: Parameters<typeof proxySyncs>[1],
  context: Context,
): Promise<ReadonlyMap<string, Sent> | undefined> {
  const namespace = options["controller-namespace"];
  const sent = new Map<string, Sent>();
  try {
    await using controllers = await Controllers.open(
      { kubeconfig, context: name, namespace, "controller-admin-port": options["controller-admin-port"] },
      context,
    );
    const outcomes = await controllers.each(async (controller) => ({
      controller: controller.pod.name,
      proxies: await adminResult(controller, controller.client.snapshot("proxies", { signal: context.signal })),
    }));
    for (const { result } of outcomes) {
      // A proxy of this replica may have connected to another one since; without all responses its status is unknown.
      if (result.status === "rejected") throw result.reason;
      const { controller, proxies } = result.value;
      for (const proxy of list(proxies).map(fieldsOf)) {
        const key = objectKey({ namespace: text(proxy.namespace), name: text(proxy.pod) });
        const connectedAt = text(proxy.connectedAt);
        // After a reconnection, the old stream may not have ended yet.
        if ((sent.get(key)?.connectedAt ?? "") > connectedAt) continue;
        const rejection = text(fieldsOf(proxy.rejection).message);
        sent.set(key, {
          controller,
          connectedAt,
          version: text(proxy.sent),
          synchronized: proxy.synchronized === true,
          rejection: rejection === "" ? undefined : rejection,
        });
      }
    }
    return sent;
  } catch (error) {
    if (context.signal.aborted) throw error;
    const { message } = CliError.from(error);
    await write(
      context.stderr,
      `Warning: showing only what the proxies report, because the controller cannot be reached: ${message}\n`,
    );
    return undefined;
  }
}

/** Characters of a version that the table shows. */
const VERSION_LENGTH = 12;

export function syncTable(rows: readonly ProxySync[]): string {
  const version = (of: string | null) => (of === null || of === "" ? "-" : of.slice(0, VERSION_LENGTH));
  const lines = table(
    ["POD", "STATE", "CONTROLLER", "SENT", "RUNS", "GENERATION", "APPLIED"],
    rows.map(({ pod, state, controller, sent, running, generation, appliedAt }) => [
      pod,
      state,
      controller ?? "-",
      version(sent),
      version(running),
      String(generation ?? "-"),
      appliedAt ?? "-",
    ]),
  );
  const problems = rows.flatMap(({ pod, problem }) => (problem === null ? [] : [`${pod}: ${problem}\n`]));
  return problems.length === 0 ? lines : `${lines}\n${problems.join("")}`;
}

/** Why not all proxies run the same newest state; undefined if they do. */
export function syncFailure(name: string, rows: readonly ProxySync[]): CliError | undefined {
  const behind = rows.filter(({ state }) => state !== "synchronized");
  const [first] = behind;
  if (first !== undefined) {
    const count = rows.length === 1 ? "the proxy" : `${behind.length} of ${rows.length} proxies`;
    return new CliError(
      "failure",
      `${count} of ${name} ${behind.length > 1 ? "do" : "does"} not run the newest state`,
      {
        why: `${first.pod} is ${first.state}: ${first.problem?.split("\n")[0] ?? ""}`,
      },
    );
  }
  const versions = new Set(rows.map(({ running }) => running));
  if (versions.size <= 1) return undefined;
  return new CliError("failure", `the proxies of ${name} run ${versions.size} different states`, {
    why: "the replicas of the controller have not sent the same state yet",
  });
}

/** `gateway/<name>.<namespace>` of the Gateways of one namespace, or of all. @throws CliError if it finds no Gateway */
export async function allGateways(
  options: ClusterOptions & { readonly "all-namespaces": boolean },
  context: Context,
): Promise<readonly string[]> {
  await using cluster = await Cluster.connect(options, context);
  const namespace = options["all-namespaces"] ? undefined : cluster.namespace;
  const where = namespace === undefined ? "" : ` in namespace "${namespace}"`;
  const gateways = await listObjects<Gateway>(cluster.client, RESOURCES.Gateway, namespace, context.signal).catch(
    (error: unknown) => {
      throw kubeFailure(`failed to list Gateways${where}`, error);
    },
  );
  if (gateways.length === 0)
    throw new CliError("failure", `no Gateways found${where}`, {
      hint: namespace === undefined ? "kubectl get gateways -A" : "-n <namespace> for another namespace, -A for all",
    });
  return gateways.map(({ metadata }) => `gateway/${metadata.name}.${metadata.namespace}`).sort();
}
