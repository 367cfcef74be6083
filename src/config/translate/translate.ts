/**
 * Translates a validated configuration file to IR. Pure apart from the files that it reads: the same input gives the same IR. What
 * the schema cannot express is checked here: references, duplicates, ports, certificates, and policies at the wrong place.
 * Everything is reported by path through `Report`; translation continues with the rest, so that one run finds all problems.
 */
import type { ListenAddress } from "../../base/listen-address.ts";
import { formatPath, type Path } from "../../base/paths.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import { hasPort } from "../../ir/bind-addresses.ts";
import type { Backend, Bind, Frontend, Ir, RouteGroup } from "../../ir/ir.ts";
import { levelOf, type PolicyLevel, recorded } from "../../ir/origins.ts";
import { mergeLevels, NO_LEVEL } from "../../policies/merge.ts";
import type { LeafCaching } from "../../tls/tls-settings.ts";
import {
  adviseOnAccess,
  adviseOnBodyLimits,
  adviseOnFrontend,
  adviseOnRoutes,
  adviseOnRules,
} from "../../translation/advice.ts";
import { CalledTargets } from "../../translation/called-targets.ts";
import { dumpFrontend, originsOfFrontend, translateCalling, translateFrontend } from "../../translation/frontend.ts";
import { translatePolicies } from "../../translation/policies.ts";
import type { Report } from "../../translation/problems/problem.ts";
import { reportDuplicates } from "../../translation/references.ts";
import type { Resources } from "../../translation/resources/store.ts";
import type { TracingInput } from "../../translation/schema/telemetry.ts";
import type { Locality } from "../../upstream/discovery/locality.ts";
import type { InputReader } from "../parse/inputs.ts";
import type { ConfigFile } from "../schema/config.ts";
import type { BindInput } from "../schema/listeners.ts";
import { adviseOnAcme } from "./acme.ts";
import { ClaimedAddresses } from "./addresses.ts";
import type { Context } from "./context.ts";
import { findCycles } from "./cycles.ts";
import { reportDangling } from "./dangling.ts";
import { keyOf, translateDiscovery } from "./discovery.ts";
import { FileSources } from "./file-sources.ts";
import { translateGateways } from "./gateways.ts";
import { bindAt, translateBind } from "./listeners.ts";
import { translateBackendTarget } from "./pools.ts";
import { reportReplaced } from "./replaced.ts";
import { translateRoute } from "./routes.ts";
import { calledInputs, translateTargeted } from "./targeted.ts";

interface Translated {
  readonly ir: Ir;
  /** URLs that it refers to. Their content is among the resources, or has yet to be fetched. */
  readonly urls: readonly string[];
}

/** The inputs of a translation besides the configuration. */
interface TranslateInput {
  /** The file that has the value at a path: paths of files in it are relative to its folder. */
  readonly fileOf: (path: Path) => string;
  /** The directory that `~/` at the beginning of a path means. */
  readonly home: string | undefined;
  readonly enableIpv6: boolean;
  /** Where the gateway's own servers listen, by the field that says it. */
  readonly servers: Readonly<Record<string, ListenAddress>>;
  /** The names that expressions of this configuration may use. */
  readonly cel: CelEnvironment;
  readonly leafCaching: LeafCaching;
  /** Where this process runs, as far as it knows. */
  readonly locality: Locality;
  /** The configuration that serves comes from a controller. */
  readonly controlled: boolean;
  /** Content of the URLs that it refers to. */
  readonly resources: Resources;
  /** Reads the files that it names. */
  readonly reader: InputReader;
  /** Settings of the environment and of `config.tracing`, which `frontendPolicies.tracing` overrides. */
  readonly formerTracing: TracingInput | undefined;
}

/**
 * Translates a configuration file to IR and reports inconsistencies between its parts. `incomplete` names the top-level fields
 * from which invalid parts were left out; those have been reported.
 */
export function translate(
  config: ConfigFile,
  input: TranslateInput,
  report: Report,
  incomplete: ReadonlySet<string>,
): Translated {
  const { fileOf, home, enableIpv6, servers, cel, leafCaching, locality, controlled, resources, reader } = input;
  const sources = new FileSources(fileOf, home, resources, reader, report);
  const backends = new Map<string, Backend>();
  const backendPolicies = new Map<string, PolicyLevel>();
  const services = new Map(config.services.map((each) => [keyOf(each), each.ports]));
  const calledTargets = new CalledTargets(calledInputs(config), sources, services, report, incomplete, cel);
  const context: Context = {
    report,
    incomplete,
    cel,
    backends,
    backendPolicies,
    routeGroups: new Set(config.routeGroups.map((group) => group.name)),
    services,
    targeted: translateTargeted(config, { report, sources, calledTargets, incomplete, cel }),
    listeners: new Map(),
    inline: [],
    pools: [],
    calledTargets,
    tls: config.frontendPolicies.tls ?? {},
    leafCaching,
    locality,
    sources,
  };
  for (const { backend, inline } of translateBackends(config, context)) {
    backends.set(backend.name, backend);
    backendPolicies.set(backend.name, inline);
  }
  const routeGroups = translateRouteGroups(config, context);
  const former = { logging: config.config.logging, tracing: input.formerTracing };
  const calling = translateCalling(config.frontendPolicies, context, former);
  const written = { path: ["frontendPolicies"] };
  const origins = originsOfFrontend(config.frontendPolicies, written);
  const frontend = translateFrontend(config.frontendPolicies, calling, origins);
  adviseOnFrontend(config.frontendPolicies, report);
  adviseOnAccess(frontend, report);
  adviseOnFormat(config, report);
  const network = ["frontendPolicies", "networkAuthorization", "rules"];
  adviseOnRules(frontend.networkAuthorization ?? [], "network", network, report, cel);
  const binds = translateBinds(config, frontend, enableIpv6, servers, context);
  const served = binds.flatMap((bind) => bind.listeners.flatMap(({ routes }) => routes));
  const routes = [...served, ...routeGroups.flatMap((group) => group.routes)];
  adviseOnBodyLimits(routes, frontend.maxRequestBodySize, report);
  const discovered = translateDiscovery(config, context);
  const ir: Ir = {
    binds,
    routeGroups,
    backends: [...backends.values()],
    services: [...discovered.services, ...context.pools.map(({ service }) => service)],
    workloads: [...discovered.workloads, ...context.pools.flatMap((pool) => pool.workloads)],
    targeted: [...dumpFrontend(config.frontendPolicies, calling, written), ...context.inline, ...context.targeted.all],
    ...(config.config.customFunctions !== "" && { customFunctions: config.config.customFunctions }),
  };
  reportDangling(config, ir, context);
  reportReplaced(config, ir, context);
  if (binds.length === 0 && incomplete.size === 0 && !controlled)
    report([], { message: "serves nothing: there are neither binds nor gateways", warning: true });
  return { ir, urls: sources.urls };
}

