import { convertGroup } from "../cli/commands/convert.ts";
import { EXPLAIN_OPTIONS, EXPLAIN_REST } from "../cli/explain/words.ts";
import { completionCommand, helpCommand } from "../cli/runner/builtin.ts";
import { write } from "../cli/runner/context.ts";
import { type Command, defineCommand, type Program } from "../cli/runner/define-command.ts";
import { usage } from "../cli/runner/errors.ts";
import { OUTPUT_OPTION } from "../cli/runner/output-option.ts";
import { isReadOnce } from "../config/parse/inputs.ts";
import { FAIL_ON } from "../impact/impact-text.ts";
import type { CheckFormat } from "./check.ts";
import { HarmlessSignals } from "./harmless-signals.ts";
import { versionInfo } from "./version.ts";

/**
 * The commands of `tracegate`. Handlers load what they need when they run: help, completion and usage errors must not
 * load the engine.
 */

const FILE = {
  type: "list",
  whole: true,
  short: "f",
  value: "file",
  completes: "file",
  summary: "Configuration file or folder of files, may be given several times; - reads standard input once",
} as const;

const CONFIG = {
  type: "text",
  short: "c",
  value: "config",
  summary: "Configuration as text; it is never reloaded",
} as const;

const run = defineCommand({
  name: "run",
  summary: "Run a gateway (the default command)",
  description: [
    "With -f it runs on a file, or on several files and folders as one configuration, and reloads them when one changes, appears or goes, or on SIGHUP. Without -f and -c it runs on /config/config.yaml or, if there is no folder /config, on ~/.config/tracegate/config.yaml, which it creates if it does not exist.",
    "SIGTERM and SIGINT drain it; a second signal stops it at once.",
  ],
  options: {
    file: FILE,
    config: CONFIG,
    "validate-only": { type: "switch", summary: "Validate the configuration, then exit" },
    strict: { type: "switch", summary: "Treat warnings as errors, at the start and for reloads" },
    "take-over": {
      type: "switch",
      summary:
        "Have the gateway that runs start this one in its place, without a gap, then drain; end when this one serves",
    },
    pid: { type: "text", value: "process", summary: "For --take-over, if several gateways run" },
    supervised: { type: "switch", hidden: true, summary: "Stop when the parent process ends" },
  },
  examples: [
    { does: "Run a gateway on a file", run: "-f gateway.yaml" },
    { does: "Run it on a file and a folder of files", run: "-f gateway.yaml -f conf.d" },
    { does: "Run only a configuration without warnings", run: "-f gateway.yaml --strict" },
    { does: "Upgrade a running gateway without a gap", run: "--take-over -f gateway.yaml" },
    { does: "Validate only", run: "-f gateway.yaml --validate-only" },
  ],
  async run({ options }, context) {
    onlyOneSource(options);
    if (options["validate-only"]) return (await import("./run.ts")).validateOnly(options, context);
    if (options["take-over"]) {
      if (options.file.some(isReadOnce))
        throw usage("--take-over cannot read standard input", "write the configuration to a file, or pass it with -c");
      const { takeOver } = await import("./take-over/launcher.ts");
      return takeOver(argumentsOf(options), options.pid, context);
    }
    if (options.pid !== undefined) throw usage("--pid is for --take-over", "tracegate --take-over --pid PID -f FILE");
    const signals = new HarmlessSignals();
    const { startWorkersEarly } = await import("./early-workers.ts");
    const threads = startWorkersEarly({ files: options.file, config: options.config }, context.env);
    const { runGateway } = await import("./run.ts");
    return runGateway(options, options.supervised, threads, signals);
  },
});

/** The arguments of a new process that takes over: what was given, apart from the options of the command that starts it. */
function argumentsOf({
  file,
  config,
  strict,
}: {
  readonly file: readonly string[];
  readonly config: string | undefined;
  readonly strict: boolean;
}): string[] {
  const source = config === undefined ? file.flatMap((each) => ["--file", each]) : ["--config", config];
  return ["run", ...source, ...(strict ? ["--strict"] : [])];
}

