/** Warnings about settings that are valid but most likely not intended. */
import { isIP } from "node:net";
import { DEFAULT_BUFFERED_BYTES } from "../base/buffered-bytes.ts";
import type { ListenAddress } from "../base/listen-address.ts";
import type { Path } from "../base/paths.ts";
import type { CelEnvironment, Scope } from "../cel/index.ts";
import type { Frontend, Listener, ProxyProtocol, Route } from "../ir/ir.ts";
import type { Authorization, AuthorizationRule } from "../policies/authorization/schema.ts";
import { isConditional } from "../policies/define/conditional.ts";
import type { ExtAuthz } from "../policies/ext-authz/schema.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import { readCertificate } from "../tls/certificate-list.ts";
import { altNames } from "../tls/client-certificate.ts";
import type { TlsServer } from "../tls/tls-settings.ts";
import { targetName } from "../upstream/settings/pool-target.ts";
import type { Target } from "../upstream/settings/target.ts";
import type { Report } from "./problems/problem.ts";
import type { FrontendInput } from "./schema/frontend.ts";

/**
 * Policies that let requests without credentials pass unless their mode says otherwise (docs/policies/jwt-auth.md,
 * docs/policies/basic-auth.md, docs/policies/api-key.md), each with the variable that rules test instead.
 */
const AUTHENTICATION = [
  ["jwtAuth", "jwt"],
  ["basicAuth", "basicAuth"],
  ["apiKey", "apiKey"],
] as const;

/** About the inline policies at `path`, not those that are attached by `policies[]`. */
export function adviseOnPolicies(set: PolicySet, path: Path, report: Report): void {
  for (const [kind, variable] of AUTHENTICATION) {
    const mode = set[kind]?.mode ?? "optional";
    if (set[kind] === undefined || mode === "strict" || tests(set.authorization, variable)) continue;
    warn(report, [...path, kind], lenient(mode));
  }
  const { backendTLS } = set;
  if (backendTLS?.insecure === true && backendTLS.root !== undefined)
    warn(
      report,
      [...path, "backendTLS", "root"],
      "has no effect: insecure accepts every certificate; remove one of them",
    );
  const { extAuthz } = set;
  if (extAuthz !== undefined && "conditional" in extAuthz)
    for (const [i, each] of extAuthz.conditional.entries())
      adviseOnCache(each, [...path, "extAuthz", "conditional", i], report);
  else if (extAuthz !== undefined) adviseOnCache(extAuthz, [...path, "extAuthz"], report);
  const limits = Array.isArray(set.localRateLimit) ? set.localRateLimit : [];
  for (const [i, { maxTokens, tokensPerFill }] of limits.entries()) {
    const at = [...path, "localRateLimit", i];
    if (maxTokens === 0) warn(report, at, "rejects every request, because maxTokens is 0");
    else if (tokensPerFill === 0)
      warn(report, at, "never refills: after maxTokens requests it rejects all; set tokensPerFill");
  }
}

