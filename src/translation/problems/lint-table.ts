/**
 * What is valid in a configuration and most likely not intended: the closed table of lints. Each has a code, by which programs and
 * `docs/lints.md` name it, and makes its own text from what was found.
 */

interface Lint<Found extends readonly never[]> {
  /** Of a note the effect is often intended. */
  readonly severity: "warning" | "note";
  readonly title: string;
  /** What happens, and why that is rarely intended. */
  readonly meaning: string;
  /** What to do about it. */
  readonly remedy: string;
  /** What was found; the place is said elsewhere. */
  says(...found: Found): string;
  /** Whether this one is a note; absent: as `severity` says. */
  isNote?(...found: Found): boolean;
  /** The remedy in this case; absent: `remedy`. */
  mends?(...found: Found): string;
}

export const LINTS = {
  "shadowed-route": lint({
    severity: "warning",
    title: "A route never wins",
    meaning: "For every request that the route matches, another route takes precedence, so it serves none.",
    remedy: "remove it, or change the matches of one of them",
    says: (winners: readonly string[]) =>
      `never wins: ${listed(winners)} ${winners.length === 1 ? "takes" : "take"} precedence for every request that it matches`,
  }),
  "unreachable-match": lint({
    severity: "warning",
    title: "A match never wins",
    meaning:
      "The route has other matches that are reached, but for every request that meets this one another match takes precedence.",
    remedy: "remove it",
    says: (winner: string) => `has no effect: ${winner} takes precedence for every request that meets it`,
  }),
  "unreachable-hostname": lint({
    severity: "warning",
    title: "A route's hostnames are not the listener's",
    meaning: "The listener accepts none of the hosts of the route, so the route serves no request.",
    remedy: "change the hostname of the listener or of the route",
    says: (hostname: string) => `never matches: the listener takes ${hostname} only`,
  }),
  "impossible-match": lint({
    severity: "warning",
    title: "No request can meet a match",
    meaning: "Conditions of the match contradict each other or HTTP, so it selects no request.",
    remedy: "remove one of the conditions",
    says: (why: string) => `no request can meet this: ${why}`,
  }),
  "bypassed-authentication": lint({
    severity: "warning",
    title: "Another route leads past authentication",
    meaning:
      "A match requires credentials, and a route that requires none leads to the same place of the same backend. Either a broader route gets requests for the same path that the match does not select: `POST` beside `GET`, `/admin/` beside the exact path `/admin`, `/admin` beside the expression `/admin/.*`. Or a route replaces its prefix by one that the protected path begins with: where `/api` becomes `/`, a request for `/api/admin` gets to `/admin`. Routes of other hosts are not compared.",
    remedy: "require credentials on that route too, or use a backend of its own",
    says: (kind: string, open: string, request: string, sent: string) =>
      request === sent
        ? `${kind} can be bypassed: requests for ${request} that this does not select get ${open}, which leads to the same backend without it`
        : `${kind} can be bypassed: requests for ${request} get ${open}, which sends them to ${sent} of the same backend without it`,
  }),
  "unattached-policy": lint({
    severity: "warning",
    title: "A policy never applies",
    meaning: "Nothing has the part that the policy targets. A target that does not exist at all is an error.",
    remedy: "correct the target, or remove the policy",
    says: (why: string) => `${why}, so this policy never applies`,
  }),
  "replaced-policy": lint({
    severity: "warning",
    title: "A policy is replaced everywhere",
    meaning:
      "Of each kind the policy of the narrowest target applies. Every listener, route or backend that this target covers has one of its own, so this one never applies.",
    remedy: "remove it, or one of those that replace it",
    says: () => "never applies: everything that it covers has another one",
  }),
  "constant-condition": lint({
    severity: "warning",
    title: "A condition is always true or always false",
    meaning:
      "The condition decides in the same way for all requests, such as `request.method == 'GET' && request.method == 'PUT'`. Just `true` or `false` is taken as intended.",
    remedy: "correct it, or write true or false",
    says: (value: boolean, effect: string) => `is always ${value}, so it ${effect}`,
  }),
  "lenient-authentication": lint({
    severity: "warning",
    title: "Requests without credentials pass",
    meaning:
      "The mode of the policy lets requests without credentials pass, and no expression beside it reads who the client is.",
    remedy: "set mode: strict, or authorization rules that deny them",
    says: (mode: string) =>
      `lets requests ${mode === "permissive" ? "with wrong credentials or none" : "without credentials"} pass, because mode is ${mode}`,
  }),
  "absent-value-passes": lint({
    severity: "warning",
    title: "A deny rule passes requests without the value",
    meaning:
      "The rule negates or compares a value. Where that is absent the rule is not true, so requests without it pass.",
    remedy: "handle absence in the expression",
    says: (reads: string, _safe: string) => `denies nothing where ${reads} is absent, so a request without it passes`,
    mends: (_reads, safe) => `to handle absence, write ${safe}`,
  }),
  "unused-root": lint({
    severity: "warning",
    title: "A root certificate is not used",
    meaning: "With `insecure`, every certificate is accepted, so `root` has no effect.",
    remedy: "remove one of them",
    says: () => "has no effect: insecure accepts every certificate",
  }),
  "useless-cache-key": lint({
    severity: "warning",
    title: "A part of a cache key makes no difference",
    meaning: "It is the same for all requests, or it is part of the key already.",
    remedy: "remove it",
    says: (isConstant: boolean) =>
      isConstant
        ? "makes no difference, because it is the same for all requests"
        : "makes no difference: the service is sent this value, so it is already part of the key",
  }),
  "shared-decision": lint({
    severity: "warning",
    title: "Credentials are not part of a cache key",
    meaning:
      "Requests with different credentials share one decision of the authorization service, including its identity.",
    remedy: "remove it",
    says: () => "lets requests with different credentials share one decision, including its identity",
  }),
  "closed-limit": lint({
    severity: "warning",
    title: "A rate limit rejects everything",
    meaning: "A bucket for no tokens lets no request pass.",
    remedy: "raise maxTokens, or use a directResponse",
    says: () => "rejects every request, because maxTokens is 0",
  }),
  "unfilled-limit": lint({
    severity: "warning",
    title: "A rate limit never refills",
    meaning: "After the first requests, the bucket stays empty.",
    remedy: "set tokensPerFill",
    says: () => "never refills: after maxTokens requests it rejects all",
  }),
  "lower-case-method": lint({
    severity: "warning",
    title: "A method is not in upper case",
    meaning: "Methods are case-sensitive, and clients send those of HTTP in upper case.",
    remedy: "write it in upper case",
    says: (_method: string) => "methods are case-sensitive",
    mends: (method) => `write ${method.toUpperCase()}`,
  }),
  "literal-asterisk": lint({
    severity: "warning",
    title: "An asterisk is not a wildcard",
    meaning: "Paths may contain asterisks, so `/api/*` matches that path only.",
    remedy: "write a pathPrefix or a regex",
    says: (_prefix: string) => "* is taken literally, so only paths with this character match",
    mends: (prefix) => `write pathPrefix: ${prefix} for all paths below it, or regex`,
  }),
  "replaced-prefix": lint({
    severity: "warning",
    title: "There is no prefix to replace",
    meaning: "`path.prefix` replaces the prefix that was matched; requests that another kind of match selects get 500.",
    remedy: "use pathPrefix in the match, or path.full in the policy",
    says: (kind: string) =>
      `every request that this selects gets 500, because ${kind}.path.prefix replaces a matched prefix`,
    mends: (kind) => `use pathPrefix here, or path.full in ${kind}`,
  }),
  "unused-backends": lint({
    severity: "warning",
    title: "Backends get no requests",
    meaning: "A redirect responds to every request of the route.",
    remedy: "remove one of them",
    says: () => "get no requests, because requestRedirect responds to all",
  }),
  "no-backends": lint({
    severity: "warning",
    title: "A route has no backends",
    meaning: "Nothing responds to its requests, so they get 500.",
    remedy: "add one, or a directResponse",
    says: () => "has no backends, so every request gets 500",
  }),
  "no-weight": lint({
    severity: "warning",
    title: "All weights are 0",
    meaning: "No backend may be chosen, so requests get 500.",
    remedy: "raise a weight",
    says: () => "all weights are 0, so every request gets 500",
  }),
  "lone-retry": lint({
    severity: "warning",
    title: "A retry goes to the endpoint that failed",
    meaning:
      "A backend with one address has no other endpoint for the next attempt, so it fails too while that is down.",
    remedy: "set otherBackends, or give the backend more endpoints",
    says: (endpoint: string, _hasOthers: boolean) =>
      `a retry at ${endpoint} goes to the same endpoint again, also when it is down`,
    mends: (_endpoint, hasOthers) =>
      hasOthers
        ? "with otherBackends: true it goes to another backend, false leaves it there"
        : "the route has no other",
    isNote: (_endpoint, hasOthers) => !hasOthers,
  }),
  "retried-methods": lint({
    severity: "note",
    title: "Every method is retried",
    meaning: "A request that is repeated may take effect twice, such as a POST.",
    remedy: "add a precondition that names idempotent methods",
    says: (_precondition: string) => "repeats every method, so a POST may take effect twice",
    mends: (precondition) => `to keep it to idempotent methods, add precondition: ${precondition}`,
  }),
  "foreign-certificate": lint({
    severity: "warning",
    title: "A certificate is not for the listener's host",
    meaning: "Clients compare the names of the certificate with the host, and end the handshake.",
    remedy: "use a certificate for the hostname",
    says: (hostname: string, isOnly: boolean, names: readonly string[]) =>
      `${isOnly ? "the certificate is not valid" : "none of the certificates is valid"} for ${hostname}${names.length === 0 ? "" : `, only for ${names.join(", ")}`}; clients will reject it`,
  }),
  "small-body-budget": lint({
    severity: "warning",
    title: "A body of the largest size does not fit",
    meaning: "`maxBufferedBytes` limits all bodies of a worker together, `maxBufferSize` a single one.",
    remedy: "raise maxBufferedBytes too",
    says: (budget: number) => `a body of this size gets 503, because maxBufferedBytes is ${budget}`,
    mends: () => "raise that too",
  }),
  "trusted-balancer": lint({
    severity: "warning",
    title: "A load balancer counts as a trusted proxy",
    meaning:
      "With PROXY headers the TCP peer is the load balancer, which passes on what its clients say about themselves.",
    remedy: "leave it out of trustedProxies",
    says: () =>
      "is compared with the TCP peer, here a load balancer with PROXY headers; if it is listed, its clients can set X-Forwarded-For, unless it rewrites HTTP itself",
  }),
  "open-proxy-protocol": lint({
    severity: "warning",
    title: "Every peer may send a PROXY header",
    meaning: "Whoever can connect chooses the address of the client in rules, limits and logs.",
    remedy: "set frontendPolicies.proxyProtocol.from to the networks of the load balancers",
    says: () => "lets every peer send a PROXY header and so choose the client address in rules, limits and logs",
  }),
  "public-admin": lint({
    severity: "warning",
    title: "The admin server is not local",
    meaning: "The admin server has no authentication, and other machines can reach its address.",
    remedy: "use localhost",
    says: () => "other machines can reach it, and it has no authentication",
  }),
} as const;

export type LintCode = keyof typeof LINTS;

/** What the text of a lint says. */
export type Found<Code extends LintCode> = Parameters<(typeof LINTS)[Code]["says"]>;

/** The texts of a finding. */
export function lintTexts<Code extends LintCode>(
  code: Code,
  ...found: Found<Code>
): { readonly message: string; readonly remedy: string } {
  const { says, mends, remedy } = LINTS[code] as unknown as Lint<never[]>;
  const values = found as never[];
  return { message: says(...values), remedy: mends?.(...values) ?? remedy };
}

/** Whether the effect of what was found is often intended. */
export function isNote<Code extends LintCode>(code: Code, ...found: Found<Code>): boolean {
  const { isNote, severity } = LINTS[code] as unknown as Lint<never[]>;
  return isNote?.(...(found as never[])) ?? severity === "note";
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

// Infers what the texts need.
function lint<const Found extends readonly unknown[]>(each: {
  readonly severity: "warning" | "note";
  readonly title: string;
  readonly meaning: string;
  readonly remedy: string;
  readonly says: (...found: Found) => string;
  readonly isNote?: (...found: Found) => boolean;
  readonly mends?: (...found: Found) => string;
}) {
  return each;
}
