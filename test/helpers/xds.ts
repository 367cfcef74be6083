import { ServerCredentials } from "@grpc/grpc-js";
import { LogOutput } from "../../src/base/log.ts";
import { parseLogFilter } from "../../src/base/log-filter.ts";
import { nameOfKey } from "../../src/base/object-key.ts";
import type { Ir } from "../../src/ir/ir.ts";
import { unpackIr } from "../../src/ir/packed-ir.ts";
import {
  type Address,
  type GatewayState,
  nameOfAddress,
  nameOfResource,
  type Resource,
} from "../../src/xds/resources.ts";
import { XdsServer, type XdsServerOptions } from "../../src/xds/server/server.ts";
import { irOf } from "./supervisor.ts";

export const GATEWAY = "ns/gw";

/** A configuration as users write it in a file, as the resources of a Gateway. Parts that equal those of `before` stay the same objects. */
export function stateOf(config: object, before?: GatewayState): GatewayState {
  return stateOfIr(unpackIr(irOf(config)), before);
}

function stateOfIr(ir: Ir, before?: GatewayState): GatewayState {
  const resources: Resource[] = [];
  for (const { listeners, ...bind } of ir.binds) {
    resources.push({ kind: "bind", bind });
    for (const { routes, tcpRoutes, ...listener } of listeners) {
      resources.push({ kind: "listener", bind: bind.key, listener });
      const owner = listener.key;
      for (const route of routes) resources.push({ kind: "route", listener: owner, route });
      for (const [i, route] of tcpRoutes.entries())
        resources.push({ kind: "tcpRoute", listener: owner, route: { ...route, createdAt: i } });
    }
  }
  for (const backend of ir.backends) resources.push({ kind: "backend", backend });
  for (const policy of ir.targeted) resources.push({ kind: "policy", policy });
  const addresses: Address[] = [
    ...ir.services.map((service) => ({ kind: "service", service }) as const),
    ...ir.workloads.map((workload) => ({ kind: "workload", workload }) as const),
  ];
  return {
    resources: named(resources, nameOfResource, before?.resources),
    addresses: named(addresses, nameOfAddress, before?.addresses),
  };
}

function named<Part>(
  parts: readonly Part[],
  nameOf: (part: Part) => string,
  before: ReadonlyMap<string, Part> = new Map(),
): Map<string, Part> {
  return new Map(
    parts.map((part) => {
      const name = nameOf(part);
      const former = before.get(name);
      return [name, former !== undefined && JSON.stringify(former) === JSON.stringify(part) ? former : part];
    }),
  );
}

/** A stream server on a free port, without TLS and tokens unless asked for. */
export class TestXdsServer {
  readonly server: XdsServer;
  port = 0;
  readonly lines: string[] = [];

  private constructor(options: Partial<XdsServerOptions>) {
    const output = new LogOutput(parseLogFilter("debug"), "text", (line) => this.lines.push(line));
    this.server = new XdsServer({
      credentials: ServerCredentials.createInsecure(),
      accountOf: (fleet) => {
        const { namespace, name } = nameOfKey(fleet);
        return { namespace, serviceAccount: name };
      },
      log: output.logger("xds"),
      ...options,
    });
  }

  static async start(options: Partial<XdsServerOptions> = {}, port = 0): Promise<TestXdsServer> {
    const started = new TestXdsServer(options);
    started.port = await started.server.listen(`127.0.0.1:${port}`);
    return started;
  }

  get address(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.close();
  }
}
