/** How the streams of a connection share it (RFC 9218 4). */
export interface Priority {
  /** 0 goes first, 7 last. */
  readonly urgency: number;
  /** Shares turns with others of its urgency. */
  readonly incremental: boolean;
}

// The last of several members with the same key counts (RFC 9651 4.2.2).
const URGENCY = /^(?:.*,)?[ \t]*u=([^,;]*)/;
const INCREMENTAL = /^(?:.*,)?[ \t]*i(?:=([^,;]*))?[ \t]*(?:$|[,;])/;

/** Reads the value of a Priority field or frame. Missing or malformed parts have their defaults: urgency 3, not incremental. */
export function parsePriority(value: string): Priority {
  const urgency = URGENCY.exec(value)?.[1]?.trim() ?? "";
  const incremental = INCREMENTAL.exec(value);
  return {
    urgency: /^[0-7]$/.test(urgency) ? Number(urgency) : 3,
    incremental: incremental !== null && (incremental[1]?.trim() ?? "?1") === "?1",
  };
}
