import { NoRecord, reachText } from "../../../recorder/reach.ts";
import { groupsOf } from "../../../report/recorded.ts";
import { mergeRecords } from "../../merge/records.ts";
import { adminResult, queryError } from "../../proxy/admin.ts";
import { failureOf, RESOURCE, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { groupTable, recordDetails, recordTable } from "../../recent/print.ts";
import { write, writeJson } from "../../runner/context.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { CliError, usage } from "../../runner/errors.ts";
import { OUTPUT_OPTION } from "../../runner/output-option.ts";
import { openProxies } from "../open-proxies.ts";

/** Records that `--top` counts, for each proxy. */
const COUNTED = 10_000;

export const recent = defineCommand({
  name: "recent",
  summary: "Show the latest requests, and earlier ones that failed or were slow",
  description: [
    "Every gateway records finished requests, without query, header fields and body; nothing has to be switched on. It keeps the latest ones, and for longer those that failed, were rejected, or took four times as long as requests of their route usually do. In a cluster, the records of all pods are merged.",
    "--where is CEL over request.method, request.host, request.path, response.code, response.grpcStatus, route, listener, backend.name, endpoint, duration, reason, error, policy and attempts.",
  ],
  argument: RESOURCE,
  options: {
    ...TARGET_OPTIONS,
    id: {
      type: "text",
      value: "id",
      summary: "Show everything about the request with this id or trace id, or about the record <worker>-<number>",
    },
    where: { type: "text", short: "w", value: "CEL", summary: "Only requests for which this expression is true" },
    last: { type: "text", value: "time", summary: "Only requests that ended within this time, such as 5m" },
    route: {
      type: "text",
      short: "r",
      value: "name",
      summary: "Only requests of this route, <namespace>/<name> or <name>",
    },
    errors: { type: "switch", short: "e", summary: "Only requests that failed or were rejected" },
    slow: { type: "switch", summary: "Only requests that were slow for their route; with --errors: both" },
    limit: {
      type: "integer",
      value: "count",
      min: 1,
      max: COUNTED,
      default: 50,
      summary: "Show at most this many, the newest",
    },
    top: {
      type: "switch",
      short: "t",
      summary: "Count requests that ended alike: on the same route, with the same status, for the same reason",
    },
    output: {
      ...OUTPUT_OPTION,
      choices: ["text", "json", "jsonl"],
      default: "text",
      summary: "Output format: text has a line for each request, jsonl a line of JSON",
    },
  },
  examples: [
    { does: "What failed lately, and why", run: "recent --errors" },
    { does: "Which failures are frequent", run: "recent --errors --top --last 10m" },
    {
      does: "Denied requests of a route, at all pods",
      run: "recent gateway/web -n shop --where 'response.code == 403 && route == \"shop/admin\"'",
    },
    { does: "Find the request of an old log line", run: "recent --id 0b8f6c1e-7a3d-4c51-9f5e-0d2b6a4c0013" },
    { does: "As lines of JSON, for scripts", run: "recent --last 1m -o jsonl" },
  ],
  async run(invocation, context) {
    const { id, where, last, route, errors, slow, limit, top, output } = invocation.options;
    if (id !== undefined && ((where ?? last ?? route) !== undefined || errors || slow || top))
      throw usage("--id chooses the request alone");
    const query = { where, last, route, errors, slow, limit: top ? COUNTED : limit };
    await using proxies = await openProxies(invocation, context);
    const outcomes = await proxies.each((proxy) =>
      id === undefined
        ? adminResult(proxy, proxy.client.requests(query, { signal: context.signal }), badQuery)
        : adminResult(proxy, proxy.client.requestsOf(id, { signal: context.signal }), badQuery),
    );
    const answers = outcomes.flatMap(({ pod, result }) =>
      result.status === "fulfilled" ? [{ pod: pod?.name, answer: result.value }] : [],
    );
    const all = mergeRecords(answers);
    const { records, requests: total } = all;
    // Only one of the pods has the request.
    const failure = id !== undefined && records.length > 0 ? undefined : failureOf(outcomes);
    if (answers.length === 0 && failure !== undefined) throw failure;
    if (id !== undefined && records.length === 0)
      throw failure ?? new CliError("failure", new NoRecord(id, [all]).message);
    const latest = records.slice(0, limit);
    const groups = top ? groupsOf(records, total).slice(0, limit) : undefined;
    if (context.json || output === "json")
      await writeJson(context, groups === undefined ? { records: latest } : { requests: total, groups });
    else if (output === "jsonl")
      await write(context.stdout, (groups ?? latest).map((each) => `${JSON.stringify(each)}\n`).join(""));
    else if (records.length === 0) await write(context.stdout, `no such request; ${reachText([all])}\n`);
    else if (id !== undefined) await write(context.stdout, records.map(recordDetails).join("\n"));
    else if (groups !== undefined) await write(context.stdout, groupTable(groups, total));
    else await write(context.stdout, recordTable(latest));
    if (failure !== undefined) throw failure;
  },
});

function badQuery(status: number, body: string): CliError {
  return queryError(status, body, "this version of the gateway has no recorder");
}
