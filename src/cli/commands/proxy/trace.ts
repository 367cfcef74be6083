import { openTrace, type ProxyAdmin } from "../../proxy/admin.ts";
import { chooseTarget, fileOption, RESOURCE, requestHint, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { type Context, write } from "../../runner/context.ts";
import { type Command, defineCommand } from "../../runner/define-command.ts";
import { usage } from "../../runner/errors.ts";
import { injectedRequest, sendRequest } from "../../trace/inject.ts";
import { liveItems, recordsOfFile, type TraceSource, type TraceView } from "../../trace/source.ts";
import { openProxies } from "../open-proxies.ts";
import { replicaItems } from "../replicas.ts";

/** `loadTraceView` loads the terminal UI: only a command that shows it pays for that. */
export const traceCommand = (loadTraceView: () => Promise<TraceView>): Command =>
  defineCommand({
    name: "trace",
    summary: "Show step by step what the proxy does with one request",
    description: [
      "Without a URL, waits for the next request of any client. With a URL after --, sends the request with curl to 127.0.0.1 and the listener port given by --port; the host of the URL is used only for the Host header and the TLS server name.",
      "On a terminal, opens a full-screen view. Into a pipe or a file, prints one JSON event per line; with -o text, a readable line per event, and at the end a summary and the decisions as a tree; with --tree only these two.",
    ],
    argument: RESOURCE,
    rest: { name: "url [curl args]", summary: "Send this request and trace it" },
    options: {
      ...TARGET_OPTIONS,
      file: fileOption(
        "Show a saved trace: the output of --raw, or the text of the event stream (- reads standard input)",
      ),
      output: {
        type: "text",
        short: "o",
        value: "format",
        choices: ["text", "json"],
        invalid: (value: string) => `output format "${value}" not supported`,
        summary:
          "Print a line per event instead of opening the full-screen view: text is readable, json is one event per line",
      },
      raw: { type: "switch", summary: "The same as -o json" },
      tree: {
        type: "switch",
        summary: "Wait for the end of the request, then print what happened and every decision as a tree",
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
      { does: "Look at a saved trace", run: "proxy trace --file trace.jsonl" },
    ],
    async run(invocation, context) {
      const { rest, options } = invocation;
      chooseTarget(invocation, context.env);
      if (options.raw && options.output === "text") throw usage("--raw and -o text are mutually exclusive");
      if (options.tree && (options.raw || options.output !== undefined))
        throw usage("--tree is an output of its own; leave out --raw and -o");
      const format = options.tree
        ? "tree"
        : options.raw || (context.json && options.output === undefined)
          ? "json"
          : options.output;
      if (options.file !== undefined) {
        if (options.expression !== undefined) throw usage("--file does not accept --expression");
        if (options.duration !== undefined) throw usage("--file does not accept --duration");
        if (options.reveal)
          throw usage(
            "--file does not accept --reveal: secrets are not in a saved trace unless it was recorded with --reveal",
          );
        if (rest !== undefined) throw usage("--file does not accept a request URL after --");
        const items = recordsOfFile(options.file, context.stdin);
        return present(
          { title: options.file === "-" ? "standard input" : options.file, items },
          format,
          context,
          loadTraceView,
        );
      }
      if (rest !== undefined && options.port === undefined)
        throw usage("a request URL requires --port", requestHint(rest[0], invocation.argument));
      if (rest === undefined && options.port !== undefined) throw usage("--port requires a request URL after --");
      const request = rest === undefined ? undefined : injectedRequest(rest);

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
          return await present({ title: name, items }, format, context, loadTraceView);
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
        await present({ title, items }, format, context, loadTraceView);
      } finally {
        done.abort();
      }
    },
  });

/** Without a format: the full-screen view where the terminal can show it, text where it cannot, JSON into pipes and files. */
async function present(
  source: TraceSource,
  format: string | undefined,
  context: Context,
  loadTraceView: () => Promise<TraceView>,
): Promise<void> {
  if (format === "text" || format === "tree") return printText(source, format, context);
  if (format !== undefined || !context.stdout.isTTY) return printRaw(source, context);
  const reason = noFullScreen(context);
  if (reason === undefined) return (await loadTraceView()).show(source, context);
  await write(context.stderr, `${reason}, printing text; -o text does so without this note\n`);
  return printText(source, "text", context);
}

/** Why this terminal cannot show the full-screen view. */
function noFullScreen({ env }: Context): string | undefined {
  if (env.TERM === "dumb") return "this terminal cannot show a full-screen view (TERM=dumb)";
  // Ink draws nothing when these variables say that it runs in continuous integration.
  if ([env.CI, env.CONTINUOUS_INTEGRATION].some((value) => value !== undefined && value !== "0" && value !== "false")) {
    return "this is a continuous integration environment (CI is set)";
  }
  return undefined;
}

/** Prints each event's JSON on one line as it arrives. Problems go to stderr, progress only if that is a terminal. */
async function printRaw(source: TraceSource, context: Context): Promise<void> {
  for await (const item of source.items) {
    if (item.kind === "event") await write(context.stdout, `${item.raw}\n`);
    else if (item.kind === "problem" || context.stderr.isTTY) await write(context.stderr, `${item.text}\n`);
    if (context.signal.aborted) return;
  }
}

/**
 * Prints the name of the replica, a readable line per event as it arrives (not as `tree`), and at the end the outcome and the tree of
 * decisions. Progress goes to stderr.
 */
async function printText(source: TraceSource, format: "text" | "tree", context: Context): Promise<void> {
  const { TextLines } = await import("../../../report/outcome.ts");
  const lines = new TextLines();
  for await (const item of source.items) {
    if (item.kind === "event") {
      const line = lines.event(item.event);
      if (format === "text") await write(context.stdout, line);
    } else if (item.kind === "problem") await write(context.stdout, lines.problem(item.text));
    else if (item.kind === "source") await write(context.stdout, `${item.text}\n`);
    else if (context.stderr.isTTY) await write(context.stderr, `${item.text}\n`);
    if (context.signal.aborted) return;
  }
  await write(context.stdout, lines.end());
}
