import type { Path } from "../../base/paths.ts";
import { hasPort } from "../../ir/bind-addresses.ts";
import type { Bind, Frontend, Listener } from "../../ir/ir.ts";
import { levelOf, recorded } from "../../ir/origins.ts";
import { mergeLevels } from "../../policies/merge.ts";
import { checkTlsServer, findInvalid, type TlsProblem } from "../../tls/tls-check.ts";
import type { TlsServer } from "../../tls/tls-settings.ts";
import { adviseOnPeers, adviseOnRoutes, foreignCertificate } from "../../translation/advice.ts";
import { tunnelFrontend } from "../../translation/frontend.ts";
import { translatePolicies } from "../../translation/policies.ts";
import { problemOf } from "../../translation/problems/lint.ts";
import { reportDuplicates } from "../../translation/references.ts";
import type { BindInput, BindListenerInput, TlsInput } from "../schema/listeners.ts";
import { type AcmeCertificate, checkBesideCertificate, translateAcme } from "./acme.ts";
import { listeningAt } from "./addresses.ts";
import type { Context, ListenerPlace } from "./context.ts";
import { inlineEntries } from "./route-backends.ts";
import { translateRoute, translateTcpRoute } from "./routes.ts";
import { reportUnusableAtListener } from "./unusable.ts";

type Protocol = Listener["protocol"];

/** One entry of `binds`. */
export function translateBind(input: BindInput, path: Path, frontend: Frontend, host: string, context: Context): Bind {
  const { port = 0, mode } = input;
  const udp = input.listeners.some(({ protocol }) => protocol === "UDP");
  const at = listeningAt(input, path, context.report);
  const name = mode === "internal" && port === 0 ? "internal" : udp ? `udp/${at.label}` : at.label;
  const listeners = input.listeners.map((listener, i) =>
    translateListener(listener, i, name, port, [...path, "listeners", i], context),
  );
  reportDuplicates("listener", listeners, context.report);
  return bindAt({ input, at, listeners }, path, frontend, host, context);
}

/** What a bind or gateway says about how it is reached, and its listeners. */
interface Reached {
  readonly input: Pick<BindInput, "port" | "mode" | "tunnelProtocol">;
  readonly at: ReturnType<typeof listeningAt>;
  readonly listeners: readonly Listener[];
}

/** An entry of `binds` or `gateways` as a bind. */
export function bindAt(
  { input, at, listeners }: Reached,
  path: Path,
  frontend: Frontend,
  host: string,
  context: Context,
): Bind {
  const { port = 0, mode, tunnelProtocol } = input;
  if (tunnelProtocol === "proxy") adviseOnPeers(frontend.proxyProtocol, [...path, "tunnelProtocol"], context.report);
  if (mode === "internal" && at.addresses !== undefined)
    context.report([...path, "address"], { message: "cannot be set with mode: internal, which opens no socket" });
  if (input.port === undefined && mode === "standard" && hasPort({ host, ...at }))
    context.report(
      path,
      { message: "is required, unless mode is internal or every address begins with unix:" },
      "port",
    );
  const bind = makeBind({ host, port, ...at }, listeners, path, tunnelFrontend(frontend, tunnelProtocol), context);
  if (bind.protocol === "udp" && (mode === "internal" || tunnelProtocol !== "direct"))
    context.report(path, {
      message: "a UDP listener takes neither mode: internal nor a tunnelProtocol, which are for connections",
    });
  const key = mode === "standard" ? bind.key : port === 0 ? "bind/internal" : `bind/internal/${port}`;
  return { ...bind, key, tunnelProtocol, mode };
}

