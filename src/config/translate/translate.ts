import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Backend, Bind, Ir } from "../../ir/ir.ts";
import type { ConfigDocument } from "../document.ts";
import type { ConfigFile } from "../schema/config.ts";
import type { Context, Path } from "./context.ts";
import { findCycles } from "./cycles.ts";
import { translateGateways } from "./gateways.ts";
import { makeBind, translateBind, translateFrontend } from "./listeners.ts";
import { mergePolicies, toPolicySet } from "./policies.ts";
import { reportDuplicates, translateRoute } from "./routes.ts";
import { translateTargeted } from "./targeted.ts";
import { translateTarget } from "./targets.ts";

export interface Translated {
  readonly ir: Ir;
  /** Files that the configuration names and that were read. */
  readonly files: readonly string[];
}

/** The configuration file as runtime types. What is wrong between its parts is reported to the document. */
export function translate(config: ConfigFile, document: ConfigDocument, enableIpv6: boolean): Translated {
  const report: Context["report"] = (path, problem) => document.report(path, problem);
  const targeted = translateTargeted(config, report);
  const files: string[] = [];
  const services = new Map(config.services.map((each) => [`${each.namespace}/${each.hostname}`, each.ports]));
  const backends = new Map<string, Backend>();
  const context: Context = {
    report,
    backends,
    routeGroups: new Set(config.routeGroups.map((group) => group.name)),
    services,
    forListener: targeted.forListener,
    forRoute: targeted.forRoute,
    readFile: (path, file) => {
      const full = resolve(dirname(document.file), file);
      files.push(full);
      try {
        return readFileSync(full, "utf8");
      } catch (error) {
        report(path, { message: `cannot read ${file}: ${(error as NodeJS.ErrnoException).code ?? "failed"}` });
        return "";
      }
    },
  };
  for (const [i, input] of config.backends.entries()) {
    if (backends.has(input.name)) report(["backends", i, "name"], { message: `a second backend called ${input.name}` });
    const policies = mergePolicies(targeted.forBackend(input.name), toPolicySet(input.policies));
    const target = translateTarget({ ...input, service: undefined, backend: undefined }, ["backends", i], context);
    backends.set(input.name, { key: `/${input.name}`, name: input.name, target, policies });
  }
  const routeGroups = config.routeGroups.map((group, i) => {
    const routes = group.routes.map((route, j) =>
      translateRoute(route, j, `group/${group.name}`, {}, ["routeGroups", i, "routes", j], context),
    );
    reportDuplicates(
      routes,
      routes.map((_, j) => ["routeGroups", i, "routes", j]),
      context,
    );
    return { name: group.name, routes };
  });
  for (const cycle of findCycles(routeGroups)) {
    const index = routeGroups.findIndex((group) => group.name === cycle[0]);
    report(["routeGroups", index], {
      message: `route groups delegate in a circle: ${cycle.join(" → ")}`,
      warning: true,
    });
  }
  const ir: Ir = {
    binds: translateBinds(config, enableIpv6, context),
    routeGroups,
    backends: [...backends.values()],
    services: config.services.map(({ appProtocols, ...rest }) => ({
      ...rest,
      ...(appProtocols !== undefined && { appProtocols }),
    })),
    workloads: config.workloads.map((workload) => JSON.parse(JSON.stringify(workload)) as Ir["workloads"][number]),
    targeted: targeted.all,
  };
  return { ir, files };
}

function translateBinds(config: ConfigFile, enableIpv6: boolean, context: Context): Bind[] {
  const frontend = translateFrontend(config.frontendPolicies);
  const host = enableIpv6 ? "::" : "0.0.0.0";
  const binds: Bind[] = [];
  const owners = new Map<number, string>();
  const claim = (port: number, owner: string, path: Path): void => {
    const other = owners.get(port);
    if (other !== undefined)
      context.report([...path, "port"], {
        message: `port ${port} is configured by both ${other} and ${owner}; ports must be unique`,
      });
    owners.set(port, owner);
  };
  for (const [i, bind] of config.binds.entries()) {
    const path = ["binds", i];
    claim(bind.port, `binds[${i}]`, path);
    binds.push(translateBind(bind, path, frontend, host, context));
  }
  for (const { port, path, listeners } of translateGateways(config, context)) {
    claim(port, `gateways.${String(path[1])}`, path);
    binds.push(makeBind(port, listeners, path, frontend, host, context));
  }
  return binds;
}
