import { createHook } from "node:async_hooks";

/** What the process opens while something runs: sockets, name lookups, files. TLS over connections in memory is none of these. */
export async function opened(run: () => Promise<unknown>): Promise<string[]> {
  const found: string[] = [];
  const hook = createHook({
    init(_id, type) {
      if (/^(TCP|UDP|PIPE|GETADDRINFO|QUERY|FS|FILEHANDLE)/.test(type)) found.push(type);
    },
  });
  hook.enable();
  try {
    await run();
  } finally {
    hook.disable();
  }
  return found;
}