/** A bind over listeners that may share a port. `label`: how its key names where it listens. */
function makeBind(
  { label, ...at }: Pick<Bind, "host" | "port" | "addresses" | "socketMode"> & { readonly label: string },
  listeners: readonly Listener[],
  path: Path,
  frontend: Frontend,
  context: Context,
): Bind {
  const { port } = at;
  const udp = listeners.filter((each) => each.protocol === "UDP");
  if (udp.length > 0 && listeners.length > 1)
    context.report(path, {
      message: `port ${port} has a UDP listener and others; datagrams cannot be assigned to one of them, so give it a bind of its own`,
    });
  if (udp.length > 0 && at.addresses !== undefined && (at.addresses.length > 1 || !hasPort(at)))
    context.report([...path, "address"], {
      message: "a UDP listener has one IP address, from which it responds; write a bind for each address",
    });
  const secure = listeners.filter((each) => each.protocol === "HTTPS" || each.protocol === "TLS");
  const tcp = listeners.filter((each) => each.protocol === "TCP");
  for (const [i, { protocol }] of listeners.entries())
    if (secure.length > 0 && protocol !== "HTTPS" && protocol !== "TLS" && protocol !== "UDP")
      context.report([...path, "listeners", i], {
        message: `a plaintext listener on port ${port}, which has TLS listeners; give it a port of its own`,
        absent: [...path, "listeners", i, "tls"],
      });
  if (tcp.length > 0 && tcp.length + udp.length < listeners.length && secure.length === 0)
    context.report(path, { message: `port ${port} mixes HTTP and TCP listeners; give them ports of their own` });
  if (tcp.length > 1)
    context.report(path, {
      message: `port ${port} has ${tcp.length} TCP listeners; connections cannot be assigned to one of them`,
    });
  const hostnames = new Map<string, string>();
  for (const [i, { hostname, name }] of listeners.entries()) {
    const host = hostname === "" ? "*" : hostname;
    const first = hostnames.get(host);
    if (first === undefined) hostnames.set(host, name);
    // TCP listeners cannot be distinguished by host. An invalid hostname that was left out is not the default.
    else if (tcp.length + udp.length === 0 && (host !== "*" || context.incomplete.size === 0))
      context.report([...path, "listeners", i, "hostname"], {
        message: `listener ${first} of this port has hostname ${host} too; only that one would be used`,
      });
  }
  return {
    key: udp.length > 0 ? `bind/udp/${label}` : `bind/${label}`,
    ...at,
    protocol: udp.length > 0 ? "udp" : secure.length > 0 ? "tls" : tcp.length > 0 ? "tcp" : "http",
    tunnelProtocol: "direct",
    mode: "standard",
    frontend,
    listeners,
  };
}

const INSTEAD = { HTTP: ", or use HTTPS", TCP: ", or use TLS", UDP: "" } as const;

/** Whether a listener has HTTP routes, not those of connections. */
export function isHttp({ protocol }: { readonly protocol: Protocol }): boolean {
  return protocol === "HTTP" || protocol === "HTTPS";
}

/** Reports a mismatch between a listener's protocol and its `tls` (reference 1.4). */
export function checkProtocol(protocol: Protocol, tls: boolean, path: Path, context: Context): void {
  if (tls && protocol !== "HTTPS" && protocol !== "TLS")
    context.report([...path, "tls"], { message: `protocol ${protocol} cannot set tls; remove it${INSTEAD[protocol]}` });
  else if (!tls && protocol === "HTTPS")
    context.report([...path, "protocol"], {
      message: "protocol HTTPS requires tls; set its cert and key, or acme",
      absent: [...path, "tls"],
    });
}

/**
 * The certificates of a listener, read and tried now: a handshake must not be the first to find a mistake. What the listener does
 * not say is as in `frontendPolicies.tls`.
 */
export function translateTls(
  input: TlsInput,
  hostname: string,
  path: Path,
  context: Context,
): Pick<Listener, "tls" | "acme"> {
  const acme = input.acme && translateAcme(input.acme, hostname, [...path, "acme"], context);
  for (const field of ["cert", "key", "ocspStaple", "otherCertificates"] as const)
    if (input.acme !== undefined && input[field] !== undefined)
      context.report([...path, field], { message: "cannot be set with acme, which gets the certificate; remove it" });
  if (input.acme !== undefined && input.mode === "dynamicCa")
    context.report([...path, "mode"], { message: "cannot be dynamicCa with acme; remove one of them" });
  const tls = serverTls(input, acme, hostname, path, context);
  return { tls, ...(acme !== undefined && { acme: acme.managed }) };
}

