/**
 * What is valid in a configuration and most likely not intended: the closed table of lints. Each has a code, by which programs and
 * `docs/lints.md` name it, and makes its own text from what was found.
 */
import type { Preference } from "../../upstream/discovery/discovery.ts";

/** Where a configuration is written: in a file, or in objects of Kubernetes. */
type Source = "file" | "objects";

/** What to do about a finding: in general, and in this case if there is more to say. */
type Remedy<Found extends readonly unknown[]> = string | readonly [general: string, here: (...found: Found) => string];

/** There is no such finding: what says or prevents it instead. */
interface Elsewhere {
  readonly instead: string;
}

interface Lint<Found extends readonly unknown[]> {
  readonly title: string;
  /** What happens, and why that is rarely intended. */
  readonly meaning: string;
  /** In the words of each source. */
  readonly remedy: { readonly file: Remedy<Found>; readonly objects: Remedy<Found> | Elsewhere };
  /** What was found; the place is said elsewhere. */
  says(...found: Found): string;
  /** When its effect is often intended, so that it is a note and no warning. Absent: never; true: always. */
  readonly isNote?: true | ((...found: Found) => boolean);
}

const PLACE = "config.locality, or LOCALITY in its environment: region/zone/subzone";

/** Where a gateway reads which part of its locality. */
const LOCATED: Readonly<Record<Preference, string>> = {
  region: PLACE,
  zone: PLACE,
  subzone: PLACE,
  node: "NODE_NAME in its environment",
  cluster: "config.clusterId",
  network: "config.network",
};

const ACME_ELSEWHERE: Elsewhere = { instead: "certificates of Gateways are Secrets, which cert-manager renews" };

