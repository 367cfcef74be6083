/** Warnings about settings that are valid but most likely not intended. */
import { isDeepStrictEqual } from "node:util";
import type { z } from "zod";
import { DEFAULT_BUFFERED_BYTES } from "../base/buffered-bytes.ts";
import type { ListenAddress } from "../base/listen-address.ts";
import type { Path } from "../base/paths.ts";
import type { CelEnvironment, Scope } from "../cel/index.ts";
import type { Frontend, Listener, ProxyProtocol, Route } from "../ir/ir.ts";
import type { AuthorizationRule } from "../policies/authorization/schema.ts";
import { PolicyError } from "../policies/contract/policy-error.ts";
import type { ExtAuthz } from "../policies/ext-authz/schema.ts";
import { AccessLists, isAllowed } from "../policies/ip-access/access-lists.ts";
import type { IpAccess } from "../policies/ip-access/schema.ts";
import { kindsOf } from "../policies/merge.ts";
import type { PolicyInputs, PolicySet } from "../policies/policy-set.ts";
import { loginsIn } from "../policies/satisfy/logins.ts";
import { readCertificate } from "../tls/certificate-list.ts";
import { altNames } from "../tls/client-certificate.ts";
import type { TlsServer } from "../tls/tls-settings.ts";
import type { Service, Workload } from "../upstream/discovery/discovery.ts";
import { type Locality, localityTiers, prefersNear, whyBehind } from "../upstream/discovery/locality.ts";
import { lintedRoute, meet } from "./linted-route.ts";
import { writtenConditions } from "./problems/known-fields.ts";
import { lint, problemOf } from "./problems/lint.ts";
import { type Finding, lintTexts } from "./problems/lint-table.ts";
import type { Report } from "./problems/problem.ts";
import type { RouteFinding, RoutePlace } from "./route-findings.ts";
import { lintRoutes } from "./route-lints.ts";
import type { FrontendInput } from "./schema/frontend.ts";
import { isAllShadow } from "./shadow-policies.ts";

/**
 * Policies that let requests without credentials pass unless their mode says otherwise (docs/policies/jwt-auth.md,
 * docs/policies/basic-auth.md, docs/policies/api-key.md), each with the variable that rules test instead.
 */
const AUTHENTICATION = [
  ["jwtAuth", "jwt"],
  ["basicAuth", "basicAuth"],
  ["apiKey", "apiKey"],
] as const;

/** About policies at `path`. `around`: all that are written there; what is attached elsewhere is not known. */
export function adviseOnPolicies(
  set: PolicySet,
  around: PolicyInputs,
  path: Path,
  report: Report,
  cel: CelEnvironment,
): void {
  for (const [kind, variable] of AUTHENTICATION) {
    const mode = set[kind]?.mode ?? "optional";
    // Beside `satisfy`, such a policy need not keep anybody out.
    if (set[kind] === undefined || mode === "strict" || set.satisfy !== undefined) continue;
    // Rules that are not enforced yet do not make up for authentication that lets requests pass.
    const others = kindsOf(around).filter((other) => other !== kind && !isAllShadow(other, around[other]));
    if (!others.some((other) => reads(around[other], variable, cel)))
      lint(report, [...path, kind], "lenient-authentication", mode);
  }
  adviseOnAlternatives(set, path, report);
  for (const { redirectURI } of loginsIn(set))
    if (isUnencrypted(redirectURI)) lint(report, path, "unencrypted-login", redirectURI);
  const { backendTLS } = set;
  if (backendTLS?.insecure === true && backendTLS.root !== undefined)
    lint(report, [...path, "backendTLS", "root"], "unused-root");
  const { extAuthz } = set;
  if (extAuthz !== undefined && "conditional" in extAuthz)
    for (const [i, each] of extAuthz.conditional.entries())
      adviseOnCache(each, [...path, "extAuthz", "conditional", i], report);
  else if (extAuthz !== undefined) adviseOnCache(extAuthz, [...path, "extAuthz"], report);
  const limits = Array.isArray(set.localRateLimit) ? set.localRateLimit : [];
  for (const [i, { maxTokens, tokensPerFill }] of limits.entries()) {
    const at = [...path, "localRateLimit", i];
    if (maxTokens === 0) lint(report, at, "closed-limit");
    else if (tokensPerFill === 0) lint(report, at, "unfilled-limit");
  }
}

