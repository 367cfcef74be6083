export interface ProxiedAddresses {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
}

/**
 * `more`: it may become a header with further bytes; `absent`: it is none of an accepted version; `complete`: `length` bytes
 * are the header. Without `addresses` those of the socket count: health checks of the proxy itself, or clients it cannot tell.
 */
export type ProxyHeader =
  | { readonly state: "more" }
  | { readonly state: "absent" }
  | { readonly state: "invalid"; readonly detail: string }
  | { readonly state: "complete"; readonly length: number; readonly addresses: ProxiedAddresses | undefined };

export type ProxyVersion = "v1" | "v2" | "all";