export const LINTS = {
  "shadowed-route": lint({
    title: "A route never wins",
    meaning: "For every request that the route matches, another route takes precedence, so it serves none.",
    remedy: everywhere("remove it, or change the matches of one of them"),
    says: (winners: readonly string[]) =>
      `never wins: ${listed(winners)} ${winners.length === 1 ? "takes" : "take"} precedence for every request that it matches`,
  }),
  "unreachable-match": lint({
    title: "A match never wins",
    meaning:
      "The route has other matches that are reached, but for every request that meets this one another match takes precedence.",
    remedy: everywhere("remove it"),
    says: (winner: string) => `has no effect: ${winner} takes precedence for every request that meets it`,
  }),
  "unreachable-hostname": lint({
    title: "A route's hostnames are not the listener's",
    meaning: "The listener accepts none of the hosts of the route, so the route serves no request.",
    remedy: {
      file: "change the hostname of the listener or of the route",
      objects: {
        instead: "the condition `Accepted` of the route says so, with the reason `NoMatchingListenerHostname`",
      },
    },
    says: (hostname: string) => `never matches: the listener takes ${hostname} only`,
  }),
  "impossible-match": lint({
    title: "No request can meet a match",
    meaning: "Conditions of the match contradict each other or HTTP, so it selects no request.",
    remedy: {
      file: "remove one of the conditions",
      objects: { instead: "the API server rejects such a match" },
    },
    says: (why: string) => `no request can meet this: ${why}`,
  }),
  "bypassed-authentication": lint({
    title: "Another route leads past authentication",
    meaning:
      "A match requires credentials, and a route that requires none leads to the same place of the same backend. Either a broader route gets requests for the same path that the match does not select: `POST` beside `GET`, `/admin/` beside the exact path `/admin`, `/admin` beside the expression `/admin/.*`. Or a route replaces its prefix by one that the protected path begins with: where `/api` becomes `/`, a request for `/api/admin` gets to `/admin`. Routes of other hosts are not compared.",
    remedy: {
      file: "require credentials on that route too, or use a backend of its own",
      objects: "attach a policy that requires credentials to that route too, or use a backend of its own",
    },
    says: (kind: string, open: string, request: string, sent: string) =>
      request === sent
        ? `${kind} can be bypassed: requests for ${request} that this does not select get ${open}, which leads to the same backend without it`
        : `${kind} can be bypassed: requests for ${request} get ${open}, which sends them to ${sent} of the same backend without it`,
  }),
  "unattached-policy": lint({
    title: "A policy never applies",
    meaning: "Nothing has the part that the policy targets. A target that does not exist at all is an error.",
    remedy: {
      file: "correct the target, or remove the policy",
      objects: { instead: "the condition `Attached` of the policy says so" },
    },
    says: (why: string) => `${why}, so this policy never applies`,
  }),
  "replaced-policy": lint({
    title: "A policy is replaced everywhere",
    meaning:
      "Of each kind the policy of the narrowest target applies. Every listener, route or backend that this target covers has one of its own, so this one never applies.",
    remedy: {
      file: "remove it, or one of those that replace it",
      objects: { instead: "the conditions `Overridden` and `Replaceable` of the policy name those that replace it" },
    },
    says: () => "never applies: everything that it covers has another one",
  }),
  "constant-condition": lint({
    title: "A condition is always true or always false",
    meaning:
      "The condition decides in the same way for all requests, such as `request.method == 'GET' && request.method == 'PUT'`. Just `true` or `false` is taken as intended.",
    remedy: everywhere("correct it, or write true or false"),
    says: (value: boolean, effect: string) => `is always ${value}, so it ${effect}`,
  }),
  "lenient-authentication": lint({
    title: "Requests without credentials pass",
    meaning:
      "The mode of the policy lets requests without credentials pass, and no expression beside it reads who the client is.",
    remedy: everywhere("set mode: strict, or authorization rules that deny them"),
    says: (mode: string) =>
      `lets requests ${mode === "permissive" ? "with wrong credentials or none" : "without credentials"} pass, because mode is ${mode}`,
  }),
  "unserved-login-path": lint({
    title: "A path of the login belongs to another route",
    meaning:
      "Callbacks and logouts of `oidc` arrive at paths of the gateway. If a route without the same policy gets one of them, no login or logout can be completed. Only matches by path are compared, within one listener.",
    remedy: {
      file: "add a match for that path to this route, or attach oidc to the listener",
      objects: "add a match for that path to this route, or attach the policy to the Gateway",
    },
    says: (path: string, other: string) => `its login needs ${path}, which goes to ${other}`,
  }),
  "protected-logout-page": lint({
    title: "The page after a logout requires a login",
    meaning:
      "`logout.redirectURI` leads to a page that `oidc` protects. The browser is sent to the login again, where many providers log the user in at once.",
    remedy: everywhere("use a page without oidc, or leave out logout.redirectURI"),
    says: (path: string, other: string | undefined) =>
      `after a logout the browser is sent to ${path}, which ${other === undefined ? "this policy protects" : `${other} protects`} by a login`,
  }),
  "unencrypted-login": lint({
    title: "Logins go over plain HTTP",
    meaning:
      "`redirectURI` begins with `http:`, so others on the network can read the code of the login and the cookie of the session.",
    remedy: everywhere("serve the site over HTTPS, and write redirectURI with https:"),
    says: (uri: string) => `sends the cookie of the session unencrypted, because redirectURI is ${uri}`,
  }),
  "single-alternative": lint({
    title: "There is only one alternative",
    meaning:
      "`satisfy` requires one of several credentials. With only one, its policy does the same without `satisfy`.",
    remedy: everywhere("add the others, or write the policy in place of satisfy"),
    says: (kind: string) => `has only ${kind}, so clients have no choice`,
  }),
  "taken-credential": lint({
    title: "An alternative cannot be satisfied",
    meaning:
      "A policy beside `satisfy` takes the same credential from the request first, so that no request satisfies the alternative.",
    remedy: everywhere("remove one of them"),
    says: (kind: string) => `is never satisfied, because ${kind} beside satisfy has removed the credential by then`,
  }),
  "absent-value-passes": lint({
    title: "A deny rule passes requests without the value",
    meaning:
      "The rule negates or compares a value. Where that is absent the rule is not true, so requests without it pass.",
    remedy: everywhere(
      "handle absence in the expression",
      (_reads: string, safe: string) => `to handle absence, write ${safe}`,
    ),
    says: (reads: string, _safe: string) => `denies nothing where ${reads} is absent, so a request without it passes`,
  }),
  "unused-root": lint({
    title: "A root certificate is not used",
    meaning: "With `insecure`, every certificate is accepted, so `root` has no effect.",
    remedy: everywhere("remove one of them"),
    says: () => "has no effect: insecure accepts every certificate",
  }),
  "useless-cache-key": lint({
    title: "A part of a cache key makes no difference",
    meaning: "It is the same for all requests, or it is part of the key already.",
    remedy: everywhere("remove it"),
    says: (isConstant: boolean) =>
      isConstant
        ? "makes no difference, because it is the same for all requests"
        : "makes no difference: the service is sent this value, so it is already part of the key",
  }),
  "shared-decision": lint({
    title: "Credentials are not part of a cache key",
    meaning:
      "Requests with different credentials share one decision of the authorization service, including its identity.",
    remedy: everywhere("remove it"),
    says: () => "lets requests with different credentials share one decision, including its identity",
  }),
  "closed-limit": lint({
    title: "A rate limit rejects everything",
    meaning: "A bucket for no tokens lets no request pass.",
    remedy: everywhere("raise maxTokens, or use a directResponse"),
    says: () => "rejects every request, because maxTokens is 0",
  }),
  "unfilled-limit": lint({
    title: "A rate limit never refills",
    meaning: "After the first requests, the bucket stays empty.",
    remedy: everywhere("set tokensPerFill"),
    says: () => "never refills: after maxTokens requests it rejects all",
  }),
  "lower-case-method": lint({
    title: "A method is not in upper case",
    meaning: "Methods are case-sensitive, and clients send those of HTTP in upper case.",
    remedy: {
      file: ["write it in upper case", (method) => `write ${method.toUpperCase()}`],
      objects: { instead: "the API server rejects such a method" },
    },
    says: (_method: string) => "methods are case-sensitive",
  }),
  "literal-asterisk": lint({
    title: "An asterisk is not a wildcard",
    meaning: "Paths may contain asterisks, so `/api/*` matches that path only.",
    remedy: {
      file: [
        "write a pathPrefix or a regex",
        (prefix) => `write pathPrefix: ${prefix} for all paths below it, or regex`,
      ],
      objects: [
        "use the type PathPrefix or RegularExpression",
        (prefix) => `write ${prefix} with the type PathPrefix for all paths below it, or use RegularExpression`,
      ],
    },
    says: (_prefix: string) => "* is taken literally, so only paths with this character match",
  }),
  "replaced-prefix": lint({
    title: "There is no prefix to replace",
    meaning: "`path.prefix` replaces the prefix that was matched; requests that another kind of match selects get 500.",
    remedy: {
      file: [
        "use pathPrefix in the match, or path.full in the policy",
        (kind) => `use pathPrefix here, or path.full in ${kind}`,
      ],
      objects: [
        "use the type PathPrefix in the match, or path.full in the policy",
        (kind) => `use the type PathPrefix here, or path.full in ${kind}`,
      ],
    },
    says: (kind: string) =>
      `every request that this selects gets 500, because ${kind}.path.prefix replaces a matched prefix`,
  }),
  "unused-backends": lint({
    title: "Backends get no requests",
    meaning: "A redirect responds to every request of the route.",
    remedy: everywhere("remove one of them"),
    says: () => "get no requests, because requestRedirect responds to all",
  }),
  "no-backends": lint({
    title: "A route has no backends",
    meaning: "Nothing responds to its requests, so they get 500.",
    remedy: {
      file: "add one, or a directResponse",
      objects: "add backendRefs, or attach a policy with a directResponse",
    },
    says: () => "has no backends, so every request gets 500",
  }),
  "no-weight": lint({
    title: "All weights are 0",
    meaning: "No backend may be chosen, so requests get 500.",
    remedy: everywhere("raise a weight"),
    says: () => "all weights are 0, so every request gets 500",
  }),
  "split-servers": lint({
    title: "A split where a pool is probably meant",
    meaning:
      "A route sends equal shares of its requests to several hosts, and retries or checks their health. Each host is a backend of its own: which one gets a request is decided by weight alone, so while one is down its share of the requests fails. The endpoints of a pool take over for each other.",
    remedy: {
      file: [
        "write one backend with these hosts as its endpoints (load-balancing.md), or set otherBackends in the retry if they differ",
        (hosts) => `write one backend with endpoints: [${hosts.map((host) => `{host: "${host}"}`).join(", ")}]`,
      ],
      objects: { instead: "a Service is a pool of its endpoints" },
    },
    says: (hosts: readonly string[]) => `${listed(hosts)} do not take over for each other: this is a split, not a pool`,
  }),
  "unknown-locality": lint({
    title: "The gateway does not know where it runs",
    meaning:
      "A pool or service prefers endpoints near the gateway, and the process that reads the configuration has no locality. Then no endpoint is near: all are equal with the mode `Failover`, and none takes requests with `Strict`.",
    remedy: {
      file: [
        "set config.locality, or LOCALITY (region/zone/subzone) in the environment of the gateway; NODE_NAME, config.clusterId and config.network for the other preferences",
        (preference, _isStrict) => `set ${LOCATED[preference]}`,
      ],
      objects: { instead: "proxies have the locality of their node" },
    },
    says: (preference: Preference, isStrict: boolean) =>
      `no endpoint is near, because the ${preference} of this gateway is not set: ${isStrict ? "none takes requests" : "all get requests equally"}`,
  }),
  "no-near-endpoint": lint({
    title: "No endpoint is near the gateway",
    meaning:
      "With `mode: Strict`, only endpoints that match the gateway in every routing preference get requests, and none does.",
    remedy: {
      file: "use mode Failover, or correct the locality of the endpoints or of the gateway (config.locality, LOCALITY)",
      objects: { instead: "`trafficDistribution` only prefers" },
    },
    says: (first: string) => `every request gets 503, because no endpoint is near; for the first one, ${first}`,
  }),
  "lone-retry": lint({
    title: "A retry goes to the endpoint that failed",
    meaning:
      "A backend with one address has no other endpoint for the next attempt, so it fails too while that is down.",
    remedy: {
      file: [
        "set otherBackends, or give the backend more endpoints",
        (_endpoint, hasOthers) =>
          hasOthers
            ? "with otherBackends: true it goes to another backend, false leaves it there"
            : "the route has no other",
      ],
      objects: [
        "set otherBackends in the retry of a TracegatePolicy, or give the backend more endpoints",
        (_endpoint, _hasOthers) =>
          "in a TracegatePolicy, retry has otherBackends: with true it goes to another backend, false leaves it there",
      ],
    },
    says: (endpoint: string, _hasOthers: boolean) =>
      `a retry at ${endpoint} goes to the same endpoint again, also when it is down`,
    isNote: (_endpoint, hasOthers) => !hasOthers,
  }),
  "retried-methods": lint({
    isNote: true,
    title: "Every method is retried",
    meaning: "A request that is repeated may take effect twice, such as a POST.",
    remedy: {
      file: [
        "add a precondition that names idempotent methods",
        (precondition) => `to keep it to idempotent methods, add precondition: ${precondition}`,
      ],
      objects: { instead: "statuses have no notes" },
    },
    says: (_precondition: string) => "repeats every method, so a POST may take effect twice",
  }),
  "foreign-certificate": lint({
    title: "A certificate is not for the listener's host",
    meaning: "Clients compare the names of the certificate with the host, and end the handshake.",
    remedy: everywhere("use a certificate for the hostname"),
    says: (hostname: string, isOnly: boolean, names: readonly string[]) =>
      `${isOnly ? "the certificate is not valid" : "none of the certificates is valid"} for ${hostname}${names.length === 0 ? "" : `, only for ${names.join(", ")}`}; clients will reject it`,
  }),
  "small-body-budget": lint({
    title: "A body of the largest size does not fit",
    meaning: "`maxBufferedBytes` limits all bodies of a worker together, `maxBufferSize` a single one.",
    remedy: everywhere("raise maxBufferedBytes too", (_budget: number) => "raise that too"),
    says: (budget: number) => `a body of this size gets 503, because maxBufferedBytes is ${budget}`,
  }),
  "useless-body-limit": lint({
    title: "A route's limit of bodies is above that of all requests",
    meaning: "`frontendPolicies.http.maxRequestBodySize` applies first, so longer bodies do not reach the route.",
    remedy: {
      file: "raise frontendPolicies.http.maxRequestBodySize, or lower this one",
      objects: { instead: "limits of other objects are not compared" },
    },
    says: (limit: number) =>
      `has no effect: bodies of more than ${limit} bytes get 413 before, by frontendPolicies.http.maxRequestBodySize`,
  }),
  "trusted-balancer": lint({
    title: "A load balancer counts as a trusted proxy",
    meaning:
      "With PROXY headers the TCP peer is the load balancer, which passes on what its clients say about themselves.",
    remedy: everywhere("leave it out of trustedProxies"),
    says: () =>
      "is compared with the TCP peer, here a load balancer with PROXY headers; if it is listed, its clients can set X-Forwarded-For, unless it rewrites HTTP itself",
  }),
  "excluded-proxy": lint({
    title: "Trusted proxies may not connect",
    meaning:
      "ipAccess of frontendPolicies checks the peer of a connection. If that is a proxy and may not connect, none of the clients behind it get through.",
    remedy: {
      file: "let the proxies pass, and limit their clients by ipAccess of a listener or route",
      objects: { instead: "lists and trusted proxies may be in different policies, which are not compared" },
    },
    says: (proxies: readonly string[]) =>
      `closes connections from ${proxies.join(", ")}, listed in trustedProxies, and so rejects all clients behind them`,
  }),
  "open-proxy-protocol": lint({
    title: "Every peer may send a PROXY header",
    meaning: "Whoever can connect chooses the address of the client in rules, limits and logs.",
    remedy: {
      file: "set frontendPolicies.proxyProtocol.from to the networks of the load balancers",
      objects: "set spec.frontend.proxyProtocol.from to the networks of the load balancers",
    },
    says: () => "lets every peer send a PROXY header and so choose the client address in rules, limits and logs",
  }),
  "public-admin": lint({
    title: "The admin server is not local",
    meaning: "The admin server has no authentication, and other machines can reach its address.",
    remedy: {
      file: "use localhost",
      objects: { instead: "the admin server of a proxy is local to its pod" },
    },
    says: () => "other machines can reach it, and it has no authentication",
  }),
  "acme-port": lint({
    title: "Validations do not reach the gateway",
    meaning:
      "ACME servers validate `http-01` on port 80 and `tls-alpn-01` on port 443. Without a listener there, something has to forward the port.",
    remedy: {
      file: [
        "add a listener on the port, forward the port to this gateway, or use another challenge",
        (challenge: string, _port: number, other: number | undefined) =>
          other === undefined
            ? "add an HTTP listener on port 80, which may redirect to https, or use challenge: tls-alpn-01"
            : `forward port ${challenge === "http-01" ? 80 : 443} to port ${other}, or listen on it`,
      ],
      objects: ACME_ELSEWHERE,
    },
    says: (challenge: string, port: number, _other: number | undefined) =>
      `the server validates ${challenge} on port ${port}, where this gateway has no such listener`,
    isNote: (_challenge, _port, other) => other !== undefined,
  }),
  "acme-without-email": lint({
    title: "An ACME account has no email address",
    meaning: "The CA cannot tell anybody about problems with the account or its certificates.",
    remedy: { file: "set email", objects: ACME_ELSEWHERE },
    says: () => "the CA cannot send warnings, because no email is set",
    isNote: true,
  }),
  "acme-staging": lint({
    title: "Certificates come from a staging server",
    meaning: "Staging servers are for trying things out. Browsers do not trust their certificates.",
    remedy: { file: "leave directory out when all works", objects: ACME_ELSEWHERE },
    says: () => "is a staging server, whose certificates browsers do not trust",
  }),
  "acme-storage": lint({
    title: "The storage of ACME cannot be written",
    meaning: "Certificates, keys and the account are kept there. Without it nothing can be ordered.",
    remedy: {
      file: "make the folder writable for the user of the gateway, or choose another one; under systemd, below StateDirectory: /var/lib/tracegate/acme",
      objects: ACME_ELSEWHERE,
    },
    says: (folder: string) => `${folder} cannot be written by this user`,
  }),
} as const;

