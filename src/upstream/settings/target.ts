import type { DnsSettings } from "../discovery/dns.ts";

/** Where requests to backends and callouts are sent. */
export type Target =
  | {
      readonly type: "static";
      readonly host: string;
      readonly port: number;
      readonly srv?: string;
      readonly dns?: DnsSettings;
    }
  | { readonly type: "unix"; readonly path: string }
  | { readonly type: "service"; readonly key: string; readonly port: number }
  /** `key` is that of the backend, and of the service with its endpoints; `name`: of a pool that is written in a route. */
  | { readonly type: "pool"; readonly key: string; readonly name?: string }
  | { readonly type: "dynamic"; readonly expression?: string }
  /** The admin API of this process; `path` is `forward` or what replaces the request's path. */
  | { readonly type: "internal"; readonly path: string }
  | { readonly type: "routeGroup"; readonly name: string }
  | { readonly type: "invalid"; readonly reference: string };