function serverTls(
  input: TlsInput,
  acme: AcmeCertificate | undefined,
  hostname: string,
  path: Path,
  context: Context,
): TlsServer {
  const {
    minTLSVersion = input.minTlsVersion ?? context.tls.minVersion,
    maxTLSVersion = input.maxTlsVersion ?? context.tls.maxVersion,
    cipherSuites = context.tls.cipherSuites,
    keyExchangeGroups = context.tls.keyExchangeGroups,
  } = input;
  const version = (text: string | undefined) => (text === "TLS_V1_3" ? "TLSv1.3" : "TLSv1.2");
  const read = (field: "cert" | "key"): string | undefined => {
    const file = input[field];
    if (file === undefined || input.acme !== undefined) return acme?.pair?.[field];
    return context.sources.readFile([...path, field], file);
  };
  const [cert, key] = [read("cert"), read("key")];
  const stapleOf = (place: Path, file: string | undefined): { ocspStaple?: string } => {
    const response = file === undefined ? undefined : context.sources.readBytes([...place, "ocspStaple"], file);
    return response === undefined ? {} : { ocspStaple: response.toString("base64") };
  };
  const others = (input.otherCertificates ?? []).map((other, i) => ({
    ...stapleOf([...path, "otherCertificates", i], other.ocspStaple),
    cert: context.sources.readFile([...path, "otherCertificates", i, "cert"], other.cert) ?? "",
    key: context.sources.readFile([...path, "otherCertificates", i, "key"], other.key) ?? "",
  }));
  const clientCa = input.root === undefined ? undefined : context.sources.readFile([...path, "root"], input.root);
  const tls: TlsServer = {
    cert: cert ?? "",
    key: key ?? "",
    ...stapleOf(path, input.ocspStaple),
    ...(others.length > 0 && { otherCertificates: others }),
    ...(clientCa !== undefined && { clientCa }),
    ...(input.clientCertificates === "optional" && { clientCertificates: "optional" as const }),
    ...(minTLSVersion !== undefined && { minVersion: version(minTLSVersion) }),
    ...(maxTLSVersion !== undefined && { maxVersion: version(maxTLSVersion) }),
    ...(cipherSuites !== undefined && { cipherSuites }),
    ...(keyExchangeGroups !== undefined && { keyExchangeGroups }),
    ...(context.tls.alpn !== undefined && { alpn: context.tls.alpn }),
    ...(input.mode === "dynamicCa" && input.acme === undefined && { dynamicCa: context.leafCaching }),
    ...(acme !== undefined && acme.pair === undefined && { pending: acme.pending }),
  };
  if (input.mode === "dynamicCa" && input.root !== undefined)
    context.report([...path, "root"], {
      message:
        "cannot be set with mode: dynamicCa, which asks for no client certificates; remove it, or use mode: static",
    });
  if (input.mode === "dynamicCa" && input.ocspStaple !== undefined)
    context.report([...path, "ocspStaple"], {
      message: "cannot be set with mode: dynamicCa, whose certificates name no responder; remove it",
    });
  if (input.mode === "dynamicCa" && others.length > 0)
    context.report([...path, "otherCertificates"], {
      message: "cannot be set with mode: dynamicCa, which signs a certificate for each server name; remove it",
    });
  if (input.clientCertificates === "optional" && input.root === undefined)
    context.report([...path, "clientCertificates"], {
      message: "needs root, the CAs by which client certificates are verified",
    });
  if (others.some((other) => other.cert === "" || other.key === "")) return tls;
  if (acme !== undefined) {
    const problem = checkBesideCertificate(tls);
    if (problem !== undefined) context.report([...path, ...locate(problem)], { message: withFile(problem, input) });
    return tls;
  }
  if (cert === undefined || key === undefined || (input.root !== undefined && clientCa === undefined)) return tls;
  const problem = checkTlsServer(tls);
  if (problem !== undefined) {
    context.report([...path, ...locate(problem)], { message: withFile(problem, input) });
    return tls;
  }
  const foreign = foreignCertificate(tls, hostname);
  if (foreign !== undefined) context.report([...path, "cert"], problemOf(foreign));
  for (const { certificate, ...expiry } of findInvalid(tls, Date.now()))
    context.report([...path, ...locate(expiry)], {
      message: withFile(expiry, input),
      warning: true,
      ...(certificate !== undefined && { invalidCertificate: certificate }),
    });
  return tls;
}