/** About a service or pool at `path` that prefers near endpoints. `workloads`: all of the service. `own`: where this process runs. */
export function adviseOnLocality(
  service: Pick<Service, "loadBalancer">,
  workloads: readonly Workload[],
  own: Locality,
  path: Path,
  report: Report,
): void {
  const [first] = service.loadBalancer?.routingPreferences ?? [];
  if (first === undefined || !prefersNear(service)) return;
  const isStrict = service.loadBalancer?.mode === "Strict";
  if (own[first] === undefined) lint(report, path, "unknown-locality", first, isStrict);
  else if (isStrict && workloads.length > 0 && localityTiers(service, workloads, own).flat(2).length === 0)
    lint(report, path, "no-near-endpoint", whyBehind(service, workloads[0] as Workload, own));
}

/** About the alternatives of `satisfy`. */
function adviseOnAlternatives(set: PolicySet, path: Path, report: Report): void {
  const alternatives = set.satisfy?.flatMap(({ any }) => any) ?? [];
  const kinds = alternatives.flatMap((each) => kindsOf(each));
  const [only, ...others] = kinds;
  if (only !== undefined && others.length === 0) lint(report, [...path, "satisfy"], "single-alternative", only);
  for (const [i, { apiKey, basicAuth, jwtAuth }] of alternatives.entries()) {
    const pairs = [
      ["apiKey", apiKey?.location, set.apiKey?.location],
      ["basicAuth", basicAuth?.authorizationLocation, set.basicAuth?.authorizationLocation],
      ["jwtAuth", jwtAuth?.location, set.jwtAuth?.location],
    ] as const;
    for (const [kind, own, before] of pairs)
      if (own !== undefined && before !== undefined && isDeepStrictEqual(own, before))
        lint(report, [...path, "satisfy", "any", i, kind], "taken-credential", kind);
  }
}

/** Over plain HTTP, and not to this machine. */
function isUnencrypted(uri: string): boolean {
  const { protocol, hostname } = new URL(uri);
  return protocol === "http:" && !/^(?:localhost|.*\.localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
}

/** About the login of a listener, which protects all its pages. */
export function adviseOnLogout(set: PolicySet, path: Path, report: Report): void {
  for (const { redirectURI, logout } of loginsIn(set))
    if (logout?.redirectURI !== undefined && new URL(logout.redirectURI).host === new URL(redirectURI).host)
      lint(report, path, "protected-logout-page", new URL(logout.redirectURI).pathname, undefined);
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
    const isConstant = CONSTANT.test(text);
    if (isConstant || (!replaced && sent.test(text) && (all || !text.includes("headers"))))
      lint(report, at, "useless-cache-key", isConstant);
  }
  for (const [i, part] of (cache?.ignore ?? []).entries())
    if (CREDENTIALS.has(part)) lint(report, [...path, "cache", "ignore", i], "shared-decision");
}

/** Whether a part of policies is, or has, an expression that reads the variable: a rule, or a limit or transformation by who the client is. */
function reads(part: unknown, variable: string, cel: CelEnvironment): boolean {
  if (typeof part === "object" && part !== null) return Object.values(part).some((each) => reads(each, variable, cel));
  if (typeof part !== "string" || !part.includes(variable)) return false;
  try {
    return cel.compileExpression(part, "response").reads.has(variable);
  } catch {
    // Text of another kind.
    return false;
  }
}

/** About the routes of a listener, or of a group, which has no policies; those of connections after those of HTTP; each is reported at its origin. */
export function adviseOnRoutes(
  owner: Pick<Listener, "hostname" | "routes" | "tcpRoutes"> & Partial<Pick<Listener, "policies">>,
  report: Report,
): void {
  const routes = [...owner.routes, ...owner.tcpRoutes];
  const linted = routes.map((route) => lintedRoute(route, owner.hostname));
  const findings = lintRoutes(owner.policies, linted, ({ route, match }, loser) =>
    route === loser ? `matches[${match}]` : route.name,
  );
  for (const finding of findings) {
    const at = [...pathOf(finding), ...fieldOf(finding)];
    const related = finding.related?.map((each) => ({ path: pathOf(each), message: each.message }));
    // A policy that fails for every match of its route never works, so it is an error.
    report(at, isForAllMatches(finding) ? lintTexts(finding, "file") : problemOf(finding, related));
  }
}

function isForAllMatches({ code, route }: RouteFinding): boolean {
  return (
    code === "replaced-prefix" && "matches" in route && route.matches.every(({ path }) => path.type !== "pathPrefix")
  );
}

function pathOf({ route: { origin }, match }: RoutePlace): Path {
  const path = origin?.path ?? [];
  return match === undefined ? path : [...path, "matches", match];
}

function fieldOf({ route, match = 0, field }: RouteFinding): Path {
  if (field === "path") return ["path", ...("matches" in route ? [route.matches[match]?.path.type ?? ""] : [])];
  if (field === "retry") return ["policies", "retry"];
  return field === undefined ? [] : [field];
}

