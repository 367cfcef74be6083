import {
  DEFAULT_FRAME_SIZE,
  DEFAULT_WINDOW,
  ENABLE_CONNECT_PROTOCOL,
  ENABLE_PUSH,
  INITIAL_WINDOW_SIZE,
  MAX_CONCURRENT_STREAMS,
  MAX_HEADER_LIST_SIZE,
  NO_RFC7540_PRIORITIES,
  SETTING_MAX_FRAME_SIZE,
} from "./frames.ts";
import type { Http2Stream } from "./stream.ts";

/** Which side of the connection this is: clients open streams. */
export type Role = "server" | "client";

/** Why streams end when the peer closes their connection, by our role. */
export const CLOSED: Readonly<Record<Role, string>> = {
  client: "the upstream closed the connection",
  server: "the client closed the connection",
};

/** The largest size that a stream's window grows to: 4 MiB allow 40 MiB/s at a round trip of 100 ms. */
export const LARGEST_WINDOW = 4 * 1024 * 1024;

/** What we announce to the peer, and our limits. Sizes are bytes. */
export interface Http2Settings {
  /** SETTINGS_INITIAL_WINDOW_SIZE: what the peer may send on a stream before any of it is taken, so the most that we hold of it. */
  readonly streamWindow: number;
  /** The same while the thread is frugal; equal to `streamWindow` = no change. */
  readonly frugalWindow: number;
  /** What the peer may send on all streams together before any of it is taken; at least 65535. */
  readonly connectionWindow: number;
  /** What a stream's window may grow to while its bytes are taken fast; equal to `streamWindow` = it does not grow. */
  readonly largestWindow: number;
  /** SETTINGS_MAX_FRAME_SIZE, 16384 to 16777215. */
  readonly maxFrameSize: number;
  /** SETTINGS_MAX_HEADER_LIST_SIZE. Compressed field blocks are bounded by it as well. */
  readonly maxHeaderListSize: number;
  /** Fields of one section. */
  readonly maxFields: number;
  /** SETTINGS_MAX_CONCURRENT_STREAMS of a server. */
  readonly maxStreams: number;
  /** SETTINGS_ENABLE_CONNECT_PROTOCOL of a server (RFC 8441). */
  readonly connectProtocol: boolean;
}

/** Receives the events of a connection, for its role. */
export interface Http2Owner {
  /** Server: a client opens a stream, whose `onHeaders` follows. undefined = refused. */
  onStream?(id: number): Http2Stream | undefined;
  /** The peer has announced settings, see `peer` of the connection. */
  onSettings(): void;
  /** The peer has sent GOAWAY. Our streams above `lastStream` are reset next, with `refused` set. */
  onGoAway(lastStream: number, code: number): void;
  /** A stream has left the connection. */
  onStreamGone(stream: Http2Stream): void;
  /** The peer broke the protocol or a limit: GOAWAY with this code is sent next, and all streams are reset. */
  onConnectionError(code: number, message: string): void;
  /** The transport has closed; every stream has ended before. The last call. */
  onClosed(error: Error | undefined): void;
  /** A defect of the gateway has ended the connection. */
  onFault(error: unknown): void;
}

/** The entries of our SETTINGS frame, without those that equal the defaults of RFC 9113 6.5.2. */
export function announcement(role: Role, settings: Http2Settings): (readonly [setting: number, value: number])[] {
  const announced: (readonly [number, number])[] = [];
  if (role === "client") announced.push([ENABLE_PUSH, 0]);
  else {
    announced.push([MAX_CONCURRENT_STREAMS, settings.maxStreams]);
    if (settings.connectProtocol) announced.push([ENABLE_CONNECT_PROTOCOL, 1]);
    announced.push([NO_RFC7540_PRIORITIES, 1]);
  }
  if (settings.streamWindow !== DEFAULT_WINDOW) announced.push([INITIAL_WINDOW_SIZE, settings.streamWindow]);
  if (settings.maxFrameSize !== DEFAULT_FRAME_SIZE) announced.push([SETTING_MAX_FRAME_SIZE, settings.maxFrameSize]);
  announced.push([MAX_HEADER_LIST_SIZE, settings.maxHeaderListSize]);
  return announced;
}
