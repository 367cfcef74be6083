/** `reverse_proxy` and `forward_auth`: the servers that requests are sent to. */
import type { Json } from "../converted.ts";
import type { Findings } from "../findings.ts";
import { merged } from "../merge.ts";
import { headerPolicies, linesOf, removesPattern } from "./headers.ts";
import type { Directive } from "./parse.ts";
import { celOf, hasPlaceholders } from "./placeholders.ts";

export interface Proxied {
  /** Policies of the route. */
  readonly policies: Json;
  readonly endpoints: readonly Json[];
  readonly algorithm: string | undefined;
  /** Policies of the backend. */
  readonly calls: Json;
}

/** Lines of the block that can be left out, because the gateway does it itself. */
const IDLE = new Set(["flush_interval", "request_buffers", "response_buffers", "stream_timeout", "stream_close_delay"]);
for (const each of ["verbose_logs", "trusted_proxies"]) IDLE.add(each);

/** Undefined: the servers cannot be named, which a finding says. */
export function proxied(
  at: Directive,
  args: readonly string[],
  block: readonly Directive[],
  findings: Findings,
): Proxied | undefined {
  const find = (each: Directive, message: string, remedy?: string): undefined => {
    findings.find("error", each, message, remedy);
    return undefined;
  };
  const value = (name: string): Directive | undefined => block.find((each) => each.name === name);
  const written = [...args, ...block.filter(({ name }) => name === "to").flatMap((each) => each.args)];
  const targets = written.flatMap(upstreamsOf);
  const dynamic = value("dynamic") ?? value("handle_response");
  if (dynamic !== undefined) return find(dynamic, `${dynamic.name} has no equivalent: requests get 501`);
  const unnamed = written.find(hasPlaceholders);
  if (unnamed !== undefined)
    return find(at, `${unnamed} is no fixed server: requests get 501`, "write the backends that it stands for");
  if (targets.length === 0) return find(at, `${at.name} names no server: requests get 501`);
  const transport = value("transport");
  if (transport !== undefined && transport.args[0] !== "http")
    return find(
      transport,
      `transport ${transport.args[0] ?? ""} has no equivalent: requests get 501`,
      "let the application listen for HTTP",
    );
  const isTls = targets.some(({ scheme }) => scheme === "https");
  const up = block.filter(({ name }) => name === "header_up");
  const pattern = up.find(({ args: [field = ""] }) => removesPattern(field));
  if (pattern !== undefined)
    return find(pattern, `${pattern.args[0]} has no equivalent: requests get 501`, "name each header");
  const hostLine = up.find(({ args: [field] }) => field?.toLowerCase() === "host");
  const host = hostLine?.args[1];
  const authority =
    host === "{upstream_hostport}" || host === "{http.reverse_proxy.upstream.hostport}" ? targets[0]?.host : host;
  if (hostLine !== undefined && (authority === undefined || hasPlaceholders(authority)))
    find(hostLine, `Host ${host ?? ""} is left out`, "set :authority by CEL in transformations");
  const rewrite = value("rewrite") ?? value("method");
  if (rewrite !== undefined)
    find(rewrite, `${rewrite.name} of ${at.name} is left out`, "set :path and :method by transformations.request");
  const balancing = balancingOf(value("lb_policy"), findings);
  const { endpoints, algorithm } = pool(
    targets.map(({ host }) => host),
    balancing,
  );
  for (const each of block)
    if (IDLE.has(each.name)) findings.find("note", each, `${each.name} is left out: the gateway does this itself`);
    else if (!KNOWN.has(each.name)) find(each, `${each.name} of ${at.name} has no equivalent here`);
  const lines = (name: string) =>
    block.filter((each) => each.name === name && each !== hostLine).flatMap((each) => linesOf(each, each.args, []));
  return {
    endpoints,
    algorithm,
    policies: merged(
      headerPolicies(lines("header_up"), "request", findings),
      headerPolicies(lines("header_down"), "response", findings),
      authority !== undefined && !hasPlaceholders(authority) ? { urlRewrite: { authority: { full: authority } } } : {},
      retriesOf(block, findings),
      balancing.session === undefined ? {} : { sessionPersistence: { type: "Cookie", sessionName: balancing.session } },
    ),
    calls: merged(
      callsOf(
        transport,
        isTls,
        targets.some(({ scheme }) => scheme === "h2c"),
        findings,
      ),
      healthOf(block, findings),
      balancing.source === undefined ? {} : { sessionAffinity: { source: balancing.source } },
    ),
  };
}

