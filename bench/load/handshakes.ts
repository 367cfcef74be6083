/**
 * node handshakes.ts <port> <seconds> full|resumed
 * Makes TLS 1.3 connections, 16 at a time, each of which is closed as soon as the handshake is done. `resumed`: all but the first
 * 16 resume a session. Prints one JSON line {"handshakes", "failed"}. Clients offer X25519 alone, which every server has:
 * newer versions of OpenSSL would choose a post-quantum group, which costs more, and older ones do not have it.
 */
import { connect } from "node:tls";

const [port = 0, seconds = 0] = process.argv.slice(2).map(Number);
const resumed = process.argv[4] === "resumed";
const AT_ONCE = 16;
let handshakes = 0;
let failed = 0;

/** One connection; the session that the next one may resume. */
function handshake(session: Buffer | undefined): Promise<Buffer | undefined> {
  const awaitsTicket = resumed && session === undefined;
  return new Promise((resolve) => {
    let latest = session;
    const socket = connect({
      host: "127.0.0.1",
      port,
      servername: "bench.test",
      rejectUnauthorized: false,
      ecdhCurve: "X25519",
      minVersion: "TLSv1.3",
      ...(session !== undefined && { session }),
    });
    socket.on("secureConnect", () => {
      if (socket.isSessionReused() === (session !== undefined)) handshakes++;
      else failed++;
      if (!awaitsTicket) socket.end();
    });
    socket.on("session", (ticket) => {
      if (resumed) latest = ticket;
      if (awaitsTicket) socket.end();
    });
    socket.on("error", () => failed++);
    socket.on("close", () => resolve(latest));
    socket.resume();
  });
}

async function lane(until: number): Promise<void> {
  let session: Buffer | undefined;
  while (performance.now() < until) session = await handshake(session);
}

const until = performance.now() + seconds * 1000;
await Promise.all(Array.from({ length: AT_ONCE }, () => lane(until)));
process.stdout.write(`${JSON.stringify({ handshakes, failed })}\n`);
