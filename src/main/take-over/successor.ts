import { existsSync } from "node:fs";
import { type InheritedSocket, InheritedSockets } from "../../base/inherited-sockets.ts";
import { activatedSockets } from "./activation.ts";
import { INHERITED, type SuccessorMessage } from "./messages.ts";

/** The listening sockets that this process was started with, from a gateway that it takes over from or from systemd. */
export function inheritedSockets(env: NodeJS.ProcessEnv): InheritedSockets {
  const { [INHERITED]: text } = env;
  delete env[INHERITED];
  // Linux has this table if it has IPv6.
  const ipv6 = process.platform !== "linux" || existsSync("/proc/self/net/tcp6");
  if (text === undefined) return new InheritedSockets(activatedSockets(env), { ipv6 });
  return new InheritedSockets(JSON.parse(text) as InheritedSocket[], { takesOver: true, ipv6 });
}

/** Notifies the gateway that this process replaces; resolves once it has the message or has ended. */
export function tellPredecessor(message: SuccessorMessage): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined) resolve();
    else process.send(message, undefined, undefined, () => resolve());
  });
}
