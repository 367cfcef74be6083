/**
 * Modules of Node that most configurations do not need, loaded at their first use. Imported when a thread starts, each
 * costs every worker about 10 ms and 1 MiB; measured with Node 24.
 */

/** `node:tls`: for the first listener or backend with TLS. */
export function nodeTls(): typeof import("node:tls") {
  return process.getBuiltinModule("node:tls");
}

/** `node:dgram`: for the first UDP listener. */
export function nodeDgram(): typeof import("node:dgram") {
  return process.getBuiltinModule("node:dgram");
}

/** `node:zlib`: for the first route that compresses responses. */
export function nodeZlib(): typeof import("node:zlib") {
  return process.getBuiltinModule("node:zlib");
}
