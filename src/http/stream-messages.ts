import type { BodyCapture } from "../trace/body-capture.ts";

/** RFC 6455 5.2; the frames of a message in fragments have the type of the first. */
export type Opcode = "text" | "binary" | "close" | "ping" | "pong";

/** One complete message of a stream. */
export interface StreamMessage {
  /** As sent, which is compressed if `compressed` is set. */
  readonly bytes: number;
  readonly compressed: boolean;
  /** Its first bytes, unmasked but not decompressed. */
  readonly content: BodyCapture;
  /** Only of WebSocket. */
  readonly opcode?: Opcode;
  /** Only of `close`, if it has one; `content` is then the reason behind it. */
  readonly closeCode?: number;
}

/** Finds the messages in the bytes of one direction of a stream, in memory that does not depend on their sizes. */
export interface MessageReader {
  /**
   * Takes the next bytes, and hands over each message that ends in them. Returns why they cannot be read; nothing may be read
   * after that.
   */
  read(bytes: Buffer, onMessage: (message: StreamMessage) => void): string | undefined;
}
