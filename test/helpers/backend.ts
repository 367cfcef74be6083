import { createServer, type RequestListener, type ServerOptions } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before } from "node:test";

/**
 * A server of HTTP that runs while the tests of the suite or file that calls this run. `host` is its address once they have begun.
 * Default: it responds to everything with status 200.
 */
export function testBackend(
  handle: RequestListener = (_request, response) => response.end("hello"),
  options: ServerOptions = {},
): { readonly host: string } {
  const server = createServer(options, handle);
  before(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
  after(() => server.close());
  return {
    get host() {
      return `127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
  };
}
