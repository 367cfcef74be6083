/**
 * Sends one side of an exchange, request or response, through a processing service in the order of the protocol: headers, body,
 * trailers, each as the modes say. In: a `Side`. Out: the modes for what follows, and the immediate response if the service made
 * one.
 */
import type {
  CommonResponse,
  CommonResponse_ResponseStatus,
  ImmediateResponse,
} from "../../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import type { HeaderList } from "../../http/message/message.ts";
import type { MessageBody } from "../contract/types.ts";
import { headerMap } from "../envoy/convert.ts";
import { BODY_MODES, type Modes, overridden } from "./modes.ts";
import { type Direction, ProcessingFailed, type ProcessingRequest, type Session } from "./session.ts";
import { PrefixStage, StreamedBody, TrailerStage } from "./stages.ts";

/** `CONTINUE_AND_REPLACE`: the response to the headers contains the new body, so the original is not sent to the service. */
const CONTINUE_AND_REPLACE: CommonResponse_ResponseStatus = 1;

/** The request or the response of an exchange. */
export interface Side {
  readonly direction: Direction;
  readonly body: MessageBody;
  /** Buffer limit for the body, in bytes. */
  readonly limit: number;
  /** With pseudo-header fields first (RFC 9113, section 8.3). */
  headers(): HeaderList;
  /** The head has Content-Length, so there are no trailers (RFC 9112, section 7.1.2). */
  hasLength(): boolean;
  /** Applies the service's changes to the head. */
  apply(common: CommonResponse): void;
  /** Metadata and attributes, sent with the first message of the side. */
  readonly context: ProcessingRequest;
}

interface Outcome {
  readonly modes: Modes;
  /** The service responds to the client itself. */
  readonly immediate?: ImmediateResponse;
}

/**
 * Resolves when the head may be passed on; a streamed body is still in flight then. Rejects with ProcessingFailed.
 */
export async function processSide(
  session: Session,
  side: Side,
  before: Modes,
  { failOpen, allowModeOverride }: { readonly failOpen: boolean; readonly allowModeOverride: boolean },
): Promise<Outcome> {
  const { direction, body } = side;
  let modes = before;
  let context: ProcessingRequest = {
    ...side.context,
    protocolConfig: {
      requestBodyMode: BODY_MODES[modes.requestBodyMode],
      responseBodyMode: BODY_MODES[modes.responseBodyMode],
    },
  };
  const stream = (): void => {
    const settings = { direction, failOpen, context };
    body.through((sink) => new StreamedBody(session, sink, settings, sendsTrailers(modes, direction)));
  };
  let streaming = false;
  if (modes[`${direction}HeaderMode`] === "send") {
    const part = `${direction}Headers` as const;
    // A service may need the body before it responds to the headers, so the body must not wait for that response. With mode
    // overrides it has to: the response decides whether the body is sent at all.
    streaming = bodyMode(modes, side) === "fullDuplexStreamed" && !allowModeOverride;
    const message: ProcessingRequest = {
      ...context,
      request: { case: part, value: { headers: headerMap(side.headers()), endOfStream: body.empty } },
    };
    const answered = session.roundTrip(part, message, !streaming);
    context = {};
    if (streaming) stream();
    const { response, modeOverride } = await answered;
    if (response.case === "immediateResponse") return { modes, immediate: response.value };
    if (allowModeOverride && modeOverride !== undefined) modes = overridden(modes, modeOverride);
    const common = response.case === part ? response.value.response : undefined;
    if (common !== undefined) side.apply(common);
    if (common?.status === CONTINUE_AND_REPLACE && !streaming) {
      const replacement = mutatedBody(common);
      if (replacement !== undefined) body.replace(replacement);
      return { modes };
    }
  }
  if (streaming) return { modes };
  const mode = bodyMode(modes, side);
  if (mode === "fullDuplexStreamed") {
    stream();
    return { modes };
  }
  const trailers = mayHaveTrailers(modes, side);
  if (mode !== "none") {
    const how = { partial: mode === "bufferedPartial", keepTrailers: trailers };
    const immediate = await processBuffered(session, side, how, context);
    if (immediate !== undefined) return { modes, immediate };
    context = {};
  }
  if (trailers) body.through((sink) => new TrailerStage(session, sink, { direction, failOpen, context }));
  return { modes };
}

/**
 * Sends a buffered body in one message. `partial`: of a body over the limit, its beginning. `keepTrailers`: the trailers are sent
 * next, so the body must not be replaced by one with a length, which has none.
 */
async function processBuffered(
  session: Session,
  side: Side,
  { partial, keepTrailers }: { readonly partial: boolean; readonly keepTrailers: boolean },
  context: ProcessingRequest,
): Promise<ImmediateResponse | undefined> {
  const { direction, body, limit } = side;
  const { bytes, complete } = await body.peek(limit);
  if (!complete && !partial) throw new ProcessingFailed({ code: "bodyTooLong", limit });
  const part = `${direction}Body` as const;
  const request = { case: part, value: { body: bytes, endOfStream: complete } };
  const { response } = await session.roundTrip(part, { ...context, request });
  if (response.case === "immediateResponse") return response.value;
  const common = response.case === part ? response.value.response : undefined;
  if (common !== undefined) side.apply(common);
  const replacement = mutatedBody(common);
  if (replacement === undefined) return undefined;
  // `replace` announces the new length, which rules out trailers.
  if (complete && !keepTrailers) body.replace(replacement);
  else body.through((sink) => new PrefixStage(sink, bytes.length, replacement));
  return undefined;
}

/** The service's replacement for a body; undefined = unchanged. */
function mutatedBody(common: CommonResponse | undefined): Uint8Array | undefined {
  const { mutation } = common?.bodyMutation ?? {};
  switch (mutation?.case) {
    case "body":
      return mutation.value;
    case "clearBody":
      return mutation.value ? new Uint8Array(0) : undefined;
    case "streamedResponse":
      // Without bytes it acknowledges the body without changing it.
      return mutation.value.body.length > 0 ? mutation.value.body : undefined;
    default:
      return undefined;
  }
}

/** An empty body is never sent: `end_of_stream` of the headers says so (Envoy's ext_proc). */
function bodyMode(modes: Modes, { direction, body }: Side): Modes["requestBodyMode"] {
  return body.empty ? "none" : modes[`${direction}BodyMode`];
}

/** Whether trailers would be sent to the service; whether there are any is known only at the end of the body. */
export function mayHaveTrailers(modes: Modes, side: Pick<Side, "direction" | "body" | "hasLength">): boolean {
  return sendsTrailers(modes, side.direction) && !side.body.empty && !side.hasLength();
}

function sendsTrailers(modes: Modes, direction: Side["direction"]): boolean {
  return modes[`${direction}TrailerMode`] === "send";
}
