import type { Path } from "../../../base/paths.ts";
import type { IngressBackend } from "../../../kube/ingress.ts";
import {
  type Converted,
  type ConvertedListener,
  type ConvertedPort,
  type ConvertedRoute,
  type Json,
  NOT_CONVERTED,
  type Place,
} from "../converted.ts";
import { Findings } from "../findings.ts";
import { merged } from "../merge.ts";
import { listenerName, Names, nameOf } from "../names.ts";
import { pathsInOrder } from "../paths.ts";
import { isTrue } from "./annotations.ts";
import { type Variant, variantsOf } from "./canaries.ts";
import { type IngressManifest, readManifests } from "./manifests.ts";
import { type PathPlan, planOf } from "./paths.ts";
import { type Settings, settingsOf } from "./settings.ts";

/**
 * Converts Ingresses, as ingress-nginx serves them.
 * @throws SyntaxProblem
 */
export function convertIngress(name: string, text: string): Converted {
  return new Conversion(name, text).result();
}

interface Ingress extends IngressManifest {
  readonly settings: Settings;
}

/** A path of a host, with the Ingress that has it. */
interface HostPath {
  readonly ingress: Ingress;
  readonly path: string;
  readonly type: "Exact" | "Prefix" | "ImplementationSpecific";
  readonly backend: IngressBackend;
  readonly at: Place;
}

const CANARY = "nginx.ingress.kubernetes.io/canary";
const HTTP = "http";
const HTTPS = "https";

class Conversion {
  readonly #findings = new Findings();
  readonly #portOf: ReturnType<typeof readManifests>["portOf"];
  readonly #ingresses: readonly Ingress[];
  readonly #canaries: readonly Ingress[];
  readonly #listeners = new Map<string, ConvertedListener>();
  readonly #routes: ConvertedRoute[] = [];
  readonly #usedCanaries = new Set<Ingress>();
  readonly #names = new Names();
  /** Hosts of rules, and the aliases in use. */
  #taken: Set<string> = new Set();
  /** Further names of a host. */
  readonly #aliases = new Map<string, readonly string[]>();

  constructor(file: string, text: string) {
    const { ingresses, portOf } = readManifests(file, text, this.#findings);
    this.#portOf = portOf;
    const isCanary = ({ annotations }: IngressManifest): boolean => isTrue(annotations[CANARY]);
    const withSettings = (each: IngressManifest, findings: Findings): Ingress => ({
      ...each,
      settings: settingsOf(each, findings),
    });
    this.#ingresses = ingresses.filter((each) => !isCanary(each)).map((each) => withSettings(each, this.#findings));
    // The rules of a path are those of its main Ingress, as in ingress-nginx, so its other annotations do not matter.
    this.#canaries = ingresses.filter(isCanary).map((each) => withSettings(each, new Findings()));
    if (ingresses.length === 0)
      this.#findings.find(
        "error",
        { file, line: 1, column: 1 },
        "there is no Ingress to convert",
        "pass what kubectl get ingress,service -A -o yaml prints",
      );
  }

