/**
 * node open-loop.ts <port> <requests per second> <seconds> <hosts file>
 * Sends GET / at a fixed rate, whatever the answers do, and measures each from the moment it was due: a server that stalls
 * for 100 ms delays 100 requests at 1,000/s, and all of them count ("coordinated omission" otherwise hides them).
 * Ends early when standard input ends. Prints one JSON line {"samples": [[due at, ms since the epoch; latency in ms, negative when it failed], …]}.
 */
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";

const [port = 0, rate = 1000, seconds = 1] = process.argv.slice(2, 5).map(Number);
const hosts = readFileSync(process.argv[5] ?? "", "utf8")
  .split("\n")
  .filter(Boolean);

/** A server that needs more connections than this at once has stalled for good; further requests fail. */
const MAX_CONNECTIONS = 2000;
const TIMEOUT_MS = 10_000;

interface Call {
  readonly due: number;
  readonly text: string;
}

const samples: [number, number][] = [];
const idle: Client[] = [];
const busy = new Set<Client>();

/** One keep-alive connection with at most one request at a time. Answers must carry Content-Length. */
class Client {
  readonly #socket: Socket;
  #call: Call | undefined;
  #received = "";

  constructor(call: Call) {
    this.#socket = connect(port, "127.0.0.1");
    this.#socket.setNoDelay(true);
    this.#socket.on("data", (bytes) => this.#read(bytes.toString("latin1")));
    this.#socket.on("error", () => undefined);
    this.#socket.on("close", () => this.#closed());
    this.send(call);
  }

  get due(): number {
    return this.#call?.due ?? Number.POSITIVE_INFINITY;
  }

  send(call: Call): void {
    this.#call = call;
    this.#received = "";
    busy.add(this);
    this.#socket.write(call.text);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #read(text: string): void {
    this.#received += text;
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = this.#received.slice(0, headEnd);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    if (this.#received.length < headEnd + 4 + length) return;
    this.#finish(head.startsWith("HTTP/1.1 200"));
    if (/\r\nconnection: *close/i.test(head)) this.#socket.destroy();
    else idle.push(this);
  }

  #closed(): void {
    if (this.#call !== undefined) this.#finish(false);
    const index = idle.indexOf(this);
    if (index >= 0) idle.splice(index, 1);
  }

  #finish(good: boolean): void {
    const call = this.#call;
    if (call === undefined) return;
    this.#call = undefined;
    busy.delete(this);
    record(call.due, good);
  }
}

function record(due: number, good: boolean): void {
  const latency = now() - due;
  samples.push([due, good ? latency : -Math.max(latency, 0.001)]);
}

function now(): number {
  return performance.timeOrigin + performance.now();
}

function issue(due: number, index: number): void {
  const host = hosts[index % hosts.length] ?? "localhost";
  const call = { due, text: `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n` };
  const client = idle.pop();
  if (client !== undefined) client.send(call);
  else if (busy.size < MAX_CONNECTIONS) new Client(call);
  else record(due, false);
}

const start = now();
let total = rate * seconds;
let issued = 0;
process.stdin.resume().once("end", () => {
  total = issued;
});
const ticker = setInterval(() => {
  const dueCount = Math.min(total, Math.floor(((now() - start) * rate) / 1000) + 1);
  for (; issued < dueCount; issued++) issue(start + (issued * 1000) / rate, issued);
  for (const client of busy) if (now() - client.due > TIMEOUT_MS) client.destroy();
  if (issued < total || busy.size > 0) return;
  clearInterval(ticker);
  for (const client of idle.splice(0)) client.destroy();
  process.stdout.write(`${JSON.stringify({ samples })}\n`);
}, 1);
