/** The block `server`: names, ports and certificates. */
import { isIP } from "node:net";
import type { Json } from "../converted.ts";
import type { Directive } from "./parse.ts";
import type { Reading } from "./reading.ts";
import { all, one, valuesOf } from "./scope.ts";

export interface Server {
  readonly directive: Directive;
  readonly block: readonly Directive[];
  readonly names: readonly string[];
  readonly listens: readonly Listen[];
}

export interface Listen {
  readonly directive: Directive;
  /** Undefined: every address. */
  readonly address: string | undefined;
  readonly port: number;
  readonly tls: boolean;
  readonly isDefault: boolean;
}

const LISTEN_REMEDIES: Readonly<Record<string, string>> = {
  proxy_protocol: "set frontendPolicies.proxyProtocol",
};

export function readServer(reading: Reading, directive: Directive): Server {
  const block = directive.block ?? [];
  const names = valuesOf(block, "server_name").flatMap(({ args }) => args);
  const hasTls = one([block, reading.http], "ssl")?.args[0] === "on";
  const listens = valuesOf(block, "listen").flatMap((each): readonly Listen[] => {
    const [first = "", ...options] = each.args;
    const [, host, port] = /^(?:(.*):)?(\d+)$/.exec(first) ?? [undefined, first, "80"];
    if (first.startsWith("unix:")) {
      reading.find("error", each, "a listener on a Unix socket is left out", "give the gateway a port");
      return [];
    }
    const address = host === undefined || ["*", "0.0.0.0", "[::]"].includes(host) ? undefined : addressOf(host);
    if (address !== undefined && isIP(address) === 0)
      reading.find("error", each, `${address} is not an IP address`, "write its address");
    for (const option of options)
      if (
        !["ssl", "http2", "default_server", "default", "reuseport", "deferred", "quic"].includes(option) &&
        !option.includes("=")
      )
        reading.find("warning", each, `option ${option} is left out`, LISTEN_REMEDIES[option]);
    if (options.includes("quic")) {
      reading.find("error", each, "HTTP/3 is not supported", "clients use HTTP/2");
      return [];
    }
    return [
      {
        directive: each,
        address,
        port: Number(port),
        tls: hasTls || options.includes("ssl"),
        isDefault: options.includes("default_server") || options.includes("default"),
      },
    ];
  });
  return {
    directive,
    block,
    names,
    listens: listens.length > 0 ? listens : [{ directive, address: undefined, port: 80, tls: false, isDefault: false }],
  };
}

export function hostnames(reading: Reading, { names, block, directive }: Server): readonly string[] {
  const at = one([block], "server_name") ?? directive;
  const hosts = names.flatMap((name): readonly string[] => {
    // An address that no client names.
    if (name === "_" || name === "") return [];
    if (isPattern(name)) {
      reading.find("error", at, `server_name ${name} is left out`, "write each host name, or *. and a name");
      return [];
    }
    const host = name.toLowerCase();
    return host.startsWith(".") ? [host.slice(1), `*${host}`] : [host];
  });
  return [...new Set(hosts)];
}

/** Whether a name of a server stands for hosts that no listener can have. */
export function isPattern(name: string): boolean {
  return name.startsWith("~") || name.endsWith("*");
}

export function tlsOf(reading: Reading, { block, directive }: Server): Json {
  const scope = [block, reading.http];
  const certs = all(scope, "ssl_certificate").map(({ args }) => reading.file(args[0] ?? ""));
  const keys = all(scope, "ssl_certificate_key").map(({ args }) => reading.file(args[0] ?? ""));
  const [cert = "cert.pem", ...moreCerts] = certs;
  const [key = "key.pem", ...moreKeys] = keys;
  if (certs.length === 0)
    reading.find("error", directive, "TLS without ssl_certificate", "put the paths of your certificate into tls");
  const protocols = all(scope, "ssl_protocols").flatMap(({ args }) => args);
  const known = ["TLSv1.2", "TLSv1.3"].filter((each) => protocols.includes(each));
  const old = protocols.filter((each) => !known.includes(each));
  const at = one(scope, "ssl_protocols");
  if (at !== undefined && old.length > 0)
    reading.find("warning", at, `${old.join(", ")}: old versions of TLS are not spoken`, "clients need TLS 1.2 or 1.3");
  const verify = one(scope, "ssl_verify_client")?.args[0];
  const ca = (one(scope, "ssl_client_certificate") ?? one(scope, "ssl_trusted_certificate"))?.args[0];
  return {
    cert,
    key,
    ...(moreCerts.length > 0 && {
      otherCertificates: moreCerts.map((each, i) => ({ cert: each, key: moreKeys[i] ?? key })),
    }),
    ...(known.length === 1 && {
      [known[0] === "TLSv1.3" ? "minTLSVersion" : "maxTLSVersion"]: known[0] === "TLSv1.3" ? "TLS_V1_3" : "TLS_V1_2",
    }),
    ...(ca !== undefined &&
      (verify === "on" || verify === "optional") && {
        root: reading.file(ca),
        ...(verify === "optional" && { clientCertificates: "optional" }),
      }),
  };
}

export function defaultOf(port: number, servers: readonly Server[]): Server | undefined {
  const on = servers.filter(({ listens }) => listens.some((each) => each.port === port));
  return on.find(({ listens }) => listens.some((each) => each.port === port && each.isDefault)) ?? on[0];
}

/** An IPv6 address without its brackets; a name stays as it is. */
function addressOf(host: string): string {
  return host === "localhost" ? "127.0.0.1" : host.replace(/^\[(.*)\]$/, "$1");
}

/** Where all servers of a port listen; undefined: at every address. */
export function addressesOf(port: number, servers: readonly Server[]): readonly string[] | undefined {
  const addresses = servers
    .flatMap(({ listens }) => listens)
    .flatMap((each) => (each.port === port ? [each.address] : []));
  const named = addresses.filter((each) => each !== undefined);
  return named.length < addresses.length ? undefined : [...new Set(named)];
}
