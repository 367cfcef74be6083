import type { AdminPlane } from "../plane.ts";
import type { Reply } from "../server/reply.ts";

export type AdminMethod = "GET" | "POST";

/** One endpoint of the admin server: data that the server dispatches on and lists at `/`. */
export interface AdminRoute {
  readonly path: string;
  readonly methods: readonly AdminMethod[];
  /** Names of the query parameters; any other gets 400. Default: none. */
  readonly parameters?: readonly string[];
  /** One line for the index: what it returns, and its parameters. */
  readonly summary: string;
  /** @throws AdminBadRequest for a wrong parameter */
  readonly handle: (call: AdminCall) => Reply | Promise<Reply>;
}

export interface AdminCall {
  readonly plane: AdminPlane;
  readonly method: AdminMethod;
  readonly query: URLSearchParams;
  /** Aborts when the client disconnects or the server closes. */
  readonly signal: AbortSignal;
}
