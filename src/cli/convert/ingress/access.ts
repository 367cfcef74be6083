/** Who may send requests to an Ingress, and how much. */
import { isIP } from "node:net";
import type { Json } from "../converted.ts";
import { intervalOf, sizeOf } from "../nginx/scope.ts";
import { celOf } from "../nginx/variables.ts";
import type { Annotations } from "./annotations.ts";

/** Policies, and the annotation whose restriction they do not have. */
export interface Access {
  readonly policies: Json;
  readonly lost: string | undefined;
}

export function accessOf(annotations: Annotations, namespace: string, paths: number): Access {
  const policies: Record<string, unknown> = {};
  const parts = [basicAuth(annotations, namespace), extAuthz(annotations), ipAccess(annotations)];
  for (const each of parts) if (typeof each === "object") Object.assign(policies, each);
  if (annotations.get("satisfy") === "any") satisfyAny(policies, annotations);
  const limits = rateLimits(annotations, paths);
  if (limits.length > 0) policies.localRateLimit = limits;
  const connections = Number(annotations.get("limit-connections") ?? "0");
  // nginx counts requests of HTTP/2 as connections too.
  if (connections > 0) policies.concurrencyLimit = [{ maxRequests: connections, key: "source.address" }];
  const size = annotations.get("proxy-body-size");
  if (size !== undefined) policies.maxRequestBodySize = sizeOf(size);
  return { policies, lost: parts.find((each) => typeof each === "string") };
}

type Part = Json | string | undefined;

/** An address of the list or a password. Where that cannot be said, both are needed. */
function satisfyAny(policies: Record<string, unknown>, annotations: Annotations): void {
  const { basicAuth, ipAccess, extAuthz, ...others } = policies;
  if (ipAccess === undefined || (basicAuth === undefined && extAuthz === undefined)) return;
  if (extAuthz !== undefined || (ipAccess as Json).allow === undefined) {
    annotations.find(
      "error",
      "satisfy",
      "satisfy: any is left out: requests need both",
      "write traffic.satisfy, or traffic.authorization with both conditions",
    );
    return;
  }
  for (const kind of Object.keys(policies)) delete policies[kind];
  Object.assign(policies, { satisfy: { any: [{ ipAccess }, { basicAuth }] }, ...others });
}

function basicAuth(annotations: Annotations, namespace: string): Part {
  const type = annotations.get("auth-type");
  const secret = annotations.get("auth-secret");
  if (type === undefined) return undefined;
  const lose = (name: string, message: string, remedy: string): string => {
    annotations.find("error", name, message, remedy);
    return name;
  };
  if (type !== "basic") return lose("auth-type", `auth-type ${type} has no equivalent`, "use basic, jwtAuth or oidc");
  if (secret === undefined) return lose("auth-type", "auth-type without auth-secret", "name the Secret with the users");
  if (annotations.get("auth-secret-type") === "auth-map")
    return lose(
      "auth-secret-type",
      "a Secret with a key for each user is not read",
      "write user:hash lines into one key, which traffic.basicAuth.htpasswd names",
    );
  const [owner, name = owner] = secret.split("/");
  if (name === undefined || (secret.includes("/") && owner !== namespace))
    return lose("auth-secret", `Secret ${secret} is in another namespace`, `copy it into namespace ${namespace}`);
  const realm = annotations.get("auth-realm");
  return {
    basicAuth: {
      mode: "strict",
      ...(realm !== undefined && { realm }),
      htpasswd: { secretKeyRef: { name, key: "auth" } },
    },
  };
}

/** The part of a request that ingress-nginx tells the service about, by the names of the fields. */
const TOLD = {
  "x-original-url": 'request.scheme + "://" + request.host + request.pathAndQuery',
  "x-original-method": "request.method",
  "x-auth-request-redirect": "request.pathAndQuery",
  "x-real-ip": "source.address",
};
const SENT = ["authorization", "cookie", "user-agent", "accept", "origin", "referer", "x-requested-with"];
const ESCAPED = "$escaped_request_uri";

