import {
  type handleBidiStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
} from "@grpc/grpc-js";

/** A method: bytes both ways. */
type Handler =
  | { readonly unary: (message: Buffer) => Uint8Array | Promise<Uint8Array> }
  | { readonly stream: (call: ServerDuplexStream<Buffer, Uint8Array>) => void };

/** A gRPC service on a free port of 127.0.0.1. */
export class GrpcServer {
  port = 0;
  readonly #server = new Server();

  /** `methods` by path, as `/package.Service/Method`. */
  static async start(methods: Readonly<Record<string, Handler>>, port = 0): Promise<GrpcServer> {
    const service = new GrpcServer();
    for (const [path, handler] of Object.entries(methods)) service.#add(path, handler);
    service.port = await new Promise<number>((resolve, reject) => {
      service.#server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    return service;
  }

  #add(path: string, handler: Handler): void {
    const streaming = "stream" in handler;
    const method = {
      path,
      requestStream: streaming,
      responseStream: streaming,
      requestSerialize: asBuffer,
      requestDeserialize: asBuffer,
      responseSerialize: asBuffer,
      responseDeserialize: asBuffer,
    };
    const handle: handleUnaryCall<Buffer, Uint8Array> | handleBidiStreamingCall<Buffer, Uint8Array> =
      "stream" in handler
        ? handler.stream
        : (call, callback) => {
            Promise.resolve(call.request)
              .then(handler.unary)
              .then(
                (answer) => callback(null, answer),
                (error: Error) => callback({ code: 13, details: error.message }),
              );
          };
    this.#server.addService({ [path]: method }, { [path]: handle });
  }

  stop(): void {
    this.#server.forceShutdown();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes);
}