const check = defineCommand({
  name: "check",
  summary: "Check a configuration file and print every problem",
  description: [
    "With --expect also rehearses requests, without a running gateway, and compares what happens to them with what the file of cases expects. Exits with 1 if the configuration is not valid or a case fails.",
    "With --impact also says what would change for the requests that a gateway has sampled: decided by the configuration before and by this one. Before is that of --before for a file of samples, or the one in effect if the gateway itself is asked. Exits with 1 if requests change in a way that --fail-on names.",
  ],
  options: {
    file: FILE,
    expect: {
      type: "text",
      value: "file",
      completes: "file",
      summary: "Cases: requests, and what the configuration should do with them",
    },
    output: {
      ...OUTPUT_OPTION,
      choices: ["text", "json", "junit", "github"],

      summary:
        "Output format (default text); junit is for the results of --expect, github for annotations of GitHub Actions",
    },
    impact: {
      type: "text",
      value: "samples",
      completes: "file",
      summary: "A file of samples, or the URL of an admin server: what would change for the requests that were sampled",
    },
    before: {
      type: "list",
      whole: true,
      value: "file",
      completes: "file",
      summary:
        "For a file of samples: the configuration before the change, a file or folder; may be given several times",
    },
    "fail-on": {
      type: "list",
      value: "changes",
      summary: `For --impact: exit with 1 if requests change like this: ${FAIL_ON.join(", ")}`,
    },
    strict: { type: "switch", summary: "Treat warnings as errors" },
    offline: { type: "switch", summary: "Make no network request: documents behind URLs are not checked" },
  },
  examples: [
    { does: "Every problem with its position", run: "check -f gateway.yaml" },
    { does: "The same as JSON", run: "check -f gateway.yaml --json" },
    { does: "Requests with known results, as in CI", run: "check -f gateway.yaml --expect cases.yaml -o junit" },
    { does: "Without access to the issuers' documents, as in CI", run: "check -f gateway.yaml --offline" },
    {
      does: "What a change would do to the requests of a running gateway",
      run: "check -f new.yaml --impact http://localhost:15000",
    },
    {
      does: "The same with samples in a file, as in CI",
      run: "check -f new.yaml --before gateway.yaml --impact samples.jsonl --fail-on refused,moved",
    },
  ],
  async run({ options: { file, expect, impact, before, "fail-on": failOn, offline, output, strict } }, context) {
    if (file.length === 0) throw usage("check needs a file", "tracegate check -f FILE");
    if (output === "junit" && expect === undefined)
      throw usage("-o junit reports on cases", "tracegate check -f FILE --expect CASES -o junit");
    if (expect !== undefined && impact !== undefined)
      throw usage("--expect and --impact are two checks", "tracegate check -f FILE --impact SAMPLES --before FILE");
    const needsBefore = impact !== undefined && !isUrl(impact);
    if (needsBefore !== before.length > 0)
      throw usage(
        "a file of samples needs the configuration --before, and nothing else does",
        "tracegate check -f FILE --impact SAMPLES --before FILE, or --impact http://localhost:15000",
      );
    const unknown = failOn.find((name) => !FAIL_ON.includes(name));
    if (unknown !== undefined) throw usage(`--fail-on ${unknown}: no such change`, `one of ${FAIL_ON.join(", ")}`);
    const { check } = await import("./check.ts");
    const format = context.json ? "json" : (output as CheckFormat | undefined);
    const compared = impact === undefined ? undefined : { samples: impact, before, failOn };
    return check(
      { kind: "files", paths: file },
      { offline, strict, expect, impact: compared, output: format },
      context,
    );
  },
});

function isUrl(text: string): boolean {
  return /^https?:\/\//.test(text);
}

const EXPLAIN_USAGE = "tracegate explain -f FILE -- [METHOD] URL";

const explain = defineCommand({
  name: "explain",
  summary: "Explain what a configuration does with a request, without a running gateway",
  description: [
    "Rehearses the request: routes, policies and backends are those of the gateway, but the request is not sent. The response of the backend is assumed (--assume response=503; by default 200). Where the outcome depends on a service that a policy calls, each outcome is shown, or only the assumed one (--assume extAuthz=deny).",
    "The request is written as for curl: [METHOD] URL, -X, -H, -d, -A, -u. Exits with 1 if the gateway refuses it in every outcome.",
  ],
  rest: EXPLAIN_REST,
  options: { file: FILE, ...EXPLAIN_OPTIONS },
  examples: [
    { does: "Which route a request gets, and why", run: "explain -f gateway.yaml -- http://shop.example/cart" },
    {
      does: "With a method and a header",
      run: "explain -f gateway.yaml -- POST https://shop.example/cart -H 'x-canary: yes'",
    },
    {
      does: "What clients get while the backend fails",
      run: "explain -f gateway.yaml --assume response=503 -- http://shop.example/",
    },
  ],
  async run({ options: { file, assume, source, output }, rest = [] }, context) {
    if (file.length === 0) throw usage("explain needs a file", EXPLAIN_USAGE);
    if (rest.length === 0) throw usage("explain needs a URL after --", EXPLAIN_USAGE);
    const { explainFiles } = await import("./explain.ts");
    return explainFiles(
      { files: file, assume, source, json: context.json || output === "json", request: rest },
      context,
    );
  },
});