function extAuthz(annotations: Annotations): Part {
  const url = annotations.get("auth-url");
  if (url === undefined) return undefined;
  const lose = (message: string): string => {
    annotations.find("error", "auth-url", message, "use traffic.extAuthz of a TracegatePolicy");
    return "auth-url";
  };
  const [, scheme = "", authority = "", target = "/"] = /^(https?):\/\/([^/?#$]+)([/?].*)?$/.exec(url) ?? [];
  if (scheme === "") return lose(`${url} does not name a fixed host`);
  const path = textOf(target.startsWith("?") ? `/${target}` : target);
  if (path === undefined) return lose(`${url} has variables without an equivalent`);
  const [host = "", port = scheme === "https" ? "443" : "80"] = authority.split(":");
  const redirect = signIn(annotations);
  const responses = annotations.get("auth-response-headers");
  const method = annotations.get("auth-method");
  annotations.find(
    "warning",
    "auth-url",
    `the service gets ${SENT.join(", ")} and not every field of the request`,
    "add others to includeRequestHeaders",
  );
  return {
    extAuthz: {
      host: `${host}:${port}`,
      protocol: {
        http: {
          path,
          ...(redirect !== undefined && { redirect }),
          ...(responses !== undefined && { includeResponseHeaders: listOf(responses) }),
          addRequestHeaders: {
            ":method": JSON.stringify(method ?? "GET"),
            ":authority": JSON.stringify(authority),
            ...TOLD,
          },
        },
      },
      includeRequestHeaders: SENT,
      ...(scheme === "https" && { policies: { backendTLS: { hostname: host } } }),
    },
  };
}

/** CEL of the URL that clients without a session are sent to. */
function signIn(annotations: Annotations): string | undefined {
  const url = annotations.get("auth-signin");
  if (url === undefined) return undefined;
  const parameter = annotations.get("auth-signin-redirect-param") ?? "rd";
  const hasReturn = new RegExp(`[?&]${parameter}=`).test(url);
  const full = hasReturn ? url : `${url}${url.includes("?") ? "&" : "?"}${parameter}=$scheme://$http_host${ESCAPED}`;
  const cel = textOf(full);
  if (cel === undefined)
    annotations.find("error", "auth-signin", `${url} is left out`, "write redirect of extAuthz in CEL");
  else annotations.find("warning", "auth-signin", "a 403 of the service becomes a redirect too, not only a 401");
  return cel;
}

/** CEL of a text with variables; ingress-nginx has one more than nginx. */
function textOf(text: string): string | undefined {
  const parts = text.split(ESCAPED).map((each) => (each === "" ? "" : celOf(each, { serverName: "" })));
  if (parts.some((each) => each === undefined)) return undefined;
  return parts
    .flatMap((each, i) => [...(i > 0 ? ["url.encode(request.pathAndQuery)"] : []), ...(each ? [each] : [])])
    .join(" + ");
}

function ipAccess(annotations: Annotations): Part {
  const lists: Record<string, readonly string[]> = {};
  for (const [name, side] of [
    ["whitelist-source-range", "allow"],
    ["allowlist-source-range", "allow"],
    ["denylist-source-range", "deny"],
  ] as const) {
    const text = annotations.get(name);
    if (text === undefined) continue;
    const networks = listOf(text);
    const wrong = networks.find((each) => isIP(each.split("/")[0] ?? "") === 0);
    if (wrong !== undefined || networks.length === 0) {
      annotations.find("error", name, `${wrong ?? "nothing"} is not a network`, "write addresses and networks");
      return name;
    }
    lists[side] = networks;
  }
  return Object.keys(lists).length === 0 ? undefined : { ipAccess: lists };
}

function rateLimits(annotations: Annotations, paths: number): readonly Json[] {
  const burst = Number(annotations.get("limit-burst-multiplier") ?? "5");
  return (
    [
      ["limit-rps", 1],
      ["limit-rpm", 60],
    ] as const
  ).flatMap(([name, seconds]) => {
    const count = Number(annotations.get(name) ?? "0");
    if (!Number.isInteger(count) || count <= 0) return [];
    annotations.find("warning", name, "requests over the limit get 429, not 503");
    if (paths > 1)
      annotations.find(
        "warning",
        name,
        `each of the ${paths} paths has its own count, which nginx has for all of them`,
        "lower the limits if the sum matters",
      );
    return [
      {
        maxTokens: count * burst + 1,
        tokensPerFill: 1,
        fillInterval: intervalOf(count, seconds),
        key: "source.address",
      },
    ];
  });
}

export function listOf(text: string): readonly string[] {
  return text.split(",").flatMap((each) => (each.trim() === "" ? [] : [each.trim()]));
}
