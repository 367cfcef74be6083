/** Addresses of sites: names, ports and certificates. */
import { isIP } from "node:net";
import type { Json } from "../converted.ts";
import type { Findings } from "../findings.ts";
import { isOrdered } from "./directives.ts";
import { type Clients, networksOf } from "./matchers.ts";
import type { Directive } from "./parse.ts";

/** Where a site is served. */
export interface Address {
  /** `*`: all hosts. */
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
  /** Caddy redirects HTTP to it. */
  readonly isRedirected: boolean;
}

export interface Options {
  readonly email: string | undefined;
  readonly directory: string | undefined;
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly redirects: boolean;
  readonly certificates: boolean;
  readonly trustedProxies: readonly string[];
  readonly clients: Clients;
  /** Addresses of sites without `bind`. */
  readonly bind: readonly string[];
  /** Another order of directives than Caddy's own, which is not converted. */
  readonly order: Directive | undefined;
}

const IDLE_OPTIONS = ["admin", "debug", "log", "grace_period", "shutdown_delay", "persist_config", "storage"];

export function readOptions(options: readonly Directive[], findings: Findings): Options {
  const value = (name: string): string | undefined => options.find((each) => each.name === name)?.args[0];
  const automatic = value("auto_https");
  const proxies: string[] = [];
  const clients = new Set(["remote_ip", "client_ip"] as const);
  for (const each of options) {
    if (["email", "acme_ca", "http_port", "https_port", "auto_https", "default_bind"].includes(each.name)) continue;
    if (each.name === "servers")
      for (const line of each.block ?? []) {
        const [kind, ...networks] = line.args;
        const isTrust = line.name === "trusted_proxies";
        if (isTrust) clients.delete(kind === "static" ? "remote_ip" : "client_ip");
        if (isTrust && kind === "static") proxies.push(...networksOf(networks));
        else findings.find("error", line, `${line.name} of servers is left out`, "see frontendPolicies.http");
      }
    else if (IDLE_OPTIONS.includes(each.name))
      findings.find("note", each, `${each.name} is left out: it is about the process of Caddy`);
    else findings.find("error", each, `the option ${each.name} has no equivalent here`, REMEDIES[each.name]);
  }
  return {
    email: value("email"),
    directory: value("acme_ca"),
    httpPort: Number(value("http_port") ?? "80"),
    httpsPort: Number(value("https_port") ?? "443"),
    redirects: automatic !== "off" && automatic !== "disable_redirects",
    certificates: automatic !== "off",
    trustedProxies: proxies,
    clients,
    bind: options.filter(({ name }) => name === "default_bind").flatMap(({ args }) => args),
    order: options.find(({ name, args: [which = ""] }) => name === "order" && isOrdered(which)),
  };
}

const REMEDIES: Readonly<Record<string, string>> = {
  order: "write the directives in a route block, whose order counts",
  acme_dns: "set challenge: dns-01 and dns of tls.acme",
  on_demand_tls: "write a listener for each name",
  default_sni: "give a listener no hostname",
  layer4: "write tcpRoutes",
};

/** `unserved`: hosts of addresses that no listener can have; `*`: they are not known. */
export function addressesOf(
  site: Directive,
  options: Options,
  findings: Findings,
): { readonly addresses: readonly Address[]; readonly unserved: readonly string[] } {
  const unserved: string[] = [];
  const addresses = [site.name, ...site.args].flatMap((text): Address | [] => {
    const [, scheme, host = "", written, path = ""] =
      /^(?:(https?):\/\/)?(\[[^\]]*\]|[^:/]*)(?::(\d+))?(\/.*)?$/.exec(text) ?? [];
    if (path !== "" && path !== "/") {
      findings.find("error", site, `the path of ${text} is left out`, "write handle with the path in the site");
      unserved.push(host === "" || /[{}]|(?!^)\*/.test(host) ? "*" : host.toLowerCase());
      return [];
    }
    if (/[{}]|(?!^)\*/.test(host)) {
      findings.find("error", site, `${text} is left out`, "write each host name, or *. and a name");
      unserved.push("*");
      return [];
    }
    const { httpPort, httpsPort } = options;
    const port =
      written === undefined
        ? scheme === "http" || (host === "" && scheme === undefined)
          ? httpPort
          : httpsPort
        : Number(written);
    const hasTls = site.block?.some(({ name }) => name === "tls") === true;
    const isPlain =
      scheme === "http" || port === httpPort || (host === "" && !hasTls && scheme === undefined && port !== httpsPort);
    const isTls = !isPlain && (options.certificates || hasTls || scheme === "https");
    return {
      host: host === "" || host === "*" ? "*" : host.toLowerCase(),
      port,
      isTls,
      isRedirected: isTls && options.redirects && host !== "" && port === httpsPort,
    };
  });
  return { addresses, unserved };
}

/** Whether requests for `other` may get to a listener for `host`; both can be wildcards. */
export function hasHost(host: string, other: string): boolean {
  if (host === other || host === "*") return true;
  return host.startsWith("*.") && (other === "*" || other.replace(/^\*/, "").endsWith(host.slice(1)));
}

