/** Annotations of ingress-nginx: which of them are converted, and what becomes of the others. */
import { insteadOf, isForeign } from "../../../controller/translate/routes/ingress-annotations.ts";
import type { Finding, Place } from "../converted.ts";
import type { Findings } from "../findings.ts";
import type { IngressManifest } from "./manifests.ts";

const PREFIX = "nginx.ingress.kubernetes.io/";

/** Those that the conversion reads. */
const READ = new Set([
  ...["rewrite-target", "use-regex", "app-root", "ssl-redirect", "force-ssl-redirect", "server-alias"],
  ...["permanent-redirect", "permanent-redirect-code", "temporal-redirect", "temporal-redirect-code"],
  ...["from-to-www-redirect", "backend-protocol", "proxy-ssl-secret", "proxy-ssl-verify", "proxy-ssl-name"],
  ...["proxy-body-size", "proxy-read-timeout", "proxy-connect-timeout", "proxy-next-upstream"],
  ...["proxy-next-upstream-tries", "auth-url", "auth-method", "auth-signin", "auth-signin-redirect-param"],
  ...["auth-response-headers", "auth-type", "auth-secret", "auth-secret-type", "auth-realm"],
  ...["whitelist-source-range", "allowlist-source-range", "denylist-source-range", "limit-rps", "limit-rpm"],
  ...["limit-burst-multiplier", "enable-cors", "cors-allow-origin", "cors-allow-methods", "cors-allow-headers"],
  ...["cors-allow-credentials", "cors-expose-headers", "cors-max-age", "affinity", "session-cookie-name"],
  ...["session-cookie-max-age", "session-cookie-expires", "upstream-hash-by", "upstream-vhost"],
  ...["x-forwarded-prefix", "configuration-snippet", "server-snippet", "canary", "canary-weight"],
  ...["canary-weight-total", "canary-by-header", "canary-by-header-value", "canary-by-header-pattern"],
  ...["canary-by-cookie", "satisfy", "limit-connections"],
]);

const OWN = "the gateway does this itself";
const PROCESS = "it is about the process of nginx";
const SAME = "the gateway has one way of it";

/** Those that can be left out without loss, with the reason. */
const IDLE: Readonly<Record<string, string>> = Object.fromEntries([
  ...[
    ...["proxy-buffering", "proxy-buffer-size", "proxy-buffers-number", "proxy-busy-buffers-size"],
    ...["proxy-request-buffering", "proxy-max-temp-file-size", "proxy-http-version", "proxy-send-timeout"],
    ...["client-body-buffer-size", "connection-proxy-header", "http2-push-preload", "service-upstream"],
    ...["auth-keepalive", "auth-keepalive-requests", "auth-keepalive-timeout", "auth-keepalive-share-vars"],
    ...["ssl-prefer-server-ciphers", "proxy-ssl-server-name", "proxy-ssl-protocols", "proxy-ssl-verify-depth"],
  ].map((name) => [name, OWN] as const),
  ...["enable-access-log", "enable-rewrite-log", "proxy-ssl-ciphers"].map((name) => [name, PROCESS] as const),
  ...[
    ...["affinity-mode", "affinity-canary-behavior", "session-cookie-path", "session-cookie-samesite"],
    ...["session-cookie-secure", "session-cookie-domain", "session-cookie-change-on-failure"],
    ...["session-cookie-conditional-samesite-none", "relative-redirects", "use-port-in-redirects", "load-balance"],
  ].map((name) => [name, SAME] as const),
]);

