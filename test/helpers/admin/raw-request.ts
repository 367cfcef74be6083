import { connect, type Socket } from "node:net";

/** Sends bytes unchanged to `127.0.0.1:port` or a socket path, and resolves with everything until the server closes. */
export function exchangeRaw(address: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = dial(address);
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      text += String(chunk);
    });
    socket.once("error", reject);
    socket.once("close", () => resolve(text));
    socket.write(bytes);
  });
}

/** A plain connection to an address as `RunningServer.addresses` has it. */
export function dial(address: string): Socket {
  if (address.startsWith("unix:")) return connect(address.slice("unix:".length));
  const { hostname, port } = new URL(`http://${address}`);
  return connect(Number(port), hostname.replace(/^\[|\]$/g, ""));
}

/** One request whose connection the server closes after the response. `fields` are complete header lines. */
export function head(method: string, target: string, fields: readonly string[] = ["host: localhost"]): string {
  return `${[`${method} ${target} HTTP/1.1`, ...fields, "connection: close"].join("\r\n")}\r\n\r\n`;
}

/** Status, header text and body of a raw response. */
export function parseResponse(text: string): { status: number; head: string; body: string } {
  const end = text.indexOf("\r\n\r\n");
  return { status: Number(text.slice(9, 12)), head: text.slice(0, end), body: text.slice(end + 4) };
}

/** The response to one request. */
export async function ask(
  address: string | undefined,
  method: string,
  target: string,
  fields?: readonly string[],
): Promise<ReturnType<typeof parseResponse>> {
  return parseResponse(await exchangeRaw(address ?? "", head(method, target, fields)));
}