/** The addresses that a site listens on; undefined: all. */
export function boundTo(site: Directive, options: Options): readonly string[] | undefined {
  const own = site.block?.filter(({ name }) => name === "bind").flatMap(({ args }) => args) ?? [];
  const addresses = (own.length > 0 ? own : options.bind).map((each) => each.replace(/^\[(.*)\]$/, "$1"));
  return addresses.length === 0 || addresses.some((each) => each === "0.0.0.0" || each === "::")
    ? undefined
    : addresses;
}

/** Names for which no public authority issues certificates. */
function isPrivate(host: string): boolean {
  return isIP(host.replace(/[[\]]/g, "")) !== 0 || /(?:^|\.)(?:localhost|local|internal|home\.arpa)$/.test(host);
}

interface Tls {
  readonly value: Json;
  /** A restriction of clients that is not converted. */
  readonly lost: Directive | undefined;
}

/** The value of `tls`. */
export function tlsOf(site: Directive, host: string, options: Options, findings: Findings): Tls {
  const settings = site.block?.filter(({ name }) => name === "tls") ?? [];
  const args = settings.flatMap((each) => each.args);
  const lines = settings.flatMap((each) => each.block ?? []);
  const [first, second] = args;
  const value: Record<string, unknown> = {};
  let lost: Directive | undefined;
  let { email, directory } = options;
  let isInternal = first === "internal";
  let challenge: string | undefined;
  if (first?.includes("@")) email = first;
  for (const line of lines) {
    const [kind, ...rest] = line.args;
    if (line.name === "protocols") {
      if (kind === "tls1.3") value.minTLSVersion = "TLS_V1_3";
      if (line.args.at(-1) === "tls1.2") value.maxTLSVersion = "TLS_V1_2";
    } else if (line.name === "ca" && kind !== undefined) directory = kind;
    else if (line.name === "issuer" && kind === "internal") isInternal = true;
    else if (line.name === "issuer" && kind === "acme") {
      directory = line.block?.find(({ name }) => name === "dir")?.args[0] ?? rest[0] ?? directory;
      email = line.block?.find(({ name }) => name === "email")?.args[0] ?? email;
    } else if (line.name === "dns" || line.name === "dns_challenge") {
      challenge = "dns-01";
      findings.find(
        "error",
        line,
        `the DNS provider ${kind ?? ""} is not called`,
        "set dns of tls.acme to a hook, such as one for lego",
      );
    } else if (line.name === "client_auth") {
      const client = clientAuth(line);
      if (client === undefined) lost = line;
      else Object.assign(value, client);
    } else if (line.name === "import") lost = line;
    else findings.find("error", line, `${line.name} of tls has no equivalent here`, TLS_REMEDIES[line.name]);
  }
  if (first !== undefined && second !== undefined) return { value: { ...value, cert: first, key: second }, lost };
  const needsDns = host.startsWith("*.") && !isInternal;
  if (isInternal || (isPrivate(host) && directory === undefined)) {
    findings.find(
      "warning",
      site,
      `certificates of ${host} are signed by Caddy's own authority, whose files have to be copied`,
      "copy pki/authorities/local/root.crt and root.key from the storage of Caddy",
    );
    const authority = "pki/authorities/local/root";
    return { value: { ...value, mode: "dynamicCa", cert: `${authority}.crt`, key: `${authority}.key` }, lost };
  }
  if (needsDns && challenge === undefined)
    findings.find("error", site, `${host} needs the challenge dns-01`, "set dns of tls.acme to a hook");
  return {
    value: {
      ...value,
      acme: {
        ...(email !== undefined && { email }),
        ...(directory !== undefined && { directory }),
        ...((challenge !== undefined || needsDns) && { challenge: "dns-01", dns: { command: ["./dns-hook"] } }),
      },
    },
    lost,
  };
}

const TLS_REMEDIES: Readonly<Record<string, string>> = {
  on_demand: "write a listener for each name",
  ciphers: "set tls.cipherSuites by the names of the standard",
  alpn: "the gateway offers h2 and http/1.1",
  eab: "set externalAccount of tls.acme",
  resolvers: "the hook of dns-01 knows the servers of the zone",
};

/** Undefined: the clients that it lets in cannot be said. */
function clientAuth({ block = [] }: Directive): Json | undefined {
  const mode = block.find(({ name }) => name === "mode")?.args[0];
  const pool = block.find(({ name }) => name === "trusted_ca_cert_file" || name === "trust_pool");
  const isFile = pool?.name === "trust_pool" ? pool.args[0] === "file" && pool.args.length === 2 : true;
  const root = isFile ? pool?.args.at(-1) : undefined;
  const isVerified = mode === "require_and_verify" || mode === "verify_if_given" || mode === undefined;
  if (root === undefined || !isVerified || block.length > (mode === undefined ? 1 : 2)) return undefined;
  return { root, ...(mode === "verify_if_given" && { clientCertificates: "optional" }) };
}