  result(): Converted {
    for (const each of this.#ingresses) this.#addListeners(each);
    const hosts = this.#hosts();
    this.#taken = new Set(hosts.keys());
    for (const [host, paths] of hosts) this.#convertHost(host, paths);
    for (const each of this.#canaries)
      if (!this.#usedCanaries.has(each))
        this.#findings.find(
          "error",
          each.at(["metadata", "name"]),
          `canary ${each.namespace}/${each.name} is left out: no other Ingress of the namespace has its host and path`,
          "pass the main Ingress too",
        );
    const listeners = [...this.#listeners.values()];
    const first = this.#routes[0];
    const http: ConvertedPort[] =
      first === undefined ? [] : [{ name: HTTP, port: 80, listeners: [{ name: HTTP, at: first.at, hostname: "*" }] }];
    return {
      ports: [...http, ...(listeners.length > 0 ? [{ name: HTTPS, port: 443, listeners }] : [])],
      routes: this.#routes,
      backends: [],
      frontendPolicies: {},
      findings: this.#findings.sorted(),
    };
  }

  /** The hosts of `tls`, and their aliases. */
  #addListeners(ingress: Ingress): void {
    for (const [i, { hosts = [], secretName }] of (ingress.spec.tls ?? []).entries()) {
      const at = ingress.at(["spec", "tls", i]);
      const named = hosts.length > 0 ? hosts.map((each) => each.toLowerCase()) : hostsOf(ingress).filter(Boolean);
      if (secretName === undefined) {
        const remedy = "name the Secret with the certificate in secretName";
        this.#findings.find("error", at, `${named.join(", ")}: HTTPS is not served without a certificate`, remedy);
        continue;
      }
      const aliases = hostsOf(ingress).some((host) => named.includes(host)) ? ingress.settings.aliases : [];
      for (const hostname of new Set([...named, ...aliases])) {
        const secret = { namespace: ingress.namespace, name: secretName };
        const known = this.#listeners.get(hostname)?.secret;
        if (known === undefined) {
          const name = listenerName(hostname, this.#listeners.values());
          this.#listeners.set(hostname, { name, at, hostname, secret });
        } else if (known.name !== secret.name || known.namespace !== secret.namespace)
          this.#findings.find(
            "warning",
            at,
            `${hostname} is served with Secret ${known.namespace}/${known.name} of an earlier Ingress`,
            "name one Secret for a host",
          );
      }
    }
  }

  /** Paths by host; an empty host stands for all. */
  #hosts(): ReadonlyMap<string, readonly HostPath[]> {
    const hosts = new Map<string, HostPath[]>();
    const add = (host: string, path: HostPath): void => {
      const paths = hosts.get(host) ?? [];
      const same = paths.find((each) => each.path === path.path && each.type === path.type);
      if (same === undefined) hosts.set(host, [...paths, path]);
      else
        this.#findings.find(
          "warning",
          path.at,
          `${host}${path.path} is served by Ingress ${same.ingress.namespace}/${same.ingress.name}, which is older`,
          "remove one of them",
        );
    };
    for (const ingress of this.#ingresses)
      for (const { host, path } of pathsOf(ingress)) add(host, { ...path, ingress });
    for (const ingress of this.#ingresses) {
      const { defaultBackend } = ingress.spec;
      if (defaultBackend === undefined) continue;
      const own = hostsOf(ingress);
      const at = ingress.at(["spec", "defaultBackend"]);
      for (const host of own.length === 0 ? [""] : own)
        if (hosts.get(host)?.some(({ path, type }) => path === "/" && type !== "Exact") !== true)
          add(host, { ingress, path: "/", type: "Prefix", backend: defaultBackend, at });
    }
    return hosts;
  }

  #convertHost(host: string, unordered: readonly HostPath[]): void {
    const isRegex = unordered.some(({ ingress }) => ingress.settings.isRegex);
    const rank = ({ type }: HostPath): number => (type === "Exact" && !isRegex ? 0 : 1);
    const paths = unordered.toSorted((a, b) => rank(a) - rank(b) || b.path.length - a.path.length);
    const plans = paths.map(({ path, type, ingress, at }) => {
      const plan = planOf(path, type, isRegex, ingress.settings);
      if (plan.isWider)
        this.#findings.find(
          "error",
          at,
          `the regular expression ${path} is not converted: paths that begin like it get 501`,
          "patterns are RE2, without look-around and back-references",
        );
      return plan;
    });
    const matches = pathsInOrder(plans.flatMap(({ shapes }) => shapes));
    this.#aliases.set(host, this.#aliasesOf(paths));
    const tls = this.#tlsOf(host, paths);
    const redirecting = paths.filter(({ ingress }) => tls.length > 0 && redirectsToTls(ingress.settings));
    // Of any host, only hosts with a certificate are redirected.
    const isRedirected = host === "" ? redirecting.length > 0 : redirecting.length === paths.length;
    this.#addAppRoots(host, paths, tls);
    let next = 0;
    for (const [i, each] of paths.entries()) {
      const { shapes } = plans[i] as PathPlan;
      const own = matches.slice(next, next + shapes.length).map((path) => ({ path }));
      next += shapes.length;
      const redirects = host !== "" && redirecting.includes(each);
      if (redirects && !isRedirected) this.#addRedirect(host, each, own, `${each.path}-https`);
      this.#addPath(host, each, plans[i] as PathPlan, own, [...(redirects ? [] : [`${HTTP}/${HTTP}`]), ...tls]);
    }
    const [first] = paths;
    if (isRedirected && first !== undefined) {
      const named = [...this.#listeners.values()].filter(({ name }) => tls.includes(`${HTTPS}/${name}`));
      this.#addRedirect(host, first, [], "https", host === "" ? named.map(({ hostname }) => hostname) : undefined);
    }
    if (first !== undefined) this.#addWww(host, first, tls);
    const forced = paths.find(({ ingress }) => ingress.settings.annotations.is("force-ssl-redirect"));
    if (forced !== undefined && tls.length === 0)
      forced.ingress.settings.annotations.find(
        "error",
        "force-ssl-redirect",
        `${host === "" ? "any host" : host} has no certificate here, so requests are not redirected`,
        "name it in tls, or redirect where TLS ends",
      );
  }

