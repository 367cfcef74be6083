/** A gRPC call has ended with a status other than OK; the `cause` of the GatewayError that says so. */
export class GrpcStatusError extends Error {
  readonly code: number;
  /** `google.rpc.Status`, encoded, where the service has sent one: what else it says about the failure. */
  readonly status: Uint8Array | undefined;

  /** grpc-js ends some details with a heading that nothing follows. */
  constructor(code: number, details: string, status: Uint8Array | undefined) {
    super(`gRPC status ${code}: ${details.replace(/ Resolution note: $/, "")}`);
    this.code = code;
    this.status = status;
  }
}
