import {
  type handleBidiStreamingCall,
  type handleUnaryCall,
  type Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
} from "@grpc/grpc-js";

/** A method: bytes both ways. */
type Handler =
  | { readonly unary: (message: Buffer, metadata: Metadata, authority: string) => Uint8Array | Promise<Uint8Array> }
  | { readonly stream: (call: ServerDuplexStream<Buffer, Uint8Array>) => void };

/** A certificate for the service; `ca`: clients need a certificate of this CA. */
interface Tls {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
}

/** A gRPC service on a free port of 127.0.0.1. */
export class GrpcServer {
  port = 0;
  readonly #server = new Server();

  /** `methods` by path, as `/package.Service/Method`. */
  static async start(methods: Readonly<Record<string, Handler>>, port = 0, tls?: Tls): Promise<GrpcServer> {
    const service = new GrpcServer();
    for (const [path, handler] of Object.entries(methods)) service.#add(path, handler);
    service.port = await new Promise<number>((resolve, reject) => {
      service.#server.bindAsync(`127.0.0.1:${port}`, credentialsOf(tls), (error, bound) =>
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
              .then((message) => handler.unary(message, call.metadata, call.getHost()))
              .then(
                (answer) => callback(null, answer),
                (error: Error & { readonly code?: number }) =>
                  callback({ code: error.code ?? 13, details: error.message }),
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

function credentialsOf(tls: Tls | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure();
  const pair = { cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) };
  const ca = tls.ca === undefined ? null : Buffer.from(tls.ca);
  return ServerCredentials.createSsl(ca, [pair], ca !== null);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes);
}