  /** Names that are no host of another Ingress, as in ingress-nginx: its rules must not get a way around them. */
  #aliasesOf(paths: readonly HostPath[]): readonly string[] {
    const own = new Map(
      paths.flatMap(({ ingress: { settings } }) =>
        settings.aliases.map((alias) => [alias, settings.annotations] as const),
      ),
    );
    return [...own].flatMap(([alias, annotations]) => {
      if (!this.#taken.has(alias)) {
        this.#taken.add(alias);
        return alias;
      }
      annotations.find("warning", "server-alias", `${alias} is left out: another Ingress has it`, "remove one of them");
      return [];
    });
  }

  /** The HTTPS listeners of a host: that of its name, or of a wildcard above it; of any host those of its Ingresses. */
  #tlsOf(host: string, paths: readonly HostPath[]): readonly string[] {
    const names =
      host === ""
        ? paths.flatMap(({ ingress }) => ingress.spec.tls?.flatMap(({ hosts = [] }) => hosts) ?? [])
        : [host, ...(this.#aliases.get(host) ?? [])];
    const found = names.flatMap((name) => {
      const listener = this.#listeners.get(name) ?? this.#listeners.get(name.replace(/^[^.]+/, "*"));
      return listener === undefined ? [] : `${HTTPS}/${listener.name}`;
    });
    return [...new Set(found)];
  }

  #addPath(
    host: string,
    each: HostPath,
    { rewrite, isWider }: PathPlan,
    matches: readonly Json[],
    listeners: readonly string[],
  ): void {
    const { settings } = each.ingress;
    const { policies, redirect } = settings;
    const add = (suffix: string, own: readonly Json[], policies: Json, backends: readonly Json[]): void =>
      this.#addRoute(host, each, `${each.path}${suffix}`, { listeners, matches: own, policies, backends });
    if (settings.closed !== undefined || isWider) add("", matches, { directResponse: NOT_CONVERTED }, []);
    else if (redirect !== undefined) add("", matches, merged(policies, redirect), []);
    else {
      const main = this.#backendOf(each);
      if (main === undefined) {
        add("", matches, { directResponse: NOT_CONVERTED }, []);
        return;
      }
      for (const { suffix, conditions, backends } of this.#variants(host, each, main))
        add(
          suffix === "" ? "" : `-${suffix}`,
          matches.map((match) => ({ ...match, ...conditions })),
          merged(policies, rewrite),
          backends,
        );
    }
  }

  #variants(host: string, main: HostPath, backend: Json): readonly Variant[] {
    for (const canary of this.#canaries) {
      const found = pathsOf(canary).find(
        (each) => each.host === host && each.path.path === main.path && canary.namespace === main.ingress.namespace,
      );
      const other = found && this.#backendOf({ ...found.path, ingress: canary });
      if (other === undefined) continue;
      this.#usedCanaries.add(canary);
      return variantsOf(backend, other, canary.settings);
    }
    return [{ suffix: "", conditions: {}, backends: [backend] }];
  }

  /** Undefined: it cannot be named; a finding says why. */
  #backendOf({ ingress, backend: { service, resource }, at }: HostPath): Json | undefined {
    const { namespace, settings } = ingress;
    const lose = (message: string, remedy: string): undefined => {
      this.#findings.find("error", at, `${message}: its requests get 501`, remedy);
      return undefined;
    };
    if (service === undefined)
      return lose(`the backend ${resource?.kind ?? "of no kind"} is not a Service`, "write an HTTPRoute");
    const { name, port } = service;
    const number = port?.number ?? (port?.name && this.#portOf(namespace, name, port.name));
    if (number === undefined || number === "")
      return lose(
        `the number of port ${port?.name ?? "without a name"} of Service ${namespace}/${name} is not known`,
        "pass the Service too: kubectl get ingress,service -A -o yaml",
      );
    const policies = settings.calls;
    return { host: `${name}.${namespace}.svc:${number}`, ...(Object.keys(policies).length > 0 && { policies }) };
  }

  /** `app-root`: where `/` leads to. */
  #addAppRoots(host: string, paths: readonly HostPath[], tls: readonly string[]): void {
    for (const each of paths) {
      const { annotations, closed } = each.ingress.settings;
      const root = annotations.get("app-root");
      if (root === undefined || closed !== undefined || !root.startsWith("/")) continue;
      this.#addRoute(host, each, "app-root", {
        listeners: [
          ...(host !== "" && tls.length > 0 && redirectsToTls(each.ingress.settings) ? [] : [`${HTTP}/${HTTP}`]),
          ...tls,
        ],
        matches: [{ path: { exact: "/" } }],
        policies: { requestRedirect: { path: { full: root }, status: 302 } },
        backends: [],
      });
      return;
    }
  }

  #addRedirect(
    host: string,
    each: HostPath,
    matches: readonly Json[],
    suffix: string,
    hostnames?: readonly string[],
  ): void {
    this.#addRoute(host, each, suffix, {
      ...(hostnames !== undefined && { hostnames }),
      group: `${each.ingress.name}-https`,
      listeners: [`${HTTP}/${HTTP}`],
      matches,
      policies: { requestRedirect: { scheme: "https", status: 308 } },
      backends: [],
    });
  }

  /** `from-to-www-redirect`: the other name of the host leads to it. */
  #addWww(host: string, each: HostPath, tls: readonly string[]): void {
    const { annotations } = each.ingress.settings;
    if (!annotations.is("from-to-www-redirect") || host === "" || host.startsWith("*.")) return;
    const other = host.startsWith("www.") ? host.slice(4) : `www.${host}`;
    const listener = this.#listeners.get(other);
    if (tls.length > 0 && listener === undefined)
      annotations.find("warning", "from-to-www-redirect", `${other} has no certificate: only HTTP is redirected`);
    this.#addRoute(other, each, "www", {
      group: `${each.ingress.name}-www`,
      listeners: [`${HTTP}/${HTTP}`, ...(listener === undefined ? [] : [`${HTTPS}/${listener.name}`])],
      matches: [],
      policies: {
        requestRedirect: { ...(tls.length > 0 && { scheme: "https" }), authority: { full: host }, status: 308 },
      },
      backends: [],
    });
  }

  #addRoute(
    host: string,
    { ingress, at }: HostPath,
    suffix: string,
    route: Pick<ConvertedRoute, "listeners" | "matches" | "policies" | "backends" | "group" | "hostnames">,
  ): void {
    const { namespace, name } = ingress;
    const hostnames = host === "" ? [] : [host, ...(this.#aliases.get(host) ?? [])];
    this.#routes.push({
      name: this.#names.unique(nameOf(`${name}-${host === "" ? "any" : host}-${suffix}`)),
      from: `Ingress ${namespace}/${name}`,
      at,
      namespace,
      group: name,
      ...(hostnames.length > 0 && { hostnames }),
      ...route,
    });
  }
}

/** Over HTTP, requests are redirected unless an annotation says otherwise. */
function redirectsToTls({ annotations }: Settings): boolean {
  return annotations.get("ssl-redirect") !== "false" || annotations.is("force-ssl-redirect");
}

/** Lower-case; an empty one stands for all. */
function hostsOf({ spec: { rules = [] } }: IngressManifest): readonly string[] {
  return [...new Set(rules.map(({ host = "" }) => host.toLowerCase()))];
}

interface RulePath {
  readonly host: string;
  readonly path: Omit<HostPath, "ingress">;
}

function pathsOf({ spec: { rules = [] }, at }: IngressManifest): readonly RulePath[] {
  return rules.flatMap(({ host = "", http }, i) =>
    (http?.paths ?? []).flatMap(({ path = "/", pathType, backend }, j): RulePath | [] => {
      const where: Path = ["spec", "rules", i, "http", "paths", j];
      return { host: host.toLowerCase(), path: { path, type: pathType, backend, at: at(where) } };
    }),
  );
}
