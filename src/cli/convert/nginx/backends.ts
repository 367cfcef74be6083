/** `upstream` and `proxy_pass`: servers that requests are sent to. */
import type { Json } from "../converted.ts";
import { nameOf } from "../names.ts";
import type { Directive } from "./parse.ts";
import type { Reading } from "./reading.ts";
import { durationOf, one, type Scope, withPort } from "./scope.ts";
import { celOf } from "./variables.ts";

interface Upstream {
  readonly directive: Directive;
  readonly endpoints: readonly Json[];
  readonly loadBalancer?: Json;
  readonly policies: Json;
}

const SERVER_REMEDIES: Readonly<Record<string, string>> = {
  max_conns: "set tcp.maxConnections",
  slow_start: "set loadBalancer.slowStart",
  resolve: "names are looked up again by themselves",
};

export class Backends {
  readonly #reading: Reading;
  readonly #upstreams = new Map<string, Upstream>();
  readonly #backends = new Map<string, Json>();

  constructor(reading: Reading) {
    this.#reading = reading;
    for (const each of reading.http) if (each.name === "upstream") this.#read(each);
  }

  /** Those that routes refer to by name. */
  get named(): readonly Json[] {
    return [...this.#backends.values()];
  }

  #read(directive: Directive): void {
    const [name = ""] = directive.args;
    const endpoints: Json[] = [];
    let algorithm = "RoundRobin";
    let affinity: string | undefined;
    let eviction: Json | undefined;
    for (const each of directive.block ?? []) {
      const [first = "", ...others] = each.args;
      if (each.name === "server") {
        const { endpoint, evicts } = endpointOf(this.#reading, each, first, others);
        if (endpoint !== undefined) endpoints.push(endpoint);
        eviction ??= evicts;
      } else if (each.name === "least_conn") algorithm = "LeastRequests";
      else if (each.name === "random") algorithm = "PowerOfTwoChoices";
      else if (each.name === "ip_hash") affinity = "source.address";
      else if (each.name === "hash") {
        affinity = celOf(first, { serverName: "" });
        if (affinity === undefined)
          this.#reading.find("error", each, `hash ${first} has no equivalent`, "write sessionAffinity.source in CEL");
      } else this.#reading.report(each);
    }
    if (endpoints.length === 0) {
      this.#reading.find("error", directive, `upstream ${name} has no server`);
      return;
    }
    this.#upstreams.set(name, {
      directive,
      endpoints,
      ...(endpoints.length > 1 && { loadBalancer: { algorithm } }),
      policies: {
        ...(affinity !== undefined && { sessionAffinity: { source: affinity } }),
        ...(eviction !== undefined && { health: { unhealthyExpression: "false", eviction } }),
      },
    });
  }

  target(
    passed: Directive,
    scope: Scope,
  ): { readonly backend: Json; readonly uri: string | undefined; readonly authority: string } | undefined {
    const [url = ""] = passed.args;
    const [, scheme = "", authority = "", uri] =
      /^(https?):\/\/(unix:[^:]+(?=:|$)|[^/$]+):?((?:\/|\$request_uri|\$uri).*)?$/.exec(url) ?? [];
    if (scheme === "") {
      this.#reading.find(
        "error",
        passed,
        `proxy_pass ${url} has no equivalent: its requests get 501`,
        "write the backends that it stands for, or a dynamic one",
      );
      return undefined;
    }
    if (uri !== undefined && /\$/.test(uri) && !/^\$(request_uri|uri(\$is_args\$args)?)$/.test(uri))
      this.#reading.find("error", passed, `the path of ${url} is not changed`, "set :path by CEL in transformations");
    const tls =
      scheme === "https"
        ? backendTls(this.#reading, scope, authority, this.#upstreams.has(authority), passed)
        : undefined;
    const connect = one(scope, "proxy_connect_timeout")?.args[0];
    const calls = {
      ...(tls !== undefined && { backendTLS: tls }),
      ...(connect !== undefined && { tcp: { connectTimeout: durationOf(connect) } }),
      ...(one(scope, "proxy_http_version")?.args[0] === "2" && { http: { version: "HTTP/2.0" } }),
    };
    const plainUri = uri === undefined || uri.includes("$") ? undefined : uri;
    const known = this.#upstreams.get(authority);
    if (known !== undefined) {
      const policies = { ...known.policies, ...calls };
      const entry = {
        endpoints: known.endpoints,
        ...(known.loadBalancer !== undefined && { loadBalancer: known.loadBalancer }),
        ...(Object.keys(policies).length > 0 && { policies }),
      };
      return { backend: { backend: `/${this.#nameFor(nameOf(authority), entry)}` }, uri: plainUri, authority };
    }
    const host = withPort(authority, scheme === "https" ? 443 : 80);
    const backend = { host, ...(Object.keys(calls).length > 0 && { policies: calls }) };
    // nginx sends no port that is the scheme's.
    return { backend, uri: plainUri, authority: authority.startsWith("unix:") ? "localhost" : authority };
  }

  /** The name of a backend with this content. */
  #nameFor(wanted: string, entry: Json): string {
    for (let i = 1; ; i++) {
      const name = i === 1 ? wanted : `${wanted}-${i}`;
      const full = { name, ...entry };
      const known = this.#backends.get(name);
      if (known === undefined) this.#backends.set(name, full);
      if (known === undefined || JSON.stringify(known) === JSON.stringify(full)) return name;
    }
  }
}

function endpointOf(
  reading: Reading,
  at: Directive,
  host: string,
  options: readonly string[],
): { readonly endpoint?: Json; readonly evicts?: Json } {
  const values = new Map(options.map((each) => [each.split("=")[0] ?? "", each.slice(each.indexOf("=") + 1)]));
  for (const name of values.keys())
    if (!["weight", "backup", "down", "max_fails", "fail_timeout"].includes(name))
      reading.find("warning", at, `${name} of a server is left out`, SERVER_REMEDIES[name]);
  if (values.has("down")) return {};
  const fails = Number(values.get("max_fails") ?? "1");
  const evicts =
    (values.has("max_fails") || values.has("fail_timeout")) && fails > 0
      ? { consecutiveFailures: fails, duration: durationOf(values.get("fail_timeout") ?? "10s") }
      : undefined;
  const weight = values.get("weight");
  const endpoint = {
    host: withPort(host, 80),
    ...(weight !== undefined && { weight: Number(weight) }),
    ...(values.has("backup") && { backup: true }),
  };
  return { endpoint, ...(evicts !== undefined && { evicts }) };
}

function backendTls(reading: Reading, scope: Scope, authority: string, isUpstream: boolean, at: Directive): Json {
  const value = (name: string): string | undefined => one(scope, name)?.args[0];
  const verifies = value("proxy_ssl_verify") === "on";
  if (!verifies)
    reading.find(
      "warning",
      at,
      "as in nginx, the certificate of the backend is not verified",
      "remove insecure, and set root if its CA is your own",
    );
  const [root, cert, key] = ["proxy_ssl_trusted_certificate", "proxy_ssl_certificate", "proxy_ssl_certificate_key"].map(
    value,
  );
  const name = value("proxy_ssl_name");
  return {
    ...(!verifies && { insecure: true }),
    ...(verifies && root !== undefined && { root: reading.file(root) }),
    ...(cert !== undefined && key !== undefined && { cert: reading.file(cert), key: reading.file(key) }),
    ...(name !== undefined && !name.includes("$") && { hostname: name }),
    ...(name === undefined && isUpstream && { hostname: authority.replace(/_/g, "-") }),
  };
}
