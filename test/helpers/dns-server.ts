import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import type { AddressInfo } from "node:net";
import { ipBytes } from "../../src/base/ip-address.ts";

/** Types of records (RFC 1035 3.2.2, RFC 3596, RFC 2782). */
const TYPES = { A: 1, AAAA: 28, SRV: 33 } as const;
const NOT_FOUND = 3;

interface AddressRecord {
  readonly type: "A" | "AAAA";
  /** Seconds. */
  readonly ttl: number;
  readonly address: string;
}

interface ServiceRecord {
  readonly type: "SRV";
  readonly ttl: number;
  readonly priority: number;
  readonly weight: number;
  readonly port: number;
  readonly target: string;
}

type DnsRecord = AddressRecord | ServiceRecord;

/** A name server on UDP with the records that a test gives it. Names that it does not have do not exist. */
export class DnsServer implements AsyncDisposable {
  /** By name, in lower case. */
  records: Readonly<Record<string, readonly DnsRecord[]>> = {};
  /** Answers nothing. */
  silent = false;
  /** The names that it was asked for, with the type. */
  readonly asked: string[] = [];
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("message", (message, from) => this.#answer(message, from));
  }

  static async start(): Promise<DnsServer> {
    const socket = createSocket("udp4");
    await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
    return new DnsServer(socket);
  }

  /** As `setServers` of a resolver takes it. */
  get address(): string {
    return `127.0.0.1:${(this.#socket.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => this.#socket.close(resolve));
  }

  #answer(query: Buffer, from: RemoteInfo): void {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString("latin1", at + 1, at + 1 + length));
      at += 1 + length;
    }
    const question = query.subarray(12, at + 5);
    const type = query.readUInt16BE(at + 1);
    const name = labels.join(".").toLowerCase();
    this.asked.push(`${name} ${Object.entries(TYPES).find(([, number]) => number === type)?.[0] ?? type}`);
    if (this.silent) return;
    const known = this.records[name];
    const records = (known ?? []).filter((record) => TYPES[record.type] === type);
    const head = Buffer.alloc(12);
    head.writeUInt16BE(query.readUInt16BE(0), 0);
    // A response, authoritative, recursion desired and available.
    head.writeUInt16BE(0x8580 | (known === undefined ? NOT_FOUND : 0), 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(records.length, 6);
    this.#socket.send(Buffer.concat([head, question, ...records.map(encode)]), from.port, from.address);
  }
}

/** Its name is that of the question, which begins at byte 12 (compression, RFC 1035 4.1.4). */
function encode(record: DnsRecord): Buffer {
  const data = dataOf(record);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(TYPES[record.type], 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(record.ttl, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function dataOf(record: DnsRecord): Buffer {
  if (record.type !== "SRV") return Buffer.from(ipBytes(record.address) ?? []);
  const head = Buffer.alloc(6);
  head.writeUInt16BE(record.priority, 0);
  head.writeUInt16BE(record.weight, 2);
  head.writeUInt16BE(record.port, 4);
  const labels = record.target.split(".").filter((label) => label !== "");
  const parts = labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, "latin1")]);
  return Buffer.concat([head, ...parts, Buffer.from([0])]);
}