/** Whether one of the certificates of a listener is for its hosts. `written`: its hostname. */
export function foreignCertificate(tls: TlsServer, written: string): Finding | undefined {
  const hostname = written.toLowerCase();
  if (tls.dynamicCa !== undefined || hostname === "" || hostname === "*") return undefined;
  const others = tls.otherCertificates ?? [];
  const certificates = [tls, ...others].flatMap(({ cert }) => readCertificate(cert) ?? []);
  const names = certificates.flatMap(({ subjectAltName = "" }) => altNames(subjectAltName, "DNS"));
  const valid = hostname.startsWith("*")
    ? names.some((name) => meet(name.toLowerCase(), hostname))
    : certificates.some((certificate) => certificate.checkHost(hostname) !== undefined);
  return valid ? undefined : { code: "foreign-certificate", found: [hostname, others.length === 0, names] };
}

/** About the memory for buffered bodies, and about peers that may set the address of a client. */
export function adviseOnFrontend(
  { proxyProtocol, proxy, http }: Pick<FrontendInput, "proxyProtocol" | "proxy" | "http">,
  report: Report,
): void {
  const budget = http?.maxBufferedBytes ?? DEFAULT_BUFFERED_BYTES;
  if (http !== undefined && http.maxBufferSize > budget)
    lint(report, ["frontendPolicies", "http", "maxBufferSize"], "small-body-budget", budget);
  const used = proxyProtocol ?? proxy;
  if (used === undefined) return;
  adviseOnPeers(used, ["frontendPolicies", proxyProtocol === undefined ? "proxy" : "proxyProtocol"], report);
  if ((http?.forwarded?.trustedProxies?.length ?? 0) > 0)
    lint(report, ["frontendPolicies", "http", "forwarded", "trustedProxies"], "trusted-balancer");
}

/** About addresses that may connect, and proxies whose clients are taken from their fields. */
export function adviseOnAccess({ ipAccess, forwarded, proxyProtocol }: Frontend, report: Report): void {
  const proxies = forwarded?.trustedProxies ?? [];
  // With PROXY headers, the address is not that of the peer.
  if (ipAccess === undefined || proxyProtocol !== undefined || proxies.length === 0) return;
  const lists = listsOf(ipAccess);
  const excluded = proxies.filter((proxy) => lists && !isAllowed(lists.decide(proxy.split("/", 1)[0] ?? "")));
  if (excluded.length > 0) lint(report, ["frontendPolicies", "ipAccess"], "excluded-proxy", excluded);
}

/** Undefined if they have a mistake, which is reported elsewhere. */
function listsOf(ipAccess: IpAccess): AccessLists | undefined {
  try {
    return new AccessLists(ipAccess);
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    return undefined;
  }
}

/** About limits of routes that are above `limit`, that of all requests. 0 = unlimited. */
export function adviseOnBodyLimits(routes: readonly Route[], limit: number, report: Report): void {
  if (limit === 0) return;
  for (const { origin, policies, inline = policies } of routes) {
    const own = inline.maxRequestBodySize;
    if (own !== undefined && (own === 0 || own > limit))
      lint(report, [...(origin?.path ?? []), "policies", "maxRequestBodySize"], "useless-body-limit", limit);
  }
}

/** About a port whose connections begin with a PROXY header. */
export function adviseOnPeers(settings: ProxyProtocol | undefined, path: Path, report: Report): void {
  if (settings?.from === undefined) lint(report, path, "open-proxy-protocol");
}

/** About the address of the admin server, which has no authentication. */
export function adviseOnAdmin(address: ListenAddress, report: Report): void {
  if (address.type === "socket" && !/^(127\.|::1$)/.test(address.host))
    lint(report, ["config", "adminAddr"], "public-admin");
}

/** About `deny` rules at `path`, which compile, that a request passes by omitting the value that they negate or compare. */
export function adviseOnRules(
  rules: readonly AuthorizationRule[],
  scope: Scope,
  path: Path,
  report: Report,
  cel: CelEnvironment,
): void {
  for (const [i, { mode, expression }] of rules.entries())
    if (mode === "deny" && cel.constantOf(expression, scope) === undefined)
      for (const { reads, safe } of cel.absenceTraps(expression, scope))
        lint(report, [...path, i, "deny"], "absent-value-passes", reads, safe);
}

/** About the conditions of a valid value: those with the same result for all requests. */
export function adviseOnConditions(
  schema: z.core.$ZodType,
  value: unknown,
  path: Path,
  report: Report,
  cel: CelEnvironment,
): void {
  for (const { path: at, text, field } of writtenConditions(schema, value, path)) {
    const constant = cel.constantOf(text, field.scope);
    if (constant !== undefined) lint(report, at, "constant-condition", constant, field.constant[`${constant}`]);
  }
}
