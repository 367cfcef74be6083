import { GatewayError } from "../../base/errors.ts";
import type { HeaderList } from "../../http/message.ts";
import {
  type Answer,
  BODY_MODES,
  CONTINUE_AND_REPLACE,
  type Common,
  type Immediate,
  type Question,
} from "../envoy/ext-proc.ts";
import { headerMap } from "../envoy/headers.ts";
import type { MessageBody } from "../types.ts";
import { type Modes, overridden } from "./modes.ts";
import { PrefixStage } from "./prefix-stage.ts";
import type { Session } from "./session.ts";
import { StreamedBody } from "./streamed-body.ts";
import { TrailerStage } from "./trailer-stage.ts";

/** The request or the response of an exchange. */
export interface Side {
  readonly direction: "request" | "response";
  readonly body: MessageBody;
  /** Bytes that may be held of the body. */
  readonly limit: number;
  /** Pseudo headers first. */
  headers(): HeaderList;
  /** Its length is said in its head: then it has no trailers (RFC 9112 7.1.2). */
  hasLength(): boolean;
  /** What the service says besides the body. */
  apply(common: Common): void;
  /** What goes with the first message. */
  readonly context: Question;
}

export interface Outcome {
  readonly modes: Modes;
  /** The service answers in the place of whoever would. */
  readonly immediate?: Immediate;
}

/** Sends one side through the service. Rejects with a GatewayError when that fails. */
export async function processSide(
  session: Session,
  side: Side,
  before: Modes,
  { failOpen, allowModeOverride }: { readonly failOpen: boolean; readonly allowModeOverride: boolean },
): Promise<Outcome> {
  const { direction, body } = side;
  let modes = before;
  let context = side.context;
  const stream = (): void => {
    const trailers = sendsTrailers(modes, direction);
    body.through((sink) => new StreamedBody(session, sink, direction, trailers, failOpen, context));
  };
  let streaming = false;
  if (modes[`${direction}HeaderMode`] === "send") {
    const part = `${direction}_headers` as const;
    // The service may want to see the body before it says anything about the headers.
    streaming = bodyMode(modes, side) === "fullDuplexStreamed" && !allowModeOverride;
    const question: Question = {
      ...context,
      protocol_config: {
        request_body_mode: BODY_MODES[modes.requestBodyMode],
        response_body_mode: BODY_MODES[modes.responseBodyMode],
      },
      [part]: { headers: headerMap(side.headers()), end_of_stream: body.empty },
    };
    const asked = session.ask(part, question, !streaming);
    context = {};
    if (streaming) stream();
    const answer = await asked;
    if (answer.immediate_response !== undefined) return { modes, immediate: answer.immediate_response };
    if (allowModeOverride && answer.mode_override !== undefined) modes = overridden(modes, answer.mode_override);
    const common = answer[part]?.response;
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
  if (trailers) body.through((sink) => new TrailerStage(session, sink, direction, context, failOpen));
  return { modes };
}

async function processBuffered(
  session: Session,
  side: Side,
  { partial, keepTrailers }: { readonly partial: boolean; readonly keepTrailers: boolean },
  context: Question,
): Promise<Immediate | undefined> {
  const { direction, body, limit } = side;
  const { bytes, complete } = await body.peek(limit);
  if (!complete && !partial) {
    if (direction === "request") throw new GatewayError("TG_BODY_TOO_LARGE");
    throw new GatewayError("TG_EXT_PROC", "the response is too long for the buffer");
  }
  const part = `${direction}_body` as const;
  const answer: Answer = await session.ask(part, { ...context, [part]: { body: bytes, end_of_stream: complete } });
  if (answer.immediate_response !== undefined) return answer.immediate_response;
  const common = answer[part]?.response;
  if (common !== undefined) side.apply(common);
  const replacement = mutatedBody(common);
  if (replacement === undefined) return undefined;
  // A body with another length has it announced, and so no trailers.
  if (complete && !keepTrailers) body.replace(replacement);
  else body.through((sink) => new PrefixStage(sink, bytes.length, replacement));
  return undefined;
}

/** What the service puts in the place of a body; undefined: nothing. */
function mutatedBody(common: Common | undefined): Uint8Array | undefined {
  const { body, clear_body, streamed_response } = common?.body_mutation ?? {};
  return clear_body === true ? new Uint8Array(0) : (body ?? streamed_response?.body);
}

function bodyMode(modes: Modes, { direction, body }: Side): Modes["requestBodyMode"] {
  return body.empty ? "none" : modes[`${direction}BodyMode`];
}

/** Trailers that the service is to see are looked for, without the body. */
export function mayHaveTrailers(modes: Modes, side: Pick<Side, "direction" | "body" | "hasLength">): boolean {
  return sendsTrailers(modes, side.direction) && !side.body.empty && !side.hasLength();
}

function sendsTrailers(modes: Modes, direction: Side["direction"]): boolean {
  return modes[`${direction}TrailerMode`] === "send";
}
