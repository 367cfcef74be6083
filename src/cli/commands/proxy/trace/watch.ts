import type { FollowRequest } from "../../../../admin/client/client.ts";
import { parseDuration } from "../../../../base/durations.ts";
import { openTrace, type ProxyAdmin } from "../../../proxy/admin.ts";
import { openFollow } from "../../../proxy/follow-stream.ts";
import {
  chooseTarget,
  fileOption,
  type Proxies,
  RESOURCE,
  requestHint,
  TARGET_OPTIONS,
  type TargetWords,
} from "../../../proxy/proxies.ts";
import { replicaItems } from "../../../proxy/trace-replicas.ts";
import type { Context } from "../../../runner/context.ts";
import { type Command, defineCommand } from "../../../runner/define-command.ts";
import { CliError, usage } from "../../../runner/errors.ts";
import type { FollowedOutput } from "../../../trace/followed.ts";
import { injectedRequest, sendRequest } from "../../../trace/inject.ts";
import { FORMAT_OPTIONS, type Format, formatOf, present, showsFullScreen } from "../../../trace/present.ts";
import { liveItems, sourceOfFile } from "../../../trace/source.ts";
import type { TraceView } from "../../../trace/view.ts";
import { openProxies } from "../../open-proxies.ts";

export const watchCommand = (loadTraceView: () => Promise<TraceView>): Command =>
  defineCommand({
    name: "watch",
    summary: "Trace the next request, or one that the command sends; the default",
    description: [
      "Without a URL, waits for the next request of any client. With a URL after --, sends the request with curl to 127.0.0.1 and the listener port given by --port; the host of the URL is used only for the Host header and the TLS server name.",
      "On a terminal, opens a full-screen view. Into a pipe or a file, prints one JSON event per line; with -o text, a readable line per event, and at the end a summary and the decisions as a tree; with --tree only these two.",
    ],
    argument: RESOURCE,
    rest: { name: "url [curl args]", summary: "Send this request and trace it" },
    options: {
      ...TARGET_OPTIONS,
      file: fileOption("The same as `open` with this file (- reads standard input)"),
      ...FORMAT_OPTIONS,
      save: {
        type: "text",
        value: "file",
        completes: "file",
        summary: "Also save the trace to this file; - writes it to standard output instead of showing it",
      },
      port: {
        type: "integer",
        value: "port",
        min: 1,
        max: 65535,
        summary: "Port of the listener for the request after --",
      },
      expression: {
        type: "text",
        value: "cel",
        summary: "Trace the next request for which this CEL expression is true",
      },
      duration: {
        type: "text",
        value: "time",
        summary: "End the trace this long after its request began, such as 30s, even if the request continues",
      },
      follow: {
        type: "switch",
        summary:
          "Show many requests instead of one: in the full-screen view; elsewhere, or with -o text, a line for each at its end; with -o jsonl, one for each event",
      },
      count: {
        type: "integer",
        value: "count",
        min: 1,
        max: 1_000_000,
        summary: "With --follow: how many requests (default 20; in the full-screen view, all)",
      },
      for: {
        type: "text",
        value: "time",
        summary: "With --follow: how long at most, up to 1h (default 30s; in the full-screen view, 10m)",
      },
      where: {
        type: "text",
        value: "cel",
        summary: "With --follow: only requests for whose outcome this CEL expression is true, as in `recent`",
      },
      bodies: {
        type: "text",
        value: "size",
        summary: "With --follow: how much of each body, such as 4KiB (default none)",
      },
      candidates: { type: "switch", summary: "With --follow: say why other routes were not selected" },
      reveal: { type: "switch", summary: "Show header values that hold secrets, such as authorization and cookie" },
    },
    examples: [
      { does: "Wait for the next request", run: "proxy trace" },
      { does: "Send a request and trace it", run: "proxy trace --port 3000 -- http://example.com/api" },
      {
        does: "The same with curl arguments, as JSON Lines",
        run: "proxy trace --raw --port 3000 -- http://example.com/api -X POST -d '{}'",
      },
      { does: "A readable trace in a CI log", run: "proxy trace -o text --port 3000 -- http://example.com/api" },
      { does: "Why did this request get 403?", run: "proxy trace --tree --port 3000 -- http://example.com/admin" },
      { does: "Only requests below /api", run: "proxy trace --expression 'request.path.startsWith(\"/api\")'" },
      { does: "Look at it and keep it", run: "proxy trace --save trace.jsonl" },
      { does: "Watch requests in the full-screen view", run: "proxy trace --follow" },
      { does: "Which requests fail now, and why", run: "proxy trace --follow --for 5m --where 'response.code >= 500'" },
      { does: "The same at all replicas, as lines of JSON", run: "proxy trace gateway/web --follow -o jsonl" },
    ],
    async run(invocation, context) {
      const { rest, options } = invocation;
      chooseTarget(invocation, context.env);
      const format = formatOf(options, context);
      if (options.follow) return follow(invocation, format, context, loadTraceView);
      const words = (["count", "for", "where", "bodies", "candidates"] as const).find((name) => options[name]);
      if (words !== undefined) throw usage(`--${words} requires --follow`);
      if (options.file !== undefined) {
        if (options.expression !== undefined) throw usage("--file does not accept --expression");
        if (options.duration !== undefined) throw usage("--file does not accept --duration");
        if (options.reveal)
          throw usage(
            "--file does not accept --reveal: secrets are not in a saved trace unless it was recorded with --reveal",
          );
        if (rest !== undefined) throw usage("--file does not accept a request URL after --");
        if (options.save !== undefined) throw usage("--file does not accept --save: the trace is a file already");
        return present(sourceOfFile(options.file, context.stdin), { format }, context, loadTraceView);
      }
      if (rest !== undefined && options.port === undefined)
        throw usage("a request URL requires --port", requestHint(rest[0], invocation.argument));
      if (rest === undefined && options.port !== undefined) throw usage("--port requires a request URL after --");
      const request = rest === undefined ? undefined : injectedRequest(rest);
      const how = { format, save: options.save };
      const revealed = options.reveal;

      // Ends the streams when the reader quits the view before the trace is complete.
      const done = new AbortController();
      const signal = AbortSignal.any([context.signal, done.signal]);
      const open = (proxy: ProxyAdmin, stop: AbortSignal) =>
        openTrace(proxy, {
          expression: options.expression,
          token: request?.token,
          reveal: options.reveal,
          duration: options.duration,
          signal: stop,
        });
      await using proxies = await openProxies(invocation, context);
      try {
        const { serving } = proxies;
        if (request === undefined && serving !== undefined) {
          const { name } = proxies;
          const items = replicaItems({ name, serving, open, signal });
          return await present({ title: name, revealed, items }, how, context, loadTraceView);
        }
        const proxy = await proxies.first();
        const { port } = options;
        const local = port === undefined ? undefined : await proxy.reach(port);
        const send = async () => {
          if (request === undefined || port === undefined || local === undefined) return "";
          return sendRequest(request, local, signal).catch(async (error: unknown) => {
            throw (await proxy.failureAt(port)) ?? error;
          });
        };
        const items = liveItems(proxy.name, () => open(proxy, signal), request && send);
        const title = proxies.name === proxy.name ? proxy.name : `${proxies.name} · ${proxy.name}`;
        await present({ title, revealed, items }, how, context, loadTraceView);
      } finally {
        done.abort();
      }
    },
  });

