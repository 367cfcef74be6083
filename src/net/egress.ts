/**
 * The one check of all addresses that this process connects to, after name resolution. In: an address, and who chose it. Out: an
 * `AdmittedAddress`, which only this file creates and which every function that opens a connection requires (connect.ts, udp-socket.ts,
 * tls/tls-client.ts), or the reason for refusing it.
 */
import { realpathSync, statSync } from "node:fs";
import { sep } from "node:path";
import { type ErrorCode, messageOf } from "../base/errors.ts";
import { isLoopback, isOfThisHost, isUnspecified } from "../base/host-addresses.ts";
import { ipBytes, Networks } from "../base/ip-address.ts";
import { formatHostPort } from "../base/listen-address.ts";
import type { IpProtocol, OwnSockets } from "../base/own-sockets.ts";

/** An address to connect to: `host` is an IP address. */
export type SocketAddress = { readonly host: string; readonly port: number } | { readonly path: string };

/**
 * Who chose the targets of a configuration. `operator`: the user who runs the process, in its file. `stream`: all authors of objects that
 * the controller translates, such as a tenant with rights in one namespace only.
 */
export type Provenance = "operator" | "stream";

/** How an address became known. `named`: as text of the configuration, or as what a name in it resolves to. `discovered`: as that of a workload. */
type AddressSource = "named" | "discovered";

/** Which names backends may be found by; upstream/resolve/lookup-rules.ts applies them. */
export interface LookupRules {
  /** Names that are below one of these are not looked up; with any, no name is completed by search domains. */
  readonly denyDomains: readonly string[];
  /**
   * CIDR. Addresses inside are left out of what names resolve to, and `dynamic` targets and streams cannot name them. Addresses that
   * discovery reports are not affected: pods are usually inside.
   */
  readonly denyNetworks: readonly string[];
}

export const NO_LOOKUP_RULES: LookupRules = { denyDomains: [], denyNetworks: [] };

/** The address must not be connected to. */
export class AddressRefused extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Only this file has the key, so no other code can create an `AdmittedAddress`. */
const KEY: unique symbol = Symbol("egress");

/** An address that has passed the check. Instances exist only as results of `Egress.admit`. */
export class AdmittedAddress {
  readonly options: SocketAddress;
  readonly #egress: Egress;

  /** For `Egress.admit`. */
  constructor(key: typeof KEY, options: SocketAddress, egress: Egress) {
    if (key !== KEY) throw new TypeError("only Egress admits addresses");
    this.options = options;
    this.#egress = egress;
  }

  /**
   * The second half of the check, on the connected socket before any byte is sent: a connection with the same address at both ends has not
   * left this host, even if no interface has the address, or has had it only for a moment.
   */
  refusedAfter(
    {
      localAddress,
      remoteAddress,
    }: { readonly localAddress?: string | undefined; readonly remoteAddress?: string | undefined },
    protocol: IpProtocol = "tcp",
  ): AddressRefused | undefined {
    if ("path" in this.options || localAddress === undefined || localAddress !== remoteAddress) return undefined;
    return this.#egress.refusalOfPort(this.options.host, this.options.port, protocol);
  }
}

/** What an `Egress` needs to know of its process. */
export interface EgressOptions {
  readonly provenance: Provenance;
  readonly lookupRules: LookupRules;
  /** Folder that must contain a Unix socket named by a stream; undefined: a stream cannot name any. */
  readonly unixFolder?: string | undefined;
  /** The socket of `internal` backends, which only a file may name. */
  readonly internalSocket?: string | undefined;
}

export class Egress {
  readonly #options: EgressOptions;
  readonly #own: OwnSockets;
  readonly #denied: Networks;

  constructor(options: EgressOptions, own: OwnSockets) {
    this.#options = options;
    this.#own = own;
    this.#denied = new Networks(options.lookupRules.denyNetworks);
  }

  /** Whether a Unix socket of this process may be called as the target of `internal` backends. */
  get allowsInternal(): boolean {
    return this.#options.provenance === "operator";
  }

  /** The rules for every resolver whose addresses pass this check. */
  get lookupRules(): LookupRules {
    return this.#options.lookupRules;
  }

