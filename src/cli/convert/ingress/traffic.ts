/** What is done with requests and responses, and how backends are called. */
import type { Json } from "../converted.ts";
import { durationOf } from "../nginx/scope.ts";
import { celOf } from "../nginx/variables.ts";
import { listOf } from "./access.ts";
import type { Annotations } from "./annotations.ts";

/** Policies of routes. */
export function trafficOf(annotations: Annotations): Json {
  const read = annotations.get("proxy-read-timeout");
  const host = annotations.get("upstream-vhost");
  const prefix = annotations.get("x-forwarded-prefix");
  if (host?.includes("$") === true)
    annotations.find("error", "upstream-vhost", `${host} is left out`, "set :authority by CEL in transformations");
  const hasPrefix = prefix !== undefined && !prefix.includes("$");
  if (prefix !== undefined && !hasPrefix)
    annotations.find(
      "error",
      "x-forwarded-prefix",
      `${prefix} is left out`,
      "set the header by CEL in transformations",
    );
  return {
    ...(read !== undefined && { timeout: { requestTimeout: durationOf(read) } }),
    ...retry(annotations),
    ...(annotations.is("enable-cors") && { cors: cors(annotations) }),
    ...(host !== undefined && !host.includes("$") && { urlRewrite: { authority: { full: host } } }),
    ...(hasPrefix && { requestHeaderModifier: { set: { "X-Forwarded-Prefix": prefix } } }),
    ...session(annotations),
  };
}

function retry(annotations: Annotations): Json {
  const next = annotations.get("proxy-next-upstream");
  if (next === undefined) return {};
  const codes = next.split(/\s+/).flatMap((each) => (/^http_\d+$/.test(each) ? [Number(each.slice(5))] : []));
  const tries = Number(annotations.get("proxy-next-upstream-tries") ?? "3");
  if (codes.length === 0) return {};
  return {
    retry: {
      codes,
      ...(tries > 1 && { attempts: tries - 1 }),
      ...(!/\bnon_idempotent\b/.test(next) && {
        precondition: 'request.method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]',
      }),
    },
  };
}

/** The defaults of ingress-nginx. */
const CORS_METHODS = "GET, PUT, POST, DELETE, PATCH, OPTIONS";
const CORS_HEADERS =
  "DNT, Keep-Alive, User-Agent, X-Requested-With, If-Modified-Since, Cache-Control, Content-Type, Range, Authorization";

function cors(annotations: Annotations): Json {
  const exposed = annotations.get("cors-expose-headers");
  return {
    allowOrigins: listOf(annotations.get("cors-allow-origin") ?? "*"),
    allowMethods: listOf(annotations.get("cors-allow-methods") ?? CORS_METHODS),
    allowHeaders: listOf(annotations.get("cors-allow-headers") ?? CORS_HEADERS),
    ...(exposed !== undefined && { exposeHeaders: listOf(exposed) }),
    allowCredentials: annotations.get("cors-allow-credentials") !== "false",
    maxAge: durationOf(annotations.get("cors-max-age") ?? "1728000"),
  };
}

function session(annotations: Annotations): Json {
  if (annotations.get("affinity") !== "cookie") return {};
  const age = annotations.get("session-cookie-max-age") ?? annotations.get("session-cookie-expires");
  annotations.find("note", "affinity", "the cookie is HttpOnly and SameSite=Strict, and its path is that of the route");
  return {
    sessionPersistence: {
      type: "Cookie",
      sessionName: annotations.get("session-cookie-name") ?? "INGRESSCOOKIE",
      ...(age !== undefined && { absoluteTimeout: durationOf(age), cookieConfig: { lifetimeType: "Permanent" } }),
    },
  };
}

/** Policies of backends; undefined: the protocol has no equivalent. */
export function callsOf(annotations: Annotations): Json | undefined {
  const protocol = (annotations.get("backend-protocol") ?? "HTTP").toUpperCase();
  const connect = annotations.get("proxy-connect-timeout");
  const hash = annotations.get("upstream-hash-by");
  const source = hash === undefined ? undefined : celOf(hash, { serverName: "" });
  if (hash !== undefined && source === undefined)
    annotations.find("error", "upstream-hash-by", `${hash} has no equivalent`, "write sessionAffinity.source in CEL");
  if (!["HTTP", "HTTPS", "GRPC", "GRPCS"].includes(protocol)) {
    annotations.find(
      "error",
      "backend-protocol",
      `${protocol} has no equivalent: requests get 501`,
      "let the application listen for HTTP",
    );
    return undefined;
  }
  return {
    ...(protocol.endsWith("S") && { backendTLS: backendTls(annotations) }),
    ...(protocol.startsWith("GRPC") && { http: { version: "HTTP/2.0" } }),
    ...(connect !== undefined && { tcp: { connectTimeout: durationOf(connect) } }),
    ...(source !== undefined && { sessionAffinity: { source } }),
  };
}

function backendTls(annotations: Annotations): Json {
  const secret = annotations.get("proxy-ssl-secret")?.split("/").at(-1);
  const name = annotations.get("proxy-ssl-name");
  const verifies = annotations.get("proxy-ssl-verify") === "on";
  if (!verifies)
    annotations.find(
      "warning",
      "backend-protocol",
      "as in nginx, the certificate of the backend is not verified",
      "write a BackendTLSPolicy for the Service in place of insecure",
    );
  const reference = (key: string): Json => ({ secretKeyRef: { name: secret, key } });
  return {
    ...(verifies ? secret !== undefined && { root: reference("ca.crt") } : { insecure: true }),
    ...(secret !== undefined && { cert: reference("tls.crt"), key: reference("tls.key") }),
    ...(name !== undefined && { hostname: name }),
  };
}
