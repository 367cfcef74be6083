import {
  DEFAULT_FRAME_SIZE,
  DEFAULT_WINDOW,
  ENABLE_CONNECT_PROTOCOL,
  ENABLE_PUSH,
  FLOW_CONTROL_ERROR,
  HEADER_TABLE_SIZE,
  INITIAL_WINDOW_SIZE,
  MAX_CONCURRENT_STREAMS,
  MAX_FRAME_SIZE,
  MAX_HEADER_LIST_SIZE,
  MAX_WINDOW,
  NO_RFC7540_PRIORITIES,
  PROTOCOL_ERROR,
  readUint32,
  SETTING_MAX_FRAME_SIZE,
} from "./frames.ts";

/** A value that RFC 9113 6.5.2 forbids, and the error code that has to end the connection. */
interface InvalidSetting {
  readonly code: number;
  readonly message: string;
}

/** What the peer has announced; before that, the defaults of RFC 9113 6.5.2. */
export class PeerSettings {
  /** Its SETTINGS have arrived. */
  settled = false;
  /** Streams that we may open at once. */
  maxStreams = Number.POSITIVE_INFINITY;
  /** Bytes of a field section, as it counts them (RFC 9113 6.5.2). */
  maxHeaderListSize = Number.POSITIVE_INFINITY;
  /** What our streams may send at first. */
  initialWindow = DEFAULT_WINDOW;
  headerTableSize = 4096;
  /** The smallest size in the last frame: it evicts entries even if a later entry enlarges the table again (RFC 7541 4.2). */
  smallestTableSize = 4096;
  /** Accepts extended CONNECT (RFC 8441). */
  connectProtocol = false;

  /** Reads the payload of a frame. `mayPush`: the peer is a client, which may announce that it accepts pushes. */
  read(buffer: Buffer, from: number, to: number, mayPush: boolean): InvalidSetting | undefined {
    this.smallestTableSize = this.headerTableSize;
    for (let at = from; at < to; at += 6) {
      const invalid = this.#set(buffer.readUInt16BE(at), readUint32(buffer, at + 2), mayPush);
      if (invalid !== undefined) return invalid;
    }
    this.settled = true;
    return undefined;
  }

  /** Whether the peer accepts a field section of this size. It may end the connection over one that is too large (RFC 9113 10.5.1). */
  takes(pseudo: readonly string[], fields: readonly string[]): boolean {
    const limit = this.maxHeaderListSize;
    return limit === Number.POSITIVE_INFINITY || listSize(pseudo) + listSize(fields) <= limit;
  }

  #set(setting: number, value: number, mayPush: boolean): InvalidSetting | undefined {
    switch (setting) {
      case HEADER_TABLE_SIZE:
        this.headerTableSize = value;
        if (value < this.smallestTableSize) this.smallestTableSize = value;
        return undefined;
      case ENABLE_PUSH:
        return value > (mayPush ? 1 : 0) ? invalid("ENABLE_PUSH", value) : undefined;
      case MAX_CONCURRENT_STREAMS:
        this.maxStreams = value;
        return undefined;
      case INITIAL_WINDOW_SIZE:
        if (value > MAX_WINDOW) return invalid("INITIAL_WINDOW_SIZE", value, FLOW_CONTROL_ERROR);
        this.initialWindow = value;
        return undefined;
      case SETTING_MAX_FRAME_SIZE:
        // Only checked: we send no frames above the size that all peers accept.
        return value < DEFAULT_FRAME_SIZE || value > MAX_FRAME_SIZE ? invalid("MAX_FRAME_SIZE", value) : undefined;
      case MAX_HEADER_LIST_SIZE:
        this.maxHeaderListSize = value;
        return undefined;
      case ENABLE_CONNECT_PROTOCOL:
        this.connectProtocol = value === 1;
        return value > 1 ? invalid("ENABLE_CONNECT_PROTOCOL", value) : undefined;
      case NO_RFC7540_PRIORITIES:
        return value > 1 ? invalid("NO_RFC7540_PRIORITIES", value) : undefined;
      default:
        return undefined;
    }
  }
}

function invalid(name: string, value: number, code = PROTOCOL_ERROR): InvalidSetting {
  return { code, message: `SETTINGS_${name} cannot be ${value}` };
}

/** Bytes of a flat list of fields (RFC 9113 6.5.2). */
function listSize(fields: readonly string[]): number {
  let size = (fields.length >> 1) * 32;
  for (const text of fields) size += text.length;
  return size;
}
