/** Events about the messages of followed streams. */
import { GrpcReader } from "../../http/grpc-frames.ts";
import { isGrpc } from "../../http/grpc-reply.ts";
import type { HttpRequest, HttpResponse } from "../../http/message/message.ts";
import type { MessageReader, StreamMessage } from "../../http/stream-messages.ts";
import { isWebSocket } from "../../http/websocket.ts";
import { WebSocketReader } from "../../http/websocket-messages.ts";
import type { MessageSum, StreamDirection } from "../../trace/events.ts";
import type { TraceSink } from "../../trace/tracer.ts";

/** How many messages of a request are shown within how many milliseconds. The rest are only counted: a fast stream would take a follower's whole share. */
const MAX_SHOWN = 50;
const WINDOW_MS = 1000;

/** What decides whether the bytes of an exchange are messages. */
interface Streaming {
  readonly request: Pick<HttpRequest, "headers">;
  readonly downstream: { readonly upgrade: string };
  readonly responseSide: { readonly tunnel: boolean; readonly head: HttpResponse | undefined };
}

const NONE: MessageSum = { messages: 0, bytes: 0 };

/** Emits the messages of a WebSocket or a gRPC call as they pass, in both directions. Exists only for requests that are followed. */
export class StreamMessages {
  readonly #sink: TraceSink;
  readonly #exchange: Streaming;
  readonly #isGrpcCall: boolean;
  readonly #received = new Direction("received");
  readonly #sent = new Direction("sent");
  /** Runs from the first message of a window until its end. */
  #window: NodeJS.Timeout | undefined;
  #shown = 0;

  constructor(sink: TraceSink, exchange: Streaming) {
    this.#sink = sink;
    this.#exchange = exchange;
    this.#isGrpcCall = isGrpc(exchange.request.headers);
  }

  /** Bytes from the client. */
  received(bytes: Buffer): void {
    this.#read(this.#received, bytes);
  }

  /** Bytes for the client. */
  sent(bytes: Buffer): void {
    this.#read(this.#sent, bytes);
  }

  /** The stream is over. */
  end(): void {
    clearTimeout(this.#window);
    this.#endWindow();
  }

  #read(direction: Direction, bytes: Buffer): void {
    if (direction.unreadable) return;
    direction.reader ??= this.#readerOf(direction);
    const reason = direction.reader?.read(bytes, (message) => this.#show(direction, message));
    if (reason === undefined) return;
    direction.unreadable = true;
    direction.reader = undefined;
    this.#sink.emit("warn", { type: "messagesUnreadable", direction: direction.name, reason });
  }

  /** Undefined while the bytes are those of another body, such as an error response to a gRPC call. */
  #readerOf({ name }: Direction): MessageReader | undefined {
    const { downstream, responseSide } = this.#exchange;
    const { maxBodyBytes } = this.#sink.options;
    if (responseSide.tunnel)
      return isWebSocket(downstream.upgrade) ? new WebSocketReader(name === "received", maxBodyBytes) : undefined;
    const isMessages =
      this.#isGrpcCall &&
      (name === "received" || (responseSide.head !== undefined && isGrpc(responseSide.head.headers)));
    return isMessages ? new GrpcReader(maxBodyBytes) : undefined;
  }

  #show(direction: Direction, { bytes, compressed, content, opcode, closeCode }: StreamMessage): void {
    const number = ++direction.count;
    this.#window ??= setTimeout(() => this.#endWindow(), WINDOW_MS).unref();
    if (++this.#shown > MAX_SHOWN) {
      const { omitted } = direction;
      direction.omitted = { messages: omitted.messages + 1, bytes: omitted.bytes + bytes };
      return;
    }
    this.#sink.emit("info", {
      type: "streamMessage",
      direction: direction.name,
      number,
      bytes,
      ...(compressed && { compressed }),
      ...(opcode !== undefined && { opcode }),
      ...(closeCode !== undefined && { closeCode }),
      ...(this.#sink.options.maxBodyBytes > 0 && {
        body: content.base64(),
        ...(content.truncated && { truncated: true }),
      }),
    });
  }

  #endWindow(): void {
    this.#window = undefined;
    this.#shown = 0;
    const [received, sent] = [this.#received.takeOmitted(), this.#sent.takeOmitted()];
    if (received.messages + sent.messages > 0) this.#sink.emit("warn", { type: "messagesOmitted", received, sent });
  }
}

/** What is known of one direction. */
class Direction {
  readonly name: StreamDirection;
  reader: MessageReader | undefined;
  unreadable = false;
  /** Messages so far. */
  count = 0;
  omitted = NONE;

  constructor(name: StreamDirection) {
    this.name = name;
  }

  takeOmitted(): MessageSum {
    const { omitted } = this;
    this.omitted = NONE;
    return omitted;
  }
}