const KNOWN = new Set([
  ...[
    "to",
    "dynamic",
    "transport",
    "header_up",
    "header_down",
    "lb_policy",
    "health_uri",
    "health_path",
    "health_port",
  ],
  ...["health_interval", "health_timeout", "health_status", "health_passes", "health_fails"],
  ...["fail_duration", "max_fails", "unhealthy_status", "lb_retries", "lb_try_interval", "lb_try_duration"],
  ...["unhealthy_request_count", "rewrite", "method", "handle_response", "uri", "copy_headers"],
]);

interface Upstream {
  readonly scheme: string;
  readonly host: string;
}

/** `host:port`, with a scheme, a range of ports, or the path of a socket. */
function upstreamsOf(text: string): readonly Upstream[] {
  const [, scheme = "http", rest = ""] = /^(?:(https?|h2c):\/\/)?(.*)$/.exec(text) ?? [];
  const [, socket] = /^unix\/+(\/?.*)$/.exec(rest) ?? [];
  if (socket !== undefined) return [{ scheme, host: `unix:/${socket.replace(/^\/+/, "")}` }];
  const [, name = "", first = scheme === "https" ? "443" : "80", last = first] =
    /^(.*?)(?::(\d+)(?:-(\d+))?)?$/.exec(rest.replace(/\/$/, "")) ?? [];
  const host = name === "" ? "localhost" : name;
  const count = Math.min(Math.max(Number(last) - Number(first) + 1, 1), 1000);
  return Array.from({ length: count }, (_, i) => ({ scheme, host: `${host}:${Number(first) + i}` }));
}

interface Balancing {
  readonly algorithm?: string;
  /** CEL of what an endpoint is chosen by. */
  readonly source?: string;
  /** The cookie of a session. */
  readonly session?: string;
  readonly weights?: readonly number[];
  /** All but the first are for when it fails. */
  readonly isFirst?: true;
}

function balancingOf(policy: Directive | undefined, findings: Findings): Balancing {
  const [name = "random", ...args] = policy?.args ?? [];
  switch (name) {
    case "random":
    case "random_choose":
      return {};
    case "round_robin":
      return { algorithm: "RoundRobin" };
    case "weighted_round_robin":
      return { algorithm: "RoundRobin", weights: args.map(Number) };
    case "least_conn":
      return { algorithm: "LeastRequests" };
    case "first":
      return { isFirst: true };
    case "ip_hash":
    case "client_ip_hash":
      return { source: "source.address" };
    case "uri_hash":
      return { source: "request.pathAndQuery" };
    case "header":
      return { source: `default(request.headers[${JSON.stringify((args[0] ?? "").toLowerCase())}], "")` };
    case "cookie":
      return { session: args[0] ?? "lb" };
    default:
      if (policy !== undefined)
        findings.find("error", policy, `lb_policy ${name} is left out`, "set loadBalancer or sessionAffinity");
      return {};
  }
}

function pool(
  hosts: readonly string[],
  { algorithm, weights, isFirst }: Balancing,
): Pick<Proxied, "endpoints" | "algorithm"> {
  return {
    algorithm: hosts.length > 1 ? algorithm : undefined,
    endpoints: hosts.map((host, i) => ({
      host,
      ...(weights?.[i] !== undefined && { weight: weights[i] }),
      ...(isFirst && i > 0 && { backup: true }),
    })),
  };
}

function callsOf(transport: Directive | undefined, isTls: boolean, isH2c: boolean, findings: Findings): Json {
  const lines = transport?.block ?? [];
  const value = (name: string): string | undefined => lines.find((each) => each.name === name)?.args[0];
  const has = (name: string): boolean => lines.some((each) => each.name === name);
  const versions = lines.find(({ name }) => name === "versions")?.args ?? [];
  const pool = lines.find(({ name }) => name === "tls_trust_pool" || name === "tls_trusted_ca_certs");
  const root = pool?.args.at(-1);
  const client = lines.find(({ name }) => name === "tls_client_auth")?.args ?? [];
  const name = value("tls_server_name");
  if (pool !== undefined && (pool.block !== undefined || pool.args.length > 2))
    findings.find(
      "error",
      pool,
      `${pool.name} is left out`,
      "put its certificates into one file, which backendTLS.root names",
    );
  for (const each of lines) {
    if (
      /^(?:tls|tls_insecure_skip_verify|tls_server_name|tls_trust\w+|tls_client_auth|dial_timeout|response_header_timeout|versions)$/.test(
        each.name,
      )
    )
      continue;
    const own =
      /^(?:keepalive\w*|read_buffer|write_buffer|read_timeout|write_timeout|compression|max_conns_per_host|expect_continue_timeout|dial_fallback_delay|tls_timeout|resolvers)$/;
    if (own.test(each.name)) findings.find("note", each, `${each.name} is left out: the gateway does this itself`);
    else findings.find("error", each, `${each.name} of transport has no equivalent here`);
  }
  const usesTls = isTls || lines.some((each) => each.name.startsWith("tls"));
  const dial = value("dial_timeout");
  const response = value("response_header_timeout");
  const http = {
    ...((isH2c || versions.includes("h2c")) && { version: "HTTP/2.0" }),
    ...(response !== undefined && { requestTimeout: response }),
  };
  return {
    ...(usesTls && {
      backendTLS: {
        ...(has("tls_insecure_skip_verify") && { insecure: true }),
        ...(name !== undefined && { hostname: name }),
        ...(root !== undefined && pool?.block === undefined && { root }),
        ...(client.length === 2 && { cert: client[0], key: client[1] }),
      },
    }),
    ...(Object.keys(http).length > 0 && { http }),
    ...(dial !== undefined && { tcp: { connectTimeout: dial } }),
  };
}

