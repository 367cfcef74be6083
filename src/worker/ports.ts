/**
 * Ports before a reload: the main thread proves that each new port is free, and has the system choose a number for port 0,
 * before any worker listens. Called by the supervisor.
 */
import { createServer } from "node:net";
import { messageOf } from "../base/errors.ts";
import { InheritedSockets } from "../base/inherited-sockets.ts";
import { listenAt, RESERVED_PORT_REMEDY } from "../base/listen-address.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import { claimSocketFile } from "../base/socket-file.ts";
import { bindAddresses, formatBindAddress } from "../ir/bind-addresses.ts";
import type { Bind } from "../ir/ir.ts";
import { RejectedParts } from "../ir/rejected-parts.ts";
import { UdpPort } from "../net/udp-socket.ts";
import type { Ports } from "../proxy/data-plane.ts";

/** A bind's port cannot be opened; the message says which, why, and what to do. */
export class PortError extends RejectedParts {
  constructor(bind: string, reason: string) {
    super([{ bind, reason }]);
  }
}

/** The ports of a configuration by bind key. */
interface ProbedPorts {
  readonly ports: Ports;
  /** Closes the sockets that reserve the ports chosen by the system. Call it once the workers listen, or have failed to. */
  release(): void;
}

/**
 * Checks that new ports are free and replaces port 0 by a number that all workers share. Workers listen with SO_REUSEPORT
 * (socket(7)), which would silently share a port with another gateway of the same user, each getting a part of the connections;
 * an exclusive listen fails instead. A port that the system chose stays open, with SO_REUSEPORT, until `release`: otherwise
 * another process could get it before the workers do. All new ports are noted as own ones until then. `open` are the ports in use, which are kept,
 * `inherited` sockets that the process has already. Rejects with PortError.
 */
export async function probePorts(
  binds: readonly Bind[],
  open: Ports,
  reusePort: boolean,
  own: OwnSockets,
  inherited = new InheritedSockets(),
): Promise<ProbedPorts> {
  const ports: Record<string, number> = {};
  const held: ProbedPort[] = [];
  const forgets: (() => void)[] = [];
  const release = (): void => {
    for (const probed of held) void probed.close();
    for (const forget of forgets) forget();
  };
  try {
    for (const bind of binds) {
      if (bind.mode === "internal") continue;
      const known = open[bind.key];
      if (known !== undefined) {
        ports[bind.key] = known;
        continue;
      }
      ports[bind.key] = bind.port;
      for (const address of bindAddresses(bind, bind.port)) {
        if (inherited.has(formatBindAddress(address))) continue;
        if ("path" in address) {
          if (!own.hasUnixPath(address.path)) await claimFile(address.path, bind.key);
          continue;
        }
        const { host } = address;
        const protocol = bind.protocol === "udp" ? "udp" : "tcp";
        // A bind of this process is there, which the new one shares the port with until the former closes.
        if (reusePort && bind.port !== 0 && own.find(protocol, bind.port, host) === "bind") continue;
        const hold = reusePort && bind.port === 0;
        // Until the other gateway drains, both have the ports of UDP.
        const shared = hold || (reusePort && protocol === "udp" && inherited.takesOver);
        const probed = await listen(host, bind, shared, own).catch((error: NodeJS.ErrnoException) => {
          const at = bind.addresses === undefined ? "" : ` of ${host}`;
          const what = bind.protocol === "udp" ? "UDP port" : "port";
          throw new PortError(
            bind.key,
            `cannot listen on ${what} ${bind.port}${at} for ${bind.key}: ${inWords(error)}`,
          );
        });
        ports[bind.key] = probed.port;
        // Until the workers listen: between that and their own note, one of them could connect to another.
        forgets.push(own.addPort(protocol, "bind", probed.port, host));
        if (hold) held.push(probed);
        else await probed.close();
      }
    }
  } catch (error) {
    release();
    throw error;
  }
  return { ports, release };
}

async function claimFile(path: string, key: string): Promise<void> {
  const problem = await claimSocketFile(path).catch(messageOf);
  if (problem === undefined) return;
  const words: Readonly<Record<string, string>> = {
    "other file": "the file exists and is not a socket; remove it or choose another path",
    "in use": "another process listens there; stop it or choose another path",
  };
  throw new PortError(key, `cannot listen on unix:${path} for ${key}: ${words[problem] ?? problem}`);
}

/** A port that is open for a moment. */
interface ProbedPort {
  readonly port: number;
  close(): Promise<void> | void;
}

/** Rejects with the system's error. */
async function listen(
  host: string,
  { port, protocol }: Pick<Bind, "port" | "protocol">,
  reusePort: boolean,
  own: OwnSockets,
): Promise<ProbedPort> {
  if (protocol === "udp") return UdpPort.open({ host, port, reusePort, own }, () => {});
  // A reserved port is not announced yet; a stray connection is closed.
  const server = createServer((socket) => socket.destroy());
  const listening = (at: string): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host: at, port, exclusive: true, reusePort }, resolve);
    });
  await listenAt(host, listening);
  const address = server.address();
  const opened = typeof address === "object" && address !== null ? address.port : port;
  server.once("close", own.addPort("tcp", "bind", opened, host));
  return {
    port: opened,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function inWords(error: NodeJS.ErrnoException): string {
  if (error.code === "EADDRINUSE") return "the port is in use; stop the program that uses it or choose another port";
  if (error.code === "EACCES") return `not permitted to this user; choose a port above 1023, ${RESERVED_PORT_REMEDY}`;
  if (error.code === "EADDRNOTAVAIL") return "it is not an address of this machine; ip address lists them";
  return error.message;
}
