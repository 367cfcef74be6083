/**
 * The server as the runner of the suite sees it: passes the runner's message on to the process of the suite, which has the gateways,
 * and its answer back. It starts quickly: the runner waits 10 s at most.
 *
 *   node relay.ts <socket> <line that says which gateway>
 */
import { connect } from "node:net";

const [path = "", line = ""] = process.argv.slice(2);
const suite = connect(path);
suite.write(`${line}\n`);
process.stdin.pipe(suite, { end: false });
suite.pipe(process.stdout, { end: false });
suite.on("close", () => process.exit());
process.on("SIGTERM", () => suite.destroy());
