/** How the streams of a connection share it (RFC 9218 4). */
export interface Priority {
  /** 0 goes first, 7 last. */
  readonly urgency: number;
  /** Shares turns with others of its urgency. */
  readonly incremental: boolean;
}

const URGENCY = /(?:^|,)\s*u=([0-7])\s*(?:$|[,;])/;
const INCREMENTAL = /(?:^|,)\s*i(?:=\?1)?\s*(?:$|[,;])/;

/** Reads the value of a Priority field or frame. Missing or malformed parts have their defaults: urgency 3, not incremental. */
export function parsePriority(value: string): Priority {
  return { urgency: Number(URGENCY.exec(value)?.[1] ?? 3), incremental: INCREMENTAL.test(value) };
}
