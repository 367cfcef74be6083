import { GatewayError } from "../../base/errors.ts";
import type { Networks } from "../../base/ip-address.ts";
import { type Activation, type CelEnvironment, CelError, type Expression, readsBody } from "../../cel/index.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import type { Endpoints } from "../endpoints/endpoints.ts";
import type { ConnectionSettings } from "../settings/pool-target.ts";

/**
 * `dynamic.target`: CEL for the address to call, such as `10.0.0.1:80`, `[::1]:80` or `name.example:443`. For a connection, fewer
 * variables exist than for a request.
 */
export class DynamicTarget {
  readonly #expression: Expression;

  /** Throws CelError when the expression cannot be used. */
  constructor(text: string, scope: "request" | "network", cel: CelEnvironment) {
    this.#expression = cel.compileExpression(text, scope);
    const { type } = this.#expression;
    if (type !== "string" && type !== "dyn")
      throw new CelError(`the target is of type ${type}; it has to be text such as "name.example:443"`, text, 0);
    if (readsBody(this.#expression, "request"))
      throw new CelError("the backend is chosen before the body is read; a target cannot depend on it", text, 0);
  }

  /** `host:port`. Throws a GatewayError if the request has no valid target. */
  read(variables: Activation): string {
    let value: unknown;
    try {
      value = this.#expression.evaluate(variables);
    } catch (error) {
      throw new GatewayError("TG_DNS_FAILED", undefined, error);
    }
    if (typeof value === "string" && isHostPort(value)) return value;
    const what = typeof value === "string" ? JSON.stringify(value) : "the target's value";
    throw new GatewayError("TG_DNS_FAILED", undefined, new Error(`${what} is not host:port`));
  }
}

function isHostPort(text: string): boolean {
  const port = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(text)?.[1];
  return port !== undefined && Number(port) > 0 && Number(port) <= 65535;
}

/** Targets of `dynamic` backends that are kept: clients name them, so their number has to be bounded. The oldest is dropped first. */
const MAX_TARGETS = 1024;
const HAS_PORT = /:\d+$/;

/** How a `dynamic` backend connects. */
export interface DynamicConnection {
  readonly settings: ConnectionSettings;
  /** Distinguishes these settings from others; `` for none. */
  readonly identity: string;
}

/** Finds the endpoint of an authority, on `port` unless it names one; undefined when it names no host. */
export type DynamicEndpoints = (
  authority: string,
  port: number,
  connection: DynamicConnection | undefined,
) => Endpoint | undefined;

/**
 * A forward proxy's targets: an authority, by default that of the request (docs/configuration.md#dynamictarget). `denied`:
 * networks in which clients cannot name addresses; nothing is looked up for those, so the rules for names (lookup-rules.ts) do
 * not see them.
 */
export function dynamicEndpoints(endpoints: Endpoints, denied: Networks): DynamicEndpoints {
  const known = new Map<string, Endpoint>();
  return (authority, defaultPort, connection) => {
    const address = HAS_PORT.test(authority) ? authority : `${authority}:${defaultPort}`;
    const name = connection === undefined ? address : `${address} ${connection.identity}`;
    let endpoint = known.get(name);
    if (endpoint !== undefined) return endpoint;
    let url: URL;
    try {
      url = new URL(`http://${address}/`);
    } catch {
      return undefined;
    }
    // As URLs read it, which know further spellings of IPv4 addresses, such as `0x7f.1`.
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (host === "" || denied.isReachedBy(host)) return undefined;
    const target = { host, port: url.port === "" ? 80 : Number(url.port), ...connection?.settings };
    endpoint = endpoints.acquire(target, 1, "dynamic");
    known.set(name, endpoint);
    const oldest = known.size > MAX_TARGETS ? known.entries().next().value : undefined;
    if (oldest !== undefined) {
      known.delete(oldest[0]);
      endpoints.release([oldest[1]]);
    }
    return endpoint;
  };
}