const ONESHOT_USAGE = "tracegate oneshot -f FILE -- COMMAND...";

const oneshot = defineCommand({
  name: "oneshot",
  summary: "Run a command beside a gateway that starts before it and stops after it",
  description: ["Exits with the exit code of the command, or of the gateway if it does not start."],
  rest: { name: "command [args]", summary: "The command to run" },
  options: {
    file: FILE,
    config: CONFIG,
    output: {
      type: "text",
      value: "file",
      completes: "file",
      summary: "Write the gateway's log to a file instead of standard error",
    },
  },
  examples: [{ does: "Tests against a gateway", run: "oneshot -f gateway.yaml -- npm test" }],
  async run({ options: { file, config, output }, rest = [] }) {
    onlyOneSource({ file, config });
    if (rest.length === 0) throw usage("oneshot needs a command after --", ONESHOT_USAGE);
    if (file.length === 0 && config === undefined) throw usage("oneshot needs a configuration", ONESHOT_USAGE);
    if (file.some(isReadOnce))
      throw usage(
        "oneshot leaves standard input to the command",
        "write the configuration to a file, or pass it with -c",
      );
    const { oneshot } = await import("./oneshot.ts");
    return oneshot({ files: file, config, output, program: rest });
  },
});

const migrate = defineCommand({
  name: "migrate",
  summary: "Rewrite fields that have moved, in place",
  options: { file: FILE },
  examples: [{ does: "Update a file", run: "migrate -f gateway.yaml" }],
  async run({ options: { file } }, context) {
    if (file.length === 0) throw usage("migrate needs a file", "tracegate migrate -f FILE");
    const unfit = file.find(isReadOnce);
    if (unfit !== undefined) throw usage(`migrate rewrites files, and ${unfit} is none`);
    const { migrate } = await import("./migrate.ts");
    // The user's own file, which must not change, so it is printed as bytes.
    return migrate(file, (text) => write(context.stdout, Buffer.from(text)));
  },
});

const quickstart = defineCommand({
  name: "quickstart",
  summary: "Run examples/quickstart.yaml, or a file, with an echo server on port 9099",
  options: { file: FILE },
  examples: [{ does: "Try a policy", run: "quickstart -f examples/policies/cors.yaml" }],
  async run({ options: { file } }) {
    const signals = new HarmlessSignals();
    const { quickstart } = await import("./run.ts");
    return quickstart(file, signals);
  },
});

const init = defineCommand({
  name: "init",
  summary: "Write the files to run a gateway: a unit, a Compose file, Kubernetes objects, or a dashboard with alerts",
  description: [
    "systemd: a unit and a configuration. compose: a Compose file and a configuration. kubernetes: CRDs, the controller and an example. grafana: a dashboard, and alert rules for Prometheus. argo-cd, flux: health checks, by which Argo CD and Flux know whether Gateways, routes and policies are healthy.",
    "Writes nothing if one of the files is there already, and prints what to do next.",
  ],
  argument: { name: "kind", required: true, summary: "systemd, compose, kubernetes, grafana, argo-cd or flux" },
  options: {
    to: {
      type: "text",
      value: "folder",
      default: ".",
      completes: "file",
      summary: "Folder to write to",
    },
    force: { type: "switch", summary: "Overwrite files" },
  },
  examples: [
    { does: "A unit for systemd, in the folder unit", run: "init systemd --to unit" },
    { does: "A dashboard and alerts", run: "init grafana --to observability" },
  ],
  async run({ argument = "", options: { to, force } }, { stdout }) {
    const { init, isKit, KITS } = await import("./init.ts");
    if (!isKit(argument)) throw usage(`init ${argument}: no such kind`, `one of ${KITS.join(", ")}`);
    await write(stdout, init(argument, to, force));
    return 0;
  },
});