  /** Checks an address, whether a name resolved to it or the configuration contains it. */
  admit(
    address: SocketAddress,
    protocol: IpProtocol = "tcp",
    source: AddressSource = "named",
  ): AdmittedAddress | AddressRefused {
    if ("path" in address) return this.#admitPath(address.path);
    const { host, port } = address;
    const bytes = ipBytes(host);
    if (bytes === undefined) return new AddressRefused("TG_ADDRESS_REFUSED", `${host} is not an IP address`);
    const reserved = this.#options.provenance === "stream" ? this.#reservedAs(host, bytes, source) : undefined;
    if (reserved !== undefined) {
      const where = formatHostPort(host, port);
      return new AddressRefused(
        "TG_ADDRESS_REFUSED",
        `${where} is ${reserved}, which a backend in a controller's configuration cannot use`,
      );
    }
    const own = this.isOwn(host, port, protocol) ? this.refusalOfPort(host, port, protocol) : undefined;
    return own ?? new AdmittedAddress(KEY, address, this);
  }

  /** Whether this process listens at this address of this host. */
  isOwn(host: string, port: number, protocol: IpProtocol): boolean {
    // The system is only asked for its addresses for ports on which this process listens.
    return this.#own.find(protocol, port, host) !== undefined && isOfThisHost(host);
  }

  /** Why this port of this host must not be connected to; undefined if this process does not listen there. */
  refusalOfPort(host: string, port: number, protocol: IpProtocol): AddressRefused | undefined {
    const listener = this.#own.find(protocol, port, host);
    const where = formatHostPort(host, port);
    if (listener === "bind")
      return new AddressRefused("TG_LOOP", `${where} is a port that this gateway itself listens on`);
    if (listener === "server")
      return new AddressRefused("TG_ADDRESS_REFUSED", `${where} is one of the gateway's own servers`);
    return undefined;
  }

  /** Why a target from a stream must not have this address. */
  #reservedAs(host: string, bytes: Uint8Array, source: AddressSource): string | undefined {
    const denied = source === "named" && this.#denied.isReachedBy(host);
    return reservedAs(bytes) ?? (denied ? "in a network of config.dns.denyNetworks" : undefined);
  }

  /** The gateway connects to the path with all symbolic links resolved, so none can be changed after the check. */
  #admitPath(path: string): AdmittedAddress | AddressRefused {
    const { provenance, unixFolder, internalSocket } = this.#options;
    if (path === internalSocket && provenance === "operator") return new AdmittedAddress(KEY, { path }, this);
    try {
      if (provenance === "stream" && unixFolder === undefined)
        return new AddressRefused(
          "TG_ADDRESS_REFUSED",
          `unix:${path} cannot be reached: this proxy has no config.backend.unixFolder`,
        );
      const real = realpathSync(path);
      if (provenance === "stream" && !real.startsWith(realpathSync(unixFolder ?? "") + sep))
        return new AddressRefused(
          "TG_ADDRESS_REFUSED",
          `unix:${path} is not below config.backend.unixFolder of this proxy, ${unixFolder}`,
        );
      if (this.#own.hasUnix(statSync(real, { bigint: true })))
        return new AddressRefused("TG_ADDRESS_REFUSED", `unix:${path} is a socket that the gateway itself listens on`);
      return new AdmittedAddress(KEY, { path: real }, this);
    } catch (error) {
      return new AddressRefused("TG_UPSTREAM_FAILED", messageOf(error));
    }
  }
}

/** Metadata addresses of clouds, which give credentials and settings to a machine, besides the link-local ones. */
const METADATA = ["100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"].map(
  (text) => ipBytes(text)?.join(".") ?? "",
);

/** The reserved range of an address that a target from a stream must not have; undefined for all other addresses. */
function reservedAs(bytes: Uint8Array): string | undefined {
  const [first = 0, second = 0] = bytes;
  const v4 = bytes.length === 4;
  if (isLoopback(bytes)) return "a loopback address";
  if (isUnspecified(bytes)) return "the unspecified address";
  if (v4 ? first === 169 && second === 254 : first === 0xfe && (second & 0xc0) === 0x80) return "a link-local address";
  if (v4 ? first >= 224 && first < 240 : first === 0xff) return "a multicast address";
  if (v4 && bytes.every((byte) => byte === 255)) return "the broadcast address";
  if (METADATA.includes(bytes.join("."))) return "a metadata service";
  return undefined;
}
