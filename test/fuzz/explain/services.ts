/** Services that policies call, which do what a test says: authorization over HTTP and gRPC, rate limits, and processing. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { CHECK, CheckResponse } from "../../helpers/envoy/auth.ts";
import { type Answer, BODY_MODES, type Question } from "../../helpers/envoy/ext-proc.ts";
import { type Reaction, startProcessor } from "../../helpers/envoy/processor.ts";
import { OVER_LIMIT, RateLimitResponse, SHOULD_RATE_LIMIT } from "../../helpers/envoy/rate-limit.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";

/** What stands in configurations for the addresses of the services. */
export const PLACEHOLDERS = {
  authorizer: "authorizer.test:1",
  checker: "checker.test:1",
  limiter: "limiter.test:1",
  processor: "processor.test:1",
} as const;

interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What services do, in the words of `--assume`. */
export interface Behavior {
  readonly extAuthz: "allow" | "deny" | Reply;
  readonly remoteRateLimit: "under" | "over";
  readonly extProc: "allow" | "fail" | Reply;
}

/** google.rpc.Code */
const PERMISSION_DENIED = 7;

export class StubServices {
  behavior: Behavior = { extAuthz: "allow", remoteRateLimit: "under", extProc: "allow" };
  readonly #authorizer: Server;
  readonly #grpc: GrpcServer;
  readonly #processor: GrpcServer;

  private constructor(authorizer: Server, grpc: GrpcServer, processor: GrpcServer) {
    this.#authorizer = authorizer;
    this.#grpc = grpc;
    this.#processor = processor;
  }

  static async start(): Promise<StubServices> {
    const authorizer = createServer((request, response) => {
      const { extAuthz } = services.behavior;
      const {
        status = 200,
        headers = {},
        body = "",
      } = typeof extAuthz === "string" ? { status: extAuthz === "deny" ? 403 : 200 } : extAuthz;
      response.sendDate = false;
      request.resume().once("end", () => {
        response.writeHead(status, { "content-length": Buffer.byteLength(body), ...headers }).end(body);
      });
    });
    await new Promise<void>((resolve) => authorizer.listen(0, "127.0.0.1", resolve));
    const grpc = await GrpcServer.start({
      [CHECK]: { unary: () => checked(services.behavior.extAuthz) },
      [SHOULD_RATE_LIMIT]: {
        unary: () =>
          RateLimitResponse.encode({ overall_code: services.behavior.remoteRateLimit === "over" ? OVER_LIMIT : 1 }),
      },
    });
    const processing = new Processing();
    const processor = await startProcessor((question) => {
      processor.questions.length = 0;
      return processing.react(question, services.behavior.extProc);
    });
    const services = new StubServices(authorizer, grpc, processor);
    return services;
  }

  /** The text of a configuration with the addresses of the services. */
  addressed(text: string): string {
    const ports = {
      authorizer: (this.#authorizer.address() as AddressInfo).port,
      checker: this.#grpc.port,
      limiter: this.#grpc.port,
      processor: this.#processor.port,
    } satisfies Record<keyof typeof PLACEHOLDERS, number>;
    return Object.entries(ports).reduce(
      (all, [name, port]) => all.replaceAll(PLACEHOLDERS[name as keyof typeof ports], `127.0.0.1:${port}`),
      text,
    );
  }

  close(): void {
    this.#authorizer.close().closeAllConnections();
    this.#grpc.stop();
    this.#processor.stop();
  }
}

function checked(behavior: Behavior["extAuthz"]): Uint8Array {
  if (typeof behavior === "string")
    return CheckResponse.encode({ status: { code: behavior === "deny" ? PERMISSION_DENIED : 0 } });
  const { status = 200, headers = {}, body = "" } = behavior;
  const options = optionsOf(headers);
  return CheckResponse.encode(
    status < 300
      ? { status: { code: 0 }, ok_response: { headers: options } }
      : { status: { code: PERMISSION_DENIED }, denied_response: { status: { code: status }, headers: options, body } },
  );
}

/** Processes one request after the other. */
class Processing {
  /** Sides whose bodies stream, and go back as they are. */
  readonly #streams = { request: false, response: false };

  react(question: Question, behavior: Behavior["extProc"]): Reaction {
    const { protocol_config: modes } = question;
    if (modes !== undefined) {
      this.#streams.request = modes.request_body_mode === BODY_MODES.fullDuplexStreamed;
      this.#streams.response = modes.response_body_mode === BODY_MODES.fullDuplexStreamed;
    }
    if (behavior === "fail") return "fail";
    if (question.request_headers !== undefined) return [aboutRequest(behavior)];
    if (question.response_headers !== undefined) return [{ response_headers: {} }];
    if (question.request_body !== undefined)
      return [{ request_body: this.#streams.request ? echo(question.request_body) : {} }];
    if (question.response_body !== undefined)
      return [{ response_body: this.#streams.response ? echo(question.response_body) : {} }];
    return [question.request_trailers !== undefined ? { request_trailers: {} } : { response_trailers: {} }];
  }
}

function aboutRequest(behavior: "allow" | Reply): Answer {
  if (behavior === "allow") return { request_headers: {} };
  const { status = 200, headers = {}, body = "" } = behavior;
  const mutation = { set_headers: optionsOf(headers) };
  return status < 300
    ? { request_headers: { response: { header_mutation: mutation } } }
    : { immediate_response: { status: { code: status }, headers: mutation, body: Buffer.from(body) } };
}

function echo(part: NonNullable<Question["request_body"]>) {
  return { response: { body_mutation: { streamed_response: part } } };
}

function optionsOf(headers: NonNullable<Reply["headers"]>) {
  return Object.entries(headers).map(([key, value]) => ({ header: { key, raw_value: Buffer.from(value) } }));
}
