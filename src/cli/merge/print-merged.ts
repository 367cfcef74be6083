import type { AdminAnswers } from "../../admin/plane/answers.ts";
import type { Merged } from "../../admin/plane/replicas.ts";
import { print } from "../dump/dump.ts";
import type { ProxyAdmin } from "../proxy/admin.ts";
import type { Proxies } from "../proxy/proxies.ts";
import type { Context } from "../runner/context.ts";
import { askReplicas } from "./ask-replicas.ts";
import { MERGES, type MergedEndpoint } from "./merges.ts";

interface MergedQuestion<Endpoint extends MergedEndpoint> {
  readonly endpoint: Endpoint;
  /** The query of the merged answer. Default: empty. */
  readonly query?: URLSearchParams;
  readonly ask: (proxy: ProxyAdmin) => Promise<AdminAnswers[Endpoint]>;
  /** A value of `DUMP_OUTPUT_OPTION`. */
  readonly output: string;
  readonly table: (answer: AdminAnswers[Endpoint]) => string;
}

/**
 * Asks all proxies, and prints their answers as one. JSON and YAML of several replicas have the state of each (`Merged`).
 * @throws CliError if a proxy has not answered, after printing what the others know
 */
export async function printMerged<Endpoint extends MergedEndpoint>(
  proxies: Proxies,
  context: Context,
  { endpoint, query = new URLSearchParams(), ask, output, table }: MergedQuestion<Endpoint>,
): Promise<void> {
  const { answers, replicas, failure } = await askReplicas(proxies, context, ask);
  const answer = MERGES[endpoint].merge(answers, query);
  const whole = replicas.length > 1 ? ({ ...answer, replicas } satisfies Merged) : answer;
  await print(whole, output, context, () => table(answer));
  if (failure !== undefined) throw failure;
}