/** Expressions for values that services are sent by default. */
const SENT = {
  grpc: /^(request\.(method|path|pathAndQuery|uri|host|scheme|headers\[["'][^"']+["']\])|source\.(address|spiffeId))$/,
  http: /^(request\.(method|path|pathAndQuery|uri|headers\[["']authorization["']\]))$/,
} as const;
const CONSTANT = /^(\d+|true|false|"[^"]*"|'[^']*')$/;
const CREDENTIALS = new Set(["headers.authorization", "headers.cookie", "headers.proxy-authorization"]);

/** About the cache of one authorization service. */
function adviseOnCache({ cache, protocol, includeRequestHeaders }: ExtAuthz, path: Path, report: Report): void {
  const all = includeRequestHeaders.length === 0;
  // Settings may replace the values that the service is sent by default.
  const replaced =
    "http" in protocol && (protocol.http.path !== undefined || ":method" in protocol.http.addRequestHeaders);
  for (const [i, text] of (cache?.key ?? []).entries()) {
    const at = [...path, "cache", "key", i];
    const sent = "grpc" in protocol ? SENT.grpc : SENT.http;
    if (CONSTANT.test(text))
      warn(report, at, "makes no difference, because it is the same for all requests; remove it");
    else if (!replaced && sent.test(text) && (all || !text.includes("headers")))
      warn(
        report,
        at,
        "makes no difference: the service is sent this value, so it is already part of the key; remove it",
      );
  }
  for (const [i, part] of (cache?.ignore ?? []).entries())
    if (CREDENTIALS.has(part))
      warn(
        report,
        [...path, "cache", "ignore", i],
        "lets requests with different credentials share one decision, including its identity; remove it",
      );
}

/** Whether a rule reads the variable. */
function tests(authorization: Authorization | undefined, variable: string): boolean {
  const read = new RegExp(`\\b${variable}\\b`);
  return authorization?.rules.some(({ expression }) => read.test(expression)) ?? false;
}

function lenient(mode: string): string {
  const pass = mode === "permissive" ? "with wrong credentials or none" : "without credentials";
  return `lets requests ${pass} pass, because mode is ${mode}; set mode: strict, or authorization rules that deny them`;
}

/** About one route: its matches and backends. */
export function adviseOnRoute(route: Route, path: Path, report: Report): void {
  for (const [i, { method }] of route.matches.entries())
    if (method !== undefined && method !== method.toUpperCase())
      warn(report, [...path, "matches", i, "method"], `methods are case-sensitive; write ${method.toUpperCase()}`);
  adviseOnPaths(route, path, report);
  adviseOnPrefixes(route, path, report);
  const { directResponse, requestRedirect } = route.policies;
  if (requestRedirect !== undefined && !isConditional(requestRedirect) && route.backends.length > 0)
    warn(report, [...path, "backends"], "get no requests, because requestRedirect responds to all; remove one of them");
  if (directResponse !== undefined || requestRedirect !== undefined) return;
  if (route.backends.length === 0)
    warn(report, path, "has no backends, so every request gets 500; add one, or a directResponse");
  else if (route.backends.every(({ weight }) => weight === 0))
    warn(report, [...path, "backends"], "all weights are 0, so every request gets 500");
  else adviseOnRetries(route, path, report);
}

/** Retries to a backend with a single endpoint do not help while that endpoint is down. */
function adviseOnRetries({ policies, backends }: Route, path: Path, report: Report): void {
  if (policies.retry === undefined || policies.retry.otherBackends !== undefined) return;
  const used = backends.filter(({ weight }) => weight > 0);
  const single = used.flatMap(({ target }) => onlyAddress(target) ?? [])[0];
  if (single === undefined) return;
  const at = [...path, "policies", "retry"];
  const again = `a retry at ${single} goes to the same endpoint again, also when it is down`;
  if (used.length > 1)
    warn(report, at, `${again}; with otherBackends: true it goes to another backend, false leaves it there`);
  else report(at, { message: `${again}: the route has no other`, note: true });
}

/** The one address of a target; undefined for names and services, which may have several. */
function onlyAddress(target: Target): string | undefined {
  if (target.type === "unix") return `unix:${target.path}`;
  return target.type === "static" && isIP(target.host) !== 0 ? targetName(target) : undefined;
}

/** Users may write `/api/*` and mean a prefix. Paths may contain `*`, so this is not necessarily a mistake. */
function adviseOnPaths({ matches }: Route, path: Path, report: Report): void {
  for (const [i, { path: match }] of matches.entries())
    if (match.type !== "regex" && match.value.includes("*")) {
      const instead = match.value.slice(0, match.value.indexOf("*")).replace(/\/+$/, "") || "/";
      const message = `* is taken literally, so only paths with this character match; write pathPrefix: ${instead} for all paths below it, or regex`;
      warn(report, [...path, "matches", i, "path", match.type], message);
    }
}

/** `path.prefix` replaces a matched prefix, so it fails with 500 for requests that another kind of match selected. */
function adviseOnPrefixes({ matches, policies, backends }: Route, path: Path, report: Report): void {
  // The route of the group is matched last, and has matches of its own.
  if (backends.some(({ target }) => target.type === "routeGroup")) return;
  const others = [...matches.entries()].filter(([, match]) => match.path.type !== "pathPrefix");
  for (const kind of ["urlRewrite", "requestRedirect"] as const) {
    const policy = policies[kind];
    if (policy === undefined || isConditional(policy) || policy.path === undefined || !("prefix" in policy.path))
      continue;
    const why = `${kind}.path.prefix replaces a matched prefix; use pathPrefix here, or path.full in ${kind}`;
    for (const [i, match] of others)
      report([...path, "matches", i, "path", match.path.type], {
        message: `every request that this selects gets 500, because ${why}`,
        warning: others.length < matches.length,
      });
  }
}

/** About the routes of a listener: those that no request can reach because of others; each is reported at its path. */
export function adviseOnRoutes(
  { hostname, routes }: Pick<Listener, "hostname" | "routes">,
  paths: readonly Path[],
  report: Report,
): void {
  const winners = new Map<string, Route>();
  // Of equal matches the route whose key comes first wins (docs/lifecycle.md#4-match-route).
  for (const route of [...routes].sort((a, b) => (a.key < b.key ? -1 : 1))) {
    const path = paths[routes.indexOf(route)] ?? [];
    const hosts = route.hostnames.filter((host) => meet(host, hostname));
    if (route.hostnames.length > 0 && hosts.length === 0) {
      warn(report, [...path, "hostnames"], `never matches: the listener takes ${hostname} only`);
      continue;
    }
    const conditions = (hosts.length > 0 ? hosts : [""]).flatMap((host) =>
      route.matches.map((match) => JSON.stringify([host, match])),
    );
    const rivals = new Set(conditions.map((condition) => winners.get(condition)));
    const [rival] = rivals;
    if (conditions.length > 0 && rivals.size === 1 && rival !== undefined)
      warn(report, path, `never wins: ${rival.name} has the same hostnames and matches, and its name comes first`);
    for (const condition of conditions) if (!winners.has(condition)) winners.set(condition, route);
  }
}

/** Whether a host can fit both names; a name is a host, `*.` with a host, or nothing for all hosts. */
function meet(one: string, other: string): boolean {
  if (one === "" || other === "" || one === "*" || other === "*" || one === other) return true;
  if (!one.startsWith("*")) return other.startsWith("*") && one.endsWith(other.slice(1));
  return other.startsWith("*") ? one.endsWith(other.slice(1)) || other.endsWith(one.slice(1)) : meet(other, one);
}

/** About the certificates of a listener at `path`: whether one of them is for its hosts. */
export function adviseOnCertificates(tls: TlsServer, written: string, path: Path, report: Report): void {
  const hostname = written.toLowerCase();
  if (tls.dynamicCa !== undefined || hostname === "" || hostname === "*") return;
  const others = tls.otherCertificates ?? [];
  const certificates = [tls, ...others].flatMap(({ cert }) => readCertificate(cert) ?? []);
  const names = certificates.flatMap(({ subjectAltName = "" }) => altNames(subjectAltName, "DNS"));
  const valid = hostname.startsWith("*")
    ? names.some((name) => meet(name.toLowerCase(), hostname))
    : certificates.some((certificate) => certificate.checkHost(hostname) !== undefined);
  if (valid) return;
  const none = others.length === 0 ? "the certificate is not valid" : "none of the certificates is valid";
  const instead = names.length === 0 ? "" : `, only for ${names.join(", ")}`;
  warn(report, [...path, "cert"], `${none} for ${hostname}${instead}; clients will reject it`);
}

/** About the memory for buffered bodies. */
export function adviseOnBodies(
  { maxBufferSize, maxBufferedBytes = DEFAULT_BUFFERED_BYTES }: Frontend,
  report: Report,
): void {
  if (maxBufferSize <= maxBufferedBytes) return;
  warn(
    report,
    ["frontendPolicies", "http", "maxBufferSize"],
    `a body of this size gets 503, because maxBufferedBytes is ${maxBufferedBytes}; raise that too`,
  );
}

/** Advice about peers that may set the address of a client. */
export function adviseOnProxies(
  { proxyProtocol, proxy, http }: Pick<FrontendInput, "proxyProtocol" | "proxy" | "http">,
  report: Report,
): void {
  const used = proxyProtocol ?? proxy;
  if (used === undefined) return;
  adviseOnPeers(used, ["frontendPolicies", proxyProtocol === undefined ? "proxy" : "proxyProtocol"], report);
  if ((http?.forwarded?.trustedProxies?.length ?? 0) > 0)
    warn(
      report,
      ["frontendPolicies", "http", "forwarded", "trustedProxies"],
      "is compared with the TCP peer, here a load balancer with PROXY headers; if it is listed, its clients can set X-Forwarded-For, unless it rewrites HTTP itself",
    );
}

/** About a port whose connections begin with a PROXY header. */
export function adviseOnPeers(settings: ProxyProtocol | undefined, path: Path, report: Report): void {
  if (settings?.from === undefined)
    warn(
      report,
      path,
      "lets every peer send a PROXY header and so choose the client address in rules, limits and logs; set frontendPolicies.proxyProtocol.from to the networks of the load balancers",
    );
}

/** About the address of the admin server, which has no authentication. */
export function adviseOnAdmin(address: ListenAddress, report: Report): void {
  if (address.type === "socket" && !/^(127\.|::1$)/.test(address.host))
    warn(report, ["config", "adminAddr"], "other machines can reach it, and it has no authentication; use localhost");
}

function warn(report: Report, path: Path, message: string): void {
  report(path, { message, warning: true, advice: true });
}

/** Warns about `deny` rules, at `path`, that a request passes by omitting the value they negate or compare. The rules compile. */
export function warnAboutDenyRules(
  rules: readonly AuthorizationRule[],
  scope: Scope,
  path: Path,
  report: Report,
  cel: CelEnvironment,
): void {
  for (const [i, { mode, expression }] of rules.entries()) {
    if (mode !== "deny") continue;
    for (const { reads, safe } of cel.absenceTraps(expression, scope))
      report([...path, i, "deny"], {
        message: `denies nothing where ${reads} is absent, so a request without it passes; to handle absence, write ${safe}`,
        warning: true,
      });
  }
}