export type LintCode = keyof typeof LINTS;

/** What the text of a lint says. */
export type Found<Code extends LintCode> = Parameters<(typeof LINTS)[Code]["says"]>;

/** What was found, before it is known who reads it. */
export type Finding = { readonly [Code in LintCode]: { readonly code: Code; readonly found: Found<Code> } }[LintCode];

interface Texts {
  readonly message: string;
  readonly remedy: string;
}

/** The texts of a finding for the authors of a source; undefined: it is said elsewhere. */
export function lintTexts(finding: Finding, source: "file"): Texts;
export function lintTexts(finding: Finding, source: Source): Texts | undefined;
export function lintTexts({ code, found }: Finding, source: Source): Texts | undefined {
  const { says, remedy } = LINTS[code] as Lint<readonly unknown[]>;
  const own = remedy[source];
  if (typeof own === "object" && "instead" in own) return undefined;
  return { message: says(...found), remedy: typeof own === "string" ? own : own[1](...found) };
}

/** Whether the effect of what was found is often intended. */
export function isNote({ code, found }: Finding): boolean {
  const { isNote } = LINTS[code] as Lint<readonly unknown[]>;
  return typeof isNote === "function" ? isNote(...found) : isNote === true;
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** The same words for files and objects. */
function everywhere<const Found extends readonly unknown[]>(general: string, here?: (...found: Found) => string) {
  const remedy: Remedy<Found> = here === undefined ? general : [general, here];
  return { file: remedy, objects: remedy };
}

// Infers what the texts need.
function lint<const Found extends readonly unknown[]>(
  each: {
    readonly [Field in keyof Lint<Found>]: Lint<Found>[Field];
  },
) {
  return each;
}