/** Caddy repeats attempts that got no connection, and of requests that it has sent only those with GET. */
function retriesOf(block: readonly Directive[], findings: Findings): Json {
  const line = (name: string): Directive | undefined => block.find((each) => each.name === name);
  const [count, duration] = [line("lb_retries"), line("lb_try_duration")];
  const attempts = Number(count?.args[0] ?? "0");
  if (duration !== undefined)
    findings.find(
      "warning",
      duration,
      `lb_try_duration is left out${attempts > 0 ? "" : ": a request that gets no connection tries each other server once"}`,
      "set attempts and backoff of retry",
    );
  if (attempts === 0) return {};
  const backoff = line("lb_try_interval")?.args[0] ?? "250ms";
  return { retry: { attempts, codes: [], backoff, precondition: 'request.method == "GET"' } };
}

function healthOf(block: readonly Directive[], findings: Findings): Json {
  const value = (name: string): string | undefined => block.find((each) => each.name === name)?.args[0];
  const path = value("health_uri") ?? value("health_path");
  const [port, interval, timeout, status] = ["health_port", "health_interval", "health_timeout", "health_status"].map(
    value,
  );
  const passes = value("health_passes");
  const duration = value("fail_duration");
  const fails = Number(value("max_fails") ?? "1");
  const unhealthy = block.find(({ name }) => name === "unhealthy_status" || name === "unhealthy_request_count");
  if (unhealthy !== undefined)
    findings.find("error", unhealthy, `${unhealthy.name} is left out`, "write health.unhealthyExpression in CEL");
  if (path === undefined && duration === undefined) return {};
  return {
    health: {
      ...(duration !== undefined && {
        unhealthyExpression: "false",
        eviction: { consecutiveFailures: fails, duration },
      }),
      ...(path !== undefined && {
        active: {
          http: { path, ...(/^\d{3}$/.test(status ?? "") && { expectedStatuses: [Number(status)] }) },
          ...(port !== undefined && { port: Number(port) }),
          interval: interval ?? "30s",
          timeout: timeout ?? "5s",
          unhealthyThreshold: Number(value("health_fails") ?? "1"),
          ...(passes !== undefined && { healthyThreshold: Number(passes) }),
        },
      }),
    },
  };
}

/** `forward_auth`; undefined: it cannot be converted. */
export function forwardAuth(
  at: Directive,
  args: readonly string[],
  block: readonly Directive[],
  findings: Findings,
): Json | undefined {
  const [upstream, ...others] = args.flatMap(upstreamsOf);
  const uri = block.find(({ name }) => name === "uri")?.args[0];
  const path = uri === undefined ? undefined : celOf(uri);
  const copied = block
    .filter(({ name }) => name === "copy_headers")
    .flatMap((each) => [...each.args, ...(each.block ?? []).map(({ name }) => name)]);
  const unknown = block.find(({ name }) => name !== "uri" && name !== "copy_headers");
  if (
    upstream === undefined ||
    others.length > 0 ||
    path === undefined ||
    unknown ||
    copied.some((each) => each.includes(">"))
  )
    return undefined;
  findings.find(
    "warning",
    at,
    `the service gets ${SENT.join(", ")} and not every field of the request`,
    "add others to includeRequestHeaders",
  );
  return {
    host: upstream.host,
    protocol: {
      http: {
        path,
        ...(copied.length > 0 && { includeResponseHeaders: copied }),
        addRequestHeaders: {
          ":method": '"GET"',
          "x-forwarded-method": "request.method",
          "x-forwarded-uri": "request.pathAndQuery",
          "x-forwarded-host": "request.host",
          "x-forwarded-proto": "request.scheme",
          "x-forwarded-for": "source.address",
        },
      },
    },
    includeRequestHeaders: SENT,
    ...(upstream.scheme === "https" && { policies: { backendTLS: {} } }),
  };
}

const SENT = ["authorization", "cookie", "user-agent", "accept", "origin", "referer", "x-requested-with"];
