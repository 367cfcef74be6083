import { differenceText, type Replica, replicaOf } from "../../admin/plane/replicas.ts";
import type { ProxyAdmin } from "../proxy/admin.ts";
import { failureOf, type Proxies } from "../proxy/proxies.ts";
import { type Context, write } from "../runner/context.ts";
import { CliError } from "../runner/errors.ts";
import type { OfReplica } from "./replica.ts";

/** What the proxies of a command answer to a question. */
interface ReplicaAnswers<Answer> {
  /** At least one. */
  readonly answers: readonly OfReplica<Answer>[];
  /** All of them. */
  readonly replicas: readonly Replica[];
  /** Why the others have not answered. */
  readonly failure: CliError | undefined;
}

/**
 * Asks all proxies of a command. Standard error says when the proxies of a cluster have different configurations.
 * @throws CliError if none answers
 */
export async function askReplicas<Answer>(
  proxies: Proxies,
  context: Context,
  ask: (proxy: ProxyAdmin) => Promise<Answer>,
): Promise<ReplicaAnswers<Answer>> {
  const { signal, stderr } = context;
  const outcomes = await proxies.each(async (proxy) => {
    // Both have ended before the command ends, and with it the forwarded port.
    const [[answer], status] = await Promise.all([
      Promise.allSettled([ask(proxy)]),
      // Without a status, the question itself fails too, and says why.
      proxies.inCluster ? proxy.client.configStatus({ signal }).catch(() => undefined) : undefined,
    ]);
    if (answer.status === "rejected") throw answer.reason;
    return { answer: answer.value, status };
  });
  const failure = failureOf(outcomes);
  const answers = outcomes.flatMap(({ pod, result }) =>
    result.status === "fulfilled" ? [{ pod: pod?.name, answer: result.value.answer }] : [],
  );
  if (failure !== undefined && answers.length === 0) throw failure;
  const replicas = outcomes.map(({ name, pod, result }) =>
    result.status === "fulfilled"
      ? replicaOf(pod?.name ?? name, undefined, result.value.status)
      : replicaOf(pod?.name ?? name, CliError.from(result.reason).message, undefined),
  );
  const difference = differenceText(replicas);
  if (difference !== undefined) await write(stderr, `${difference}\n`);
  return { answers, replicas, failure };
}
