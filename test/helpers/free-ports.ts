import { createServer } from "node:net";
import { UdpPeer } from "./udp-peer.ts";

/** Systems choose ports above these themselves: 32768 is the first on Linux. */
const FIRST = 10_000;
const LAST = 32_000;
/** Attempts per port. */
const ATTEMPTS = 100;

/**
 * Ports where nothing listens, for TCP and UDP, in tests that cannot let the system choose. The system does not assign them to another
 * socket meanwhile, as it may do with a port that it has chosen and that has been closed again.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  for (let left = count * ATTEMPTS; ports.size < count; left--) {
    if (left === 0) throw new Error(`found no ${count} free ports between ${FIRST} and ${LAST}`);
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    if ((await isFreeTcp(port)) && (await isFreeUdp(port))) ports.add(port);
  }
  return [...ports];
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

function isFreeTcp(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on("error", () => resolve(false));
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

async function isFreeUdp(port: number): Promise<boolean> {
  try {
    await using _peer = await UdpPeer.open(undefined, "127.0.0.1", port);
    return true;
  } catch {
    return false;
  }
}