const controller = defineCommand({
  name: "controller",
  summary: "Run the Kubernetes controller: Gateway API objects in, running proxies out",
  description: [
    "Uses the ServiceAccount of its pod, or a kubeconfig: KUBECONFIG, then ~/.kube/config. Serves the configuration stream on port 9978, metrics on 9092, /healthz and /readyz on 9093, and the admin server on 9095 of the loopback address. SIGTERM gives up the leadership and ends the streams.",
    "Environment variables:",
    "TRACEGATE_CONTROLLER_NAME: spec.controllerName of its GatewayClasses (default tracegate.dev/gateway-controller).",
    "TRACEGATE_CLASS_NAME: the GatewayClass that it creates (default tracegate).",
    "TRACEGATE_LEADER_ELECTION: false if there is never more than one replica (default true).",
    "TRACEGATE_XDS_SERVICE: the Service by which proxies reach it (default tracegate).",
    "TRACEGATE_XDS_MODE: tls or plaintext (default tls). TRACEGATE_XDS_AUTH: false accepts proxies without a token (default true).",
    "TRACEGATE_PROXY_IMAGE, TRACEGATE_PROXY_IMAGE_PULL_POLICY: the image of proxies.",
    "TRACEGATE_PROXY_ADMIN_REVEAL, TRACEGATE_PROXY_ADMIN_QUIT: false switches config.admin of all proxies off (default true).",
    "POD_NAMESPACE, POD_NAME: where it runs, and its identity (default tracegate-system, the host name).",
    "LOG_LEVEL: error, warn, info, debug or trace (default info). LOG_FORMAT: json or text (default json).",
  ],
  options: {
    kubeconfig: { type: "text", value: "file", completes: "file", summary: "Path of a kubeconfig" },
    context: { type: "text", value: "name", summary: "Context of the kubeconfig" },
  },
  examples: [
    { does: "In a pod", run: "controller" },
    { does: "Against a cluster, from outside", run: "controller --kubeconfig ~/.kube/config --context kind" },
  ],
  async run({ options: { kubeconfig, context: chosen } }, { env }) {
    const { runController } = await import("./controller.ts");
    return runController(env, {
      ...(kubeconfig !== undefined && { kubeconfig }),
      ...(chosen !== undefined && { context: chosen }),
    });
  },
});

const healthcheck = defineCommand({
  name: "healthcheck",
  summary: "Exit with 0 if the gateway on this host is ready, else with 1",
  description: ["For HEALTHCHECK of containers and for scripts; Kubernetes probes the readiness server itself."],
  options: {
    url: {
      type: "text",
      value: "url",
      summary: "URL of the readiness server, see config.readinessAddr (default http://127.0.0.1:15021/healthz/ready)",
    },
  },
  examples: [
    { does: "The default address", run: "healthcheck" },
    { does: "Another one", run: "healthcheck --url http://127.0.0.1:8021/healthz/ready" },
  ],
  async run({ options: { url = "http://127.0.0.1:15021/healthz/ready" } }, { stdout }) {
    if (!/^http:\/\/./.test(url) || !URL.canParse(url))
      throw usage(
        `${url} is not a URL of a readiness server`,
        "tracegate healthcheck --url http://127.0.0.1:15021/healthz/ready",
      );
    const { probeReadiness } = await import("./healthcheck.ts");
    const { ready, answer } = await probeReadiness(url);
    await write(stdout, `${answer}\n`);
    return ready ? 0 : 1;
  },
});

const own: readonly Command[] = [run, check, explain, oneshot, migrate, quickstart, init, healthcheck, controller];

/** `tracegate` with all its commands. */
export const tracegate: Program = {
  name: "tracegate",
  summary: "A gateway that shows step by step what it did with one request",
  description: ["Watch a request: tgctl proxy trace --local"],
  commands: [
    ...own,
    convertGroup,
    helpCommand(
      () => tracegate,
      [...own, convertGroup].map(({ name }) => name),
      "check",
    ),
    completionCommand("tracegate"),
  ],
  fallback: "run",
  errorPrefix: "tracegate",
  environment: [
    ["RUST_LOG", "Log filter, such as info or upstream=debug; overrides config.logging.level"],
    ["LOG_FORMAT", "text, json, combined or common; overrides config.logging.format"],
    ["NO_COLOR", "When set, explanations in a terminal have no colors"],
  ],
  exitCodes: [
    [0, "success"],
    [1, "the configuration is invalid, or the start failed"],
    [2, "the command line is wrong"],
  ],
  async version(form, context) {
    const info = versionInfo();
    await write(context.stdout, form === "long" ? `${JSON.stringify(info, undefined, 2)}\n` : `${info.version}\n`);
  },
  hintFor: (word) => (/\.(ya?ml|json)$/.test(word) ? `tracegate -f ${word}` : undefined),
};

function onlyOneSource({
  file,
  config,
}: {
  readonly file: readonly string[];
  readonly config?: string | undefined;
}): void {
  if (file.length > 0 && config !== undefined) throw usage("only one of --config or --file");
}
