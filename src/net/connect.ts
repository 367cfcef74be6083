/** Opens connections of TCP and Unix sockets, to admitted addresses only. */
import { connect as netConnect } from "node:net";
import { socketAddresses } from "./addresses.ts";
import type { AdmittedAddress } from "./egress.ts";
import { onreadOptions, sockets } from "./node-internals.ts";
import { SocketReader } from "./read-buffer.ts";
import { Transport, type TransportHandler } from "./transport.ts";

/** Waits for a connection; exactly one of the calls follows. */
export interface ConnectHandler {
  /** `agreed`: by ALPN (RFC 7301); undefined in plaintext or if nothing was agreed on. Returns the handler of the connection's events. */
  onConnect(transport: Transport, agreed: string | undefined): TransportHandler;
  /** No connection was made. */
  onClose(error: Error | undefined): void;
}

/**
 * Opens a connection. Returns a function that cancels the attempt. `givenAway`: its stream will be released for something that
 * reads it in another way, such as TLS.
 */
export function connect(
  target: AdmittedAddress,
  keepAliveDelay: number,
  handler: ConnectHandler,
  givenAway = false,
): () => void {
  let failure: Error | undefined;
  const reader = new SocketReader();
  const socket = netConnect({
    ...target.options,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: keepAliveDelay > 0,
    keepAliveInitialDelay: keepAliveDelay,
    autoSelectFamily: false,
    ...(!givenAway && { onread: onreadOptions(reader) }),
  });
  const failed = (error: Error): void => {
    failure = error;
  };
  const closed = (): void => handler.onClose(failure);
  socket.on("error", failed);
  socket.on("close", closed);
  socket.once("connect", () => {
    const refused = target.refusedAfter(socket);
    if (refused !== undefined) {
      socket.destroy(refused);
      return;
    }
    socket.removeListener("error", failed);
    socket.removeListener("close", closed);
    const transport = new Transport(socket, reader, socketAddresses(socket));
    if (givenAway) reader.readPieces(socket);
    else sockets.readDirectly(socket, reader);
    transport.attach(handler.onConnect(transport, undefined));
  });
  return () => socket.destroy();
}
