import type { IncomingHttpHeaders } from "node:http";
import type { AdminPlane } from "../plane/plane.ts";
import type { PlainReply, Reply } from "../server/reply.ts";

export type AdminMethod = "GET" | "POST" | "PUT";

/** One endpoint of an admin server: data that the server dispatches on and lists at `/`. `Plane`: what it sees of the process. */
export interface AdminRoute<Plane = AdminPlane> {
  /** A path that ends in `/` stands for all paths with one more segment. */
  readonly path: string;
  readonly methods: readonly AdminMethod[];
  /** The response to another method. Default: 405 with the methods. */
  readonly otherMethod?: PlainReply;
  /** Its other methods than GET change nothing either. Default: only the server's own page may use them, with its token. */
  readonly onlyReads?: true;
  /** Names of the query parameters; any other gets 400. Default: none. */
  readonly parameters?: readonly string[] | "any";
  /** Bytes of the body at most. Default: none is read. */
  readonly maxBody?: number;
  /** One line for the index: what it returns, and its parameters. */
  readonly summary: string;
  /** @throws AdminBadRequest for a wrong parameter */
  readonly handle: (call: AdminCall<Plane>) => Reply | Promise<Reply>;
}

export interface AdminCall<Plane = AdminPlane> {
  readonly plane: Plane;
  readonly method: AdminMethod;
  /** The last segment of the path if the path of the route ends in `/`; otherwise empty. */
  readonly rest: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** The token of the server's own page if it asks; see `Guard`. */
  readonly pageToken: () => string | undefined;
  /** Empty unless the route reads it. */
  readonly body: Buffer;
  /** Aborts when the client disconnects or the server closes. */
  readonly signal: AbortSignal;
}