/** The formats of Apache have fixed fields. */
function adviseOnFormat({ config: { logging }, frontendPolicies }: ConfigFile, report: Report): void {
  if (logging.format === "text" || logging.format === "json") return;
  const { add = {}, remove = [] } = frontendPolicies.accessLog ?? {};
  for (const [field, count] of [
    ["add", Object.keys(add).length],
    ["remove", remove.length],
  ] as const)
    if (count > 0)
      report(["frontendPolicies", "accessLog", field], {
        message: `has no effect: the fields of ${logging.format} are fixed`,
        remedy: "choose text or json for config.logging.format, or remove it",
        warning: true,
        advice: true,
      });
}

/** `inline`: the policies at the backend itself. */
function translateBackends(config: ConfigFile, context: Context): { backend: Backend; inline: PolicyLevel }[] {
  const named = config.backends.map(({ name }, i) => ({ key: name, name, origin: { path: ["backends", i] } }));
  reportDuplicates("backend", named, context.report);
  return config.backends.map(({ policies, ...input }, i) => {
    const { name } = input;
    const path = ["backends", i];
    const key = `/${name}`;
    const own = levelOf(translatePolicies(policies, "backend", [...path, "policies"], context));
    const target = translateBackendTarget(input, key, path, context);
    const merged = mergeLevels(context.targeted.forBackend(name), own);
    return {
      backend: { key, name, target, origin: { path }, ...recorded(merged, own.set) },
      inline: levelOf(own.set, () => ({ in: { backend: key } })),
    };
  });
}

function translateRouteGroups(config: ConfigFile, context: Context): RouteGroup[] {
  const { report } = context;
  reportDuplicates(
    "route group",
    config.routeGroups.map(({ name }, i) => ({ key: name, name, origin: { path: ["routeGroups", i] } })),
    report,
  );
  const groups = config.routeGroups.map((group, i) => {
    const path = ["routeGroups", i];
    const owner = { key: `group/${group.name}`, targeted: { route: NO_LEVEL, backend: NO_LEVEL } };
    const routes = group.routes.map((route, j) => translateRoute(route, j, owner, [...path, "routes", j], context));
    reportDuplicates("route", routes, report);
    adviseOnRoutes({ hostname: "", routes, tcpRoutes: [] }, report);
    return { name: group.name, origin: { path }, routes };
  });
  for (const cycle of findCycles(groups)) {
    const index = groups.findIndex((group) => group.name === cycle[0]);
    report(["routeGroups", index], {
      message: `route groups delegate in a cycle: ${cycle.join(" → ")}`,
      warning: true,
    });
  }
  return groups;
}

function translateBinds(
  config: ConfigFile,
  frontend: Frontend,
  enableIpv6: boolean,
  servers: TranslateInput["servers"],
  context: Context,
): Bind[] {
  const host = enableIpv6 ? "::" : "0.0.0.0";
  const binds: Bind[] = [];
  const claimed = new ClaimedAddresses(servers, context.report);
  let wildcard = false;
  const claimWildcard = (path: Path): void => {
    if (wildcard)
      context.report(path, {
        message: "another internal bind has no port either; only one may serve the ports of no bind",
      });
    wildcard = true;
  };
  const add = (bind: Bind, { mode, port }: Pick<BindInput, "mode" | "port">, owner: string, path: Path): void => {
    if (mode === "internal" && (port ?? 0) === 0) claimWildcard(path);
    else if (port !== undefined || !hasPort(bind)) claimed.claim(bind, owner, path);
    binds.push(bind);
  };
  for (const [i, input] of config.binds.entries()) {
    const path = ["binds", i];
    add(translateBind(input, path, frontend, host, context), input, `binds[${i}]`, path);
  }
  for (const { input, at, path, listeners } of translateGateways(config, context))
    add(bindAt({ input, at, listeners }, path, frontend, host, context), input, formatPath(path), path);
  adviseOnAcme(binds, context.report);
  return binds;
}
