import { BODY_MODES, type Mode, SEND, SKIP } from "../envoy/ext-proc.ts";
import type { ExtProcBodyMode, ExtProcOptions } from "../policy-set.ts";

/** The modes of one exchange: configured, then as the service has changed them. */
export type Modes = Omit<ExtProcOptions, "allowModeOverride">;

/** Applies `mode_override`; what it leaves at its default stays, body modes are always said (Envoy's ProcessingMode). */
export function overridden(modes: Modes, mode: Mode): Modes {
  const header = (number: number | undefined, before: "send" | "skip"): "send" | "skip" =>
    number === SEND ? "send" : number === SKIP ? "skip" : before;
  return {
    // The request's headers have been sent already.
    requestHeaderMode: modes.requestHeaderMode,
    responseHeaderMode: header(mode.response_header_mode, modes.responseHeaderMode),
    requestBodyMode: bodyMode(mode.request_body_mode),
    responseBodyMode: bodyMode(mode.response_body_mode),
    requestTrailerMode: header(mode.request_trailer_mode, modes.requestTrailerMode),
    responseTrailerMode: header(mode.response_trailer_mode, modes.responseTrailerMode),
  };
}

/** STREAMED is the older form of what full duplex does. */
function bodyMode(number = 0): ExtProcBodyMode {
  if (number === BODY_MODES.buffered) return "buffered";
  if (number === BODY_MODES.bufferedPartial) return "bufferedPartial";
  return number === BODY_MODES.none ? "none" : "fullDuplexStreamed";
}
