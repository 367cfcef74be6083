import { OwnSockets } from "../../base/own-sockets.ts";
import { Acceptor } from "../acceptor.ts";
import { SocketBudget } from "../socket-budget.ts";

/** Accepts connections on a port of 127.0.0.1 that the system chooses. */
export function acceptLocally(
  onConnection: Parameters<typeof Acceptor.listen>[1],
  budget = new SocketBudget(),
): Promise<Acceptor> {
  const own = new OwnSockets();
  return Acceptor.listen(
    { at: { host: "127.0.0.1", port: 0 }, reusePort: false, keepAliveDelay: 0, own, budget },
    onConnection,
  );
}
