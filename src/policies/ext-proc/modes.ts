import type {
  ProcessingMode,
  ProcessingMode_BodySendMode,
  ProcessingMode_HeaderSendMode,
} from "../../gen/envoy/extensions/filters/http/ext_proc/v3/processing_mode_pb.ts";
import type { ExtProcBodyMode, ExtProcOptions } from "./schema.ts";

/** Processing modes of one exchange: those configured, then as changed by the service. */
export type Modes = Omit<ExtProcOptions, "allowModeOverride">;

/** Envoy's `BodySendMode` by the names of the configuration; `protocol_config` tells the service. */
export const BODY_MODES = {
  none: 0,
  buffered: 2,
  bufferedPartial: 3,
  fullDuplexStreamed: 4,
} as const satisfies Record<ExtProcBodyMode, ProcessingMode_BodySendMode>;

const SEND: ProcessingMode_HeaderSendMode = 1;
const SKIP: ProcessingMode_HeaderSendMode = 2;

/**
 * Applies `mode_override`. Header and trailer modes with the value DEFAULT are unchanged; body modes have no such value, so they
 * always apply (Envoy's `ProcessingMode`).
 */
export function overridden(modes: Modes, mode: ProcessingMode): Modes {
  const header = (said: ProcessingMode_HeaderSendMode, before: "send" | "skip"): "send" | "skip" =>
    said === SEND ? "send" : said === SKIP ? "skip" : before;
  return {
    // Too late to change: the request headers have been sent.
    requestHeaderMode: modes.requestHeaderMode,
    responseHeaderMode: header(mode.responseHeaderMode, modes.responseHeaderMode),
    requestBodyMode: bodyMode(mode.requestBodyMode),
    responseBodyMode: bodyMode(mode.responseBodyMode),
    requestTrailerMode: header(mode.requestTrailerMode, modes.requestTrailerMode),
    responseTrailerMode: header(mode.responseTrailerMode, modes.responseTrailerMode),
  };
}

/** STREAMED (1), Envoy's older streaming mode, is handled as full duplex. */
function bodyMode(said: ProcessingMode_BodySendMode): ExtProcBodyMode {
  if (said === BODY_MODES.buffered) return "buffered";
  if (said === BODY_MODES.bufferedPartial) return "bufferedPartial";
  return said === BODY_MODES.none ? "none" : "fullDuplexStreamed";
}