/** Those whose loss admits no request that was kept out, and what to do instead. Any other may restrict who gets in. */
const OPEN: Readonly<Record<string, string | undefined>> = {
  "custom-headers": undefined,
  "custom-http-errors": undefined,
  "default-backend": "write its pages into traffic.errorPages of a TracegatePolicy",
  "disable-proxy-intercept-errors": undefined,
  "mirror-target": undefined,
  "mirror-request-body": "mirrors get the body",
  "mirror-host": undefined,
  "limit-rate": "the gateway does not slow responses down",
  "limit-rate-after": "the gateway does not slow responses down",
  "limit-whitelist": "give these clients a route of their own",
  "limit-allowlist": "give these clients a route of their own",
  "proxy-cookie-domain": "rewrite set-cookie by traffic.transformations of a TracegatePolicy",
  "proxy-cookie-path": "rewrite set-cookie by traffic.transformations of a TracegatePolicy",
  "proxy-redirect-from": "change location by traffic.transformations of a TracegatePolicy",
  "proxy-redirect-to": "change location by traffic.transformations of a TracegatePolicy",
  "proxy-next-upstream-timeout": "set timeouts of the rule",
  "preserve-trailing-slash": undefined,
  "upstream-hash-by-subset": "leave it out: a value has one endpoint",
  "upstream-hash-by-subset-size": "leave it out: a value has one endpoint",
  "auth-always-set-cookie": "let the service set the cookie on its own path",
  "auth-cache-key": "set cache of extAuthz",
  "auth-cache-duration": "set cache of extAuthz",
  "auth-request-redirect": "set x-auth-request-redirect in addRequestHeaders of extAuthz",
  "enable-global-auth": "it refers to a ConfigMap of ingress-nginx, which is not read",
  "enable-opentelemetry": "set frontend.tracing of a TracegatePolicy for the Gateway",
  "enable-opentracing": "set frontend.tracing of a TracegatePolicy for the Gateway",
  "opentelemetry-trust-incoming-span": "set frontend.tracing of a TracegatePolicy for the Gateway",
  "opentelemetry-operation-name": "set frontend.tracing of a TracegatePolicy for the Gateway",
  "ssl-ciphers": "set frontend.tls.cipherSuites of a TracegatePolicy for the Gateway, by the names of the standard",
  "stream-snippet": "write a TCPRoute",
};

/** Annotations of others that say something about an Ingress, and where it goes. */
const BESIDE: readonly (readonly [RegExp, string])[] = [
  [
    /^cert-manager\.io\/|^kubernetes\.io\/tls-acme$/,
    "write it on the Gateway or ListenerSet, which cert-manager reads",
  ],
  [/^external-dns\.alpha\.kubernetes\.io\//, "write it on the Gateway or the HTTPRoute, which external-dns reads"],
];

/** As Kubernetes and ingress-nginx read it. */
export function isTrue(text: string | undefined): boolean {
  return /^(?:1|[tT]|true|TRUE|True)$/.test(text ?? "");
}

/** The annotations of one Ingress, by their names without the prefix. */
export class Annotations {
  readonly #ingress: IngressManifest;
  readonly #findings: Findings;

  constructor(ingress: IngressManifest, findings: Findings) {
    this.#ingress = ingress;
    this.#findings = findings;
  }

  get(name: string): string | undefined {
    return this.#ingress.annotations[PREFIX + name];
  }

  is(name: string): boolean {
    return isTrue(this.get(name));
  }

  at(name: string): Place {
    return this.#ingress.at(["metadata", "annotations", PREFIX + name]);
  }

  find(severity: Finding["severity"], name: string, message: string, remedy?: string): void {
    this.#findings.find(severity, this.at(name), message, remedy);
  }

  /** Reports those that are not converted. Result: one of them that may restrict who gets in. */
  reportOthers(): string | undefined {
    let lost: string | undefined;
    for (const name of Object.keys(this.#ingress.annotations)) {
      const short = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : undefined;
      const place = this.#ingress.at(["metadata", "annotations", name]);
      if (short !== undefined && READ.has(short)) continue;
      const idle = short === undefined || !Object.hasOwn(IDLE, short) ? undefined : IDLE[short];
      const beside = BESIDE.find(([pattern]) => pattern.test(name))?.[1];
      if (idle !== undefined) this.#findings.find("note", place, `${short} is left out: ${idle}`);
      else if (beside !== undefined) this.#findings.find("warning", place, `${name} is not on the new objects`, beside);
      else if (short !== undefined && Object.hasOwn(OPEN, short))
        this.#findings.find("error", place, `${short} has no equivalent here`, OPEN[short] ?? insteadOf(short));
      else if (isForeign(name)) {
        lost ??= short ?? name;
        this.#findings.find("error", place, `${short ?? name} is not converted`, insteadOf(short ?? name));
      }
    }
    return lost;
  }
}
