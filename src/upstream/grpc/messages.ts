/** Messages of gRPC on the bytes of a stream (gRPC over HTTP/2, "Length-Prefixed-Message"). */
import { ByteQueue } from "../../net/byte-queue.ts";
import { type GrpcStatus, STATUS } from "./status.ts";

/** One byte that says whether the message is compressed, four for its length. */
const PREFIX = 5;
/**
 * Limit of a message from a service, bytes: the default of all gRPC libraries. The peer chooses the four bytes of the length, so
 * without a limit it could claim 4 GiB.
 */
const MAX_MESSAGE = 4 * 1024 * 1024;

/** A message with its prefix; not compressed. */
export function frame(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(PREFIX + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, PREFIX);
  return bytes;
}

/** Reads the messages of one response. A message may begin and end anywhere in the pieces that arrive. */
export class MessageReader {
  /** `grpc-encoding` of the response, for the error about a message that uses it. */
  encoding: string | undefined;
  readonly #onMessage: (message: Buffer) => void;
  /** The beginning of a message. */
  readonly #partial = new ByteQueue();

  /** `onMessage` is called during `push` and may keep the bytes. */
  constructor(onMessage: (message: Buffer) => void) {
    this.#onMessage = onMessage;
  }

  #invalid = false;

  /** A message has begun but is incomplete or unreadable. */
  get incomplete(): boolean {
    return this.#partial.length > 0 || this.#invalid;
  }

  /** Reads `buffer[from, to)`, which may be reused afterwards. Returns the status that ends the call, if the messages are invalid. */
  push(buffer: Buffer, from: number, to: number): GrpcStatus | undefined {
    const partial = this.#partial;
    if (partial.length === 0) {
      const read = this.#read(buffer, from, to);
      if (typeof read !== "number") return read;
      if (read < to) partial.append(buffer, read, to);
      return undefined;
    }
    partial.append(buffer, from, to);
    const read = this.#read(partial.bytes, partial.start, partial.end);
    if (typeof read !== "number") return read;
    partial.consume(read);
    return undefined;
  }

  /** Returns where the first incomplete message begins. */
  #read(bytes: Buffer, from: number, to: number): number | GrpcStatus {
    let at = from;
    while (to - at >= PREFIX) {
      const length = bytes.readUInt32BE(at + 1);
      const invalid = this.#check(bytes[at] as number, length);
      if (invalid !== undefined) {
        this.#invalid = true;
        return invalid;
      }
      const end = at + PREFIX + length;
      if (end > to) break;
      this.#onMessage(Buffer.from(bytes.subarray(at + PREFIX, end)));
      at = end;
    }
    return at;
  }

  /** Checks a prefix before its message has arrived. */
  #check(compressed: number, length: number): GrpcStatus | undefined {
    // Only identity is offered: a service that compresses anyway breaks the protocol (gRPC "Compression").
    if (compressed !== 0) {
      const message = `the service has compressed a message with ${this.encoding ?? "an unnamed encoding"}, which is not accepted`;
      return { code: STATUS.internal, message };
    }
    if (length <= MAX_MESSAGE) return undefined;
    const message = `the service has sent a message of ${length} bytes; the limit is ${MAX_MESSAGE}`;
    return { code: STATUS.resourceExhausted, message };
  }
}