/** Requests that `--follow` prints by default, and how long it follows. */
const FOLLOWED = 20;
const FOLLOWED_FOR = "30s";
/** Defaults in the full-screen view, where somebody looks at it: as many requests as come in time. */
const IN_VIEW = { count: 1_000_000, for: "10m" };

interface FollowWords extends TargetWords {
  readonly rest: readonly string[] | undefined;
  readonly options: TargetWords["options"] & {
    readonly expression: string | undefined;
    readonly where: string | undefined;
    readonly count: number | undefined;
    readonly for: string | undefined;
    readonly bodies: string | undefined;
    readonly candidates: boolean;
    readonly duration: string | undefined;
    readonly save: string | undefined;
    readonly reveal: boolean;
    readonly port: number | undefined;
  };
}

async function follow(
  words: FollowWords,
  format: Format | undefined,
  context: Context,
  loadTraceView: () => Promise<TraceView>,
): Promise<void> {
  const { options, rest } = words;
  const other = (["file", "save", "duration", "reveal", "port"] as const).find((name) => options[name]);
  if (other !== undefined) throw usage(`--follow does not accept --${other}`);
  if (rest !== undefined) throw usage("--follow does not accept a request URL after --");
  if (format === "tree") throw usage("--follow does not accept --tree");
  const isView = format === undefined && context.stdout.isTTY === true && (await showsFullScreen(context));
  const limits = isView ? IN_VIEW : { count: FOLLOWED, for: undefined };
  const { expression, where, count = limits.count, for: time = limits.for, bodies, candidates } = options;
  const done = new AbortController();
  const signal = AbortSignal.any([context.signal, done.signal]);
  await using proxies = await openProxies(words, context);
  try {
    const streams = await streamsOf(proxies, { expression, where, count, for: time, bodies, candidates, signal });
    if (isView) {
      const { followed } = await import("../../../trace/followed.ts");
      const source = { title: proxies.name, items: followed(streams, count) };
      return await (await loadTraceView()).follow(source, context);
    }
    // Loaded here, because only this option needs it.
    const { printFollowed } = await import("../../../trace/follow.ts");
    await printFollowed(streams, { count, json: format === "json" }, context);
  } finally {
    done.abort();
  }
}

/** The streams of the only proxy, or of all replicas. */
async function streamsOf(proxies: Proxies, request: FollowRequest): Promise<AsyncIterable<FollowedOutput>> {
  const { serving } = proxies;
  // Loaded here, because only this option needs it.
  if (serving === undefined) {
    const { ofOne } = await import("../../../trace/followed.ts");
    return ofOne(await openFollow(await proxies.first(), request));
  }
  const { followReplicas } = await import("../../../proxy/follow-replicas.ts");
  const first = await serving();
  if (first.length === 0) throw new CliError("failure", `${proxies.name} has no pod that serves requests`);
  // The gateway rejects what is no duration, with what is right.
  const forMs = parseDuration(request.for ?? FOLLOWED_FOR) ?? 0;
  const open = (proxy: ProxyAdmin, left: number) =>
    openFollow(proxy, left === forMs ? request : { ...request, for: `${left}ms` });
  return followReplicas({ first, serving, forMs, open });
}