const TLS_FIELDS = {
  cert: ["cert"],
  key: ["key"],
  ocspStaple: ["ocspStaple"],
  clientCa: ["root"],
  minVersion: ["minTLSVersion"],
  cipherSuites: ["cipherSuites"],
} as const;

function locate({ field, suite, other }: TlsProblem): Path {
  const path = [
    ...(other === undefined ? [] : ["otherCertificates", other]),
    ...(field === undefined ? [] : TLS_FIELDS[field]),
  ];
  return suite === undefined ? path : [...path, suite];
}

/** Names the file, because the log has no excerpt of the configuration and the file is what has to be renewed. */
function withFile({ field, other, message }: TlsProblem, input: TlsInput): string {
  const files = other === undefined ? input : input.otherCertificates?.[other];
  let file: string | undefined;
  if (field === "clientCa") file = input.root;
  else if (field === "cert" || field === "key" || field === "ocspStaple") file = files?.[field];
  return file === undefined ? message : `${file}: ${message}`;
}

function translateListener(
  input: BindListenerInput,
  index: number,
  bind: string,
  port: number,
  path: Path,
  context: Context,
): Listener {
  const name = input.name ?? `listener${index}`;
  const key = `${input.namespace}/default/bind/${bind}/${name}`;
  const { protocol, routes, tcpRoutes } = input;
  const http = isHttp(input);
  checkProtocol(protocol, input.tls !== undefined, path, context);
  if (routes !== undefined && tcpRoutes !== undefined)
    context.report(path, { message: "only one of routes, tcpRoutes may be set" });
  else if (http && routes === undefined) context.report(path, { message: `protocol ${protocol} requires 'routes'` });
  else if (!http && tcpRoutes === undefined)
    context.report(path, { message: `protocol ${protocol} requires 'tcpRoutes'` });
  const own = levelOf(translatePolicies(input.policies, "gateway", [...path, "policies"], context));
  if (!http) reportUnusableAtListener(input.policies ?? {}, [...path, "policies"], context.report);
  const place: ListenerPlace = { key, name, gatewayName: "default", gatewayNamespace: input.namespace, protocol, port };
  context.listeners.set(key, place);
  const targeted = context.targeted.forListener(place);
  context.inline.push(...inlineEntries(`listener/${key}`, place, own.set, [...path, "policies"]));
  const owner = { key, targeted, udp: protocol === "UDP" };
  const translated = (routes ?? []).map((route, i) => translateRoute(route, i, owner, [...path, "routes", i], context));
  const translatedTcp = (tcpRoutes ?? []).map((route, i) =>
    translateTcpRoute(route, i, owner, [...path, "tcpRoutes", i], context),
  );
  reportDuplicates("route", [...translated, ...translatedTcp], context.report);
  const listener = {
    key,
    name,
    gatewayName: "default",
    gatewayNamespace: input.namespace,
    hostname: input.hostname.toLowerCase(),
    protocol,
    origin: { path },
    ...(input.tls !== undefined && translateTls(input.tls, input.hostname, [...path, "tls"], context)),
    ...recorded(mergeLevels(targeted.gateway, own)),
    routes: translated,
    tcpRoutes: translatedTcp,
  };
  adviseOnRoutes(listener, context.report);
  return listener;
}
