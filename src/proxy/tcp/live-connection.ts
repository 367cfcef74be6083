/** A client connection that does not speak HTTP to the gateway, or not yet; its bind knows it until it is closed. */
export interface LiveConnection {
  readonly remoteAddress: string;
  readonly remotePort: number;
  /** What it is doing, for the task dump. */
  readonly activity: { readonly state: string; readonly ageMs: number };
  /** Ends it at once; `reason` is for the log. */
  abort(reason: string): void;
}
