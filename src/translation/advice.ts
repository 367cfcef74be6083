/** Warnings about settings that are valid but most likely not intended. */
import { isIP } from "node:net";
import type { z } from "zod";
import { DEFAULT_BUFFERED_BYTES } from "../base/buffered-bytes.ts";
import type { ListenAddress } from "../base/listen-address.ts";
import type { Path } from "../base/paths.ts";
import type { CelEnvironment, Scope } from "../cel/index.ts";
import type { Frontend, Listener, ProxyProtocol, Route } from "../ir/ir.ts";
import type { AuthorizationRule } from "../policies/authorization/schema.ts";
import { isConditional } from "../policies/define/conditional.ts";
import type { ExtAuthz } from "../policies/ext-authz/schema.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import { readCertificate } from "../tls/certificate-list.ts";
import { altNames } from "../tls/client-certificate.ts";
import type { TlsServer } from "../tls/tls-settings.ts";
import { targetName } from "../upstream/settings/pool-target.ts";
import type { Target } from "../upstream/settings/target.ts";
import { lintedRoute, meet, type RoutePlace } from "./linted-route.ts";
import { writtenConditions } from "./problems/known-fields.ts";
import { lint } from "./problems/lint.ts";
import { lintTexts } from "./problems/lint-table.ts";
import type { Report } from "./problems/problem.ts";
import { lintRoutes } from "./route-lints.ts";
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
export function adviseOnPolicies(set: PolicySet, path: Path, report: Report, cel: CelEnvironment): void {
  for (const [kind, variable] of AUTHENTICATION) {
    const mode = set[kind]?.mode ?? "optional";
    const { [kind]: own, ...others } = set;
    if (own === undefined || mode === "strict" || reads(others, variable, cel)) continue;
    lint(report, [...path, kind], "lenient-authentication", mode);
  }
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

/** About one route: its matches and backends. */
export function adviseOnRoute(route: Route, path: Path, report: Report): void {
  for (const [i, { method }] of route.matches.entries())
    if (method !== undefined && method !== method.toUpperCase())
      lint(report, [...path, "matches", i, "method"], "lower-case-method", method);
  adviseOnPaths(route, path, report);
  adviseOnPrefixes(route, path, report);
  const { directResponse, requestRedirect } = route.policies;
  if (requestRedirect !== undefined && !isConditional(requestRedirect) && route.backends.length > 0)
    lint(report, [...path, "backends"], "unused-backends");
  if (directResponse !== undefined || requestRedirect !== undefined) return;
  if (route.backends.length === 0) lint(report, path, "no-backends");
  else if (route.backends.every(({ weight }) => weight === 0)) lint(report, [...path, "backends"], "no-weight");
  else adviseOnRetries(route, path, report);
}

/** Retries to a backend with a single endpoint do not help while that endpoint is down. */
function adviseOnRetries({ policies, backends }: Route, path: Path, report: Report): void {
  if (policies.retry === undefined || policies.retry.otherBackends !== undefined) return;
  const used = backends.filter(({ weight }) => weight > 0);
  const single = used.flatMap(({ target }) => onlyAddress(target) ?? [])[0];
  if (single === undefined) return;
  lint(report, [...path, "policies", "retry"], "lone-retry", single, used.length > 1);
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
      lint(report, [...path, "matches", i, "path", match.type], "literal-asterisk", instead);
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
    for (const [i, match] of others) {
      const at = [...path, "matches", i, "path", match.path.type];
      if (others.length < matches.length) lint(report, at, "replaced-prefix", kind);
      // The policy never works.
      else report(at, lintTexts("replaced-prefix", kind));
    }
  }
}

/** About the routes of a listener or group together, those of connections after those of HTTP; each is reported at its origin. */
export function adviseOnRoutes(
  owner: Pick<Listener, "hostname" | "routes" | "tcpRoutes" | "policies">,
  report: Report,
): void {
  const routes = [...owner.routes, ...owner.tcpRoutes];
  const linted = routes.map((route) => lintedRoute(route, owner.hostname));
  const findings = lintRoutes(owner.policies, linted, ({ route, match }, loser) =>
    route === loser ? `matches[${match}]` : route.name,
  );
  const pathOf = ({ route: { origin }, match }: RoutePlace): Path => {
    const path = origin?.path ?? [];
    return match === undefined ? path : [...path, "matches", match];
  };
  for (const finding of findings) {
    const { code, found, field, related } = finding;
    const at = field === undefined ? pathOf(finding) : [...pathOf(finding), field];
    const places = related.map((each) => ({ path: pathOf(each), message: each.message }));
    report(at, { ...lintTexts(code, ...(found as never)), warning: true, advice: true, lint: code, related: places });
  }
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
  lint(report, [...path, "cert"], "foreign-certificate", hostname, others.length === 0, names);
}

/** About the memory for buffered bodies. */
export function adviseOnBodies(
  { maxBufferSize, maxBufferedBytes = DEFAULT_BUFFERED_BYTES }: Frontend,
  report: Report,
): void {
  if (maxBufferSize <= maxBufferedBytes) return;
  lint(report, ["frontendPolicies", "http", "maxBufferSize"], "small-body-budget", maxBufferedBytes);
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
    lint(report, ["frontendPolicies", "http", "forwarded", "trustedProxies"], "trusted-balancer");
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
