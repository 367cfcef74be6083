import { bytesOf } from "../bodies.ts";
import type { Row } from "../rows.ts";

/** A captured body. */
export interface CapturedBody {
  readonly base64: string;
  readonly bytes: Uint8Array;
  readonly truncated: boolean;
}

/** The last captured body of the stage `final request` or `response`. */
export function bodyOf(rows: readonly Row[], stage: string): CapturedBody | undefined {
  const row = rows.findLast(
    ({ message, event }) => message.type === "bodySnapshot" && message.stage === stage && event.scope === undefined,
  );
  const { body: base64, truncated } = row?.message ?? {};
  if (typeof base64 !== "string") return undefined;
  return { base64, bytes: bytesOf(base64), truncated: truncated === true };
}
