import { ANYWHERE } from "../../src/net/testing/egress.ts";
import { Connection, type ConnectionOptions } from "../../src/xds/client/connection.ts";
import { type DeltaResponse, type ProxyNode, readResponse, writeRequest } from "../../src/xds/client/messages.ts";
import { ADDRESS_TYPE, type HeldBack, RESOURCE_TYPE } from "../../src/xds/resources.ts";

/** How long a test waits for something that must happen. */
const PATIENCE_MS = 60_000;

export const NODE: ProxyNode = {
  id: "gw-1",
  cluster: "ns/gw",
  metadata: { NAMESPACE: "ns", GATEWAY: "gw", POD_NAME: "gw-1" },
};

type Versions = ReadonlyMap<string, string>;

/** A proxy as the server sees it, which replies only when the test says so. */
export class XdsPeer {
  readonly responses: DeltaResponse[] = [];
  /** Why the stream has ended. */
  ended: string | undefined;
  /** What has been received, by type: name to version. */
  readonly known = { [RESOURCE_TYPE]: new Map<string, string>(), [ADDRESS_TYPE]: new Map<string, string>() };
  readonly #connection: Connection;
  #read = 0;
  #wake = (): void => {};

  constructor(
    options: Omit<ConnectionOptions, "egress">,
    node: ProxyNode = NODE,
    known: { readonly [type: string]: Versions } = {},
  ) {
    this.#connection = new Connection(
      { ...options, egress: ANYWHERE },
      {
        onMessage: (message) => {
          this.responses.push(readResponse(message));
          this.#wake();
        },
        onEnd: (reason) => {
          this.ended = reason;
          this.#wake();
        },
      },
    );
    for (const typeUrl of [ADDRESS_TYPE, RESOURCE_TYPE])
      this.#connection.send(
        writeRequest({
          typeUrl,
          ...(typeUrl === ADDRESS_TYPE && { node }),
          subscribe: ["*"],
          initialVersions: known[typeUrl] ?? [],
        }),
      );
  }

  /** The responses of the next batch. Rejects when the stream ends instead, or after a bounded time. */
  async batch(): Promise<readonly DeltaResponse[]> {
    await this.#until(() => this.responses.slice(this.#read).some(({ version }) => version !== ""));
    if (this.ended !== undefined) throw new Error(this.ended);
    const end = this.responses.findIndex(({ version }, i) => i >= this.#read && version !== "") + 1;
    const batch = this.responses.slice(this.#read, end);
    this.#read = end;
    for (const { typeUrl, resources, removed } of batch) {
      const known = typeUrl === ADDRESS_TYPE ? this.known[ADDRESS_TYPE] : this.known[RESOURCE_TYPE];
      for (const { name, version } of resources) known.set(name, version);
      for (const name of removed) known.delete(name);
    }
    return batch;
  }

  /** Acknowledges all responses of a batch, or rejects it with `error`, for some Gateways or as a whole. */
  answer(batch: readonly DeltaResponse[], error?: string, heldBack?: readonly HeldBack[]): void {
    for (const { typeUrl, nonce } of batch)
      this.#connection.send(writeRequest({ typeUrl, nonce, ...(error !== undefined && { error, heldBack }) }));
  }

  async end(): Promise<string> {
    await this.#until(() => this.ended !== undefined);
    return this.ended ?? "";
  }

  async #until(condition: () => boolean): Promise<void> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    while (!condition() && this.ended === undefined) {
      await new Promise<void>((resolve, reject) => {
        this.#wake = resolve;
        signal.addEventListener("abort", () => reject(new Error("waited too long for the server")), { once: true });
      });
    }
  }

  close(): void {
    this.#connection.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
