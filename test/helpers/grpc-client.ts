import {
  type CallOptions,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  type ClientWritableStream,
  credentials,
  Metadata,
  type StatusObject,
} from "@grpc/grpc-js";

/** How a call with one response has ended. */
export interface Answer {
  readonly status: StatusObject;
  /** undefined = the call has failed. */
  readonly message: string | undefined;
}

const asBuffer = (bytes: Buffer): Buffer => bytes;

/** A client of grpc-js on its own connection; messages are bytes. */
export class GrpcClient {
  readonly #client: Client;

  /** `ca`: PEM of the CA that verifies the server, as `name`; without it the connection is plaintext. */
  constructor(port: number, ca?: string, name = "localhost") {
    const channel = ca === undefined ? credentials.createInsecure() : credentials.createSsl(Buffer.from(ca));
    this.#client = new Client(`127.0.0.1:${port}`, channel, {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_retries": 0,
      "grpc.max_receive_message_length": -1,
      "grpc.max_send_message_length": -1,
      ...(ca !== undefined && { "grpc.ssl_target_name_override": name }),
    });
  }

  /** `onCall` gets the call before it ends, for example to cancel it. */
  unary(
    path: string,
    message: Buffer | string,
    { metadata = {}, ...options }: CallOptions & { readonly metadata?: Readonly<Record<string, string>> } = {},
    onCall?: (call: ClientUnaryCall) => void,
  ): Promise<Answer> {
    return new Promise((resolve) => {
      let answer: string | undefined;
      const bytes = Buffer.from(message);
      const sent = Metadata.fromHttp2Headers(metadata);
      const call = this.#client.makeUnaryRequest(path, asBuffer, asBuffer, bytes, sent, options, (_, got) => {
        answer = got?.toString();
      });
      call.on("status", (status: StatusObject) => setImmediate(() => resolve({ status, message: answer })));
      onCall?.(call);
    });
  }

  /** Sends all `messages`, then reads the one that comes back. */
  clientStream(path: string, messages: readonly string[]): Promise<Answer> {
    return new Promise((resolve) => {
      let answer: string | undefined;
      const call: ClientWritableStream<Buffer> = this.#client.makeClientStreamRequest(
        path,
        asBuffer,
        asBuffer,
        (_, got) => {
          answer = got?.toString();
        },
      );
      call.on("status", (status: StatusObject) => setImmediate(() => resolve({ status, message: answer })));
      for (const message of messages) call.write(Buffer.from(message));
      call.end();
    });
  }

  serverStream(path: string, message: string, options: CallOptions = {}): ClientReadableStream<Buffer> {
    return this.#client.makeServerStreamRequest(
      path,
      asBuffer,
      asBuffer,
      Buffer.from(message),
      new Metadata(),
      options,
    );
  }

  bidi(path: string, options: CallOptions = {}): ClientDuplexStream<Buffer, Buffer> {
    return this.#client.makeBidiStreamRequest(path, asBuffer, asBuffer, new Metadata(), options);
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}
