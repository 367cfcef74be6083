/** Stages for the bodies of a gRPC-Web call: requests become messages of gRPC, trailers of the response become a frame. */
import { GatewayError } from "../../base/errors.ts";
import { MessageBoundaries, PREFIX_BYTES } from "../../http/grpc-frames.ts";
import type { HeaderList } from "../../http/message/message.ts";
import type { BodySink, BodyStage, TranslationStage } from "../contract/types.ts";
import { Base64Decoder, MessageEncoder } from "./base64.ts";

/** The flag of a frame that holds trailers (gRPC-Web protocol, "Message framing"). */
const TRAILERS = 0x80;

/**
 * The body of a request. It is read message by message, so that the backend gets no frame that only gRPC-Web has, such as trailers from the
 * client, and no truncated message that looks complete.
 */
export class RequestStage implements BodyStage {
  readonly #sink: BodySink;
  readonly #decoder: Base64Decoder | undefined;
  readonly #messages = new MessageBoundaries();
  #broken = false;

  /** `text`: the body is base64. */
  constructor(sink: BodySink, text: boolean) {
    this.#sink = sink;
    this.#decoder = text ? new Base64Decoder() : undefined;
  }

  write(bytes: Uint8Array): boolean {
    if (this.#broken) return true;
    const decoded = this.#decoder === undefined ? bytes : this.#decoder.decode(bytes);
    if (decoded === undefined) {
      this.#reject("the body of a gRPC-Web text request is not base64");
      return true;
    }
    this.#messages.follow(decoded);
    if (!this.#messages.foreign) return this.#sink.write(decoded);
    this.#reject("the body of a gRPC-Web request has a frame that is not a message");
    return true;
  }

  end(trailers: HeaderList): void {
    if (this.#broken) return;
    if (this.#decoder?.complete === false)
      this.#reject("the body of a gRPC-Web text request ends within a base64 group");
    else if (!this.#messages.between) this.#reject("the body of a gRPC-Web request ends within a message");
    else this.#sink.end(trailers);
  }

  onDrain(): void {
    this.#sink.resume();
  }

  #reject(detail: string): void {
    this.#broken = true;
    this.#sink.breakOff(new GatewayError("TG_INVALID_REQUEST", detail));
  }
}

/** The body of a response. Messages are passed on as they arrive; browsers cannot read HTTP trailers, so they become the last frame. */
export class ResponseStage implements TranslationStage {
  readonly #sink: BodySink;
  readonly #encoder: MessageEncoder | undefined;
  readonly #messages = new MessageBoundaries();

  constructor(sink: BodySink, text: boolean) {
    this.#sink = sink;
    this.#encoder = text ? new MessageEncoder() : undefined;
  }

  get withinMessage(): boolean {
    return !this.#messages.between;
  }

  write(bytes: Uint8Array): boolean {
    this.#messages.follow(bytes);
    if (this.#messages.foreign) {
      // The client would mistake it for the end of the call.
      this.#sink.breakOff(new GatewayError("TG_UPSTREAM_FAILED", "the response has a frame that is not a message"));
      return true;
    }
    return this.#sink.write(this.#encoder?.encode(bytes) ?? bytes);
  }

  /** Without trailers there is no frame: the client then sees that the status is missing. */
  end(trailers: HeaderList): void {
    if (this.withinMessage) {
      this.#sink.breakOff(new GatewayError("TG_UPSTREAM_FAILED", "the response ended within a message"));
      return;
    }
    if (trailers.length > 0) this.#sink.write(this.#encoded(trailerFrame(trailers)));
    this.#sink.end([]);
  }

  onDrain(): void {
    this.#sink.resume();
  }

  #encoded(frame: Buffer): Buffer {
    return this.#encoder === undefined ? frame : Buffer.from(frame.toString("base64"), "latin1");
  }
}

/** Trailers as a block of header lines; the last line ends like the others, and no empty line follows. */
function trailerFrame(trailers: HeaderList): Buffer {
  let lines = "";
  for (let i = 0; i < trailers.length; i += 2) lines += `${trailers[i]}: ${trailers[i + 1]}\r\n`;
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + lines.length);
  frame[0] = TRAILERS;
  frame.writeUInt32BE(lines.length, 1);
  frame.write(lines, PREFIX_BYTES, "latin1");
  return frame;
}
