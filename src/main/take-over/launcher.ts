import { connect, type Socket } from "node:net";
import { claimSocketFile } from "../../base/socket-file.ts";
import { type Context, write } from "../../cli/runner/context.ts";
import { CliError, usage } from "../../cli/runner/errors.ts";
import { socketPaths } from "./folder.ts";
import { readAnswer, type TakeOverAnswer, type TakeOverRequest } from "./messages.ts";

/** Has the running gateway start this program with `args` in its place. Resolves with the exit code. */
export async function takeOver(args: readonly string[], pid: string | undefined, context: Context): Promise<number> {
  const { env, signal, stdout } = context;
  const found = await runningGateways(env);
  const [chosen, ...others] = pid === undefined ? found : found.filter((each) => each.pid === Number(pid));
  for (const { socket } of found) if (socket !== chosen?.socket || others.length > 0) socket.destroy();
  if (chosen === undefined)
    throw new CliError(
      "failure",
      pid === undefined ? "no gateway of this user runs here" : `no gateway of this user is process ${pid}`,
      {
        hint: "without --take-over, this one starts by itself; a gateway in another container or of another user is not seen",
      },
    );
  if (others.length > 0) {
    const pids = found.map((each) => each.pid).join(", ");
    throw usage(`several gateways run here: processes ${pids}`, "say which one with --pid");
  }
  const variables = Object.entries(env).flatMap(([name, text]) => (text === undefined ? [] : [[name, text]]));
  const [, module = ""] = process.argv;
  const answer = await ask(chosen.socket, signal, {
    command: [process.execPath, ...process.execArgv, module, ...args],
    folder: process.cwd(),
    env: Object.fromEntries(variables),
  });
  if (answer.type === "failed") throw new CliError("failure", `process ${chosen.pid} keeps serving: ${answer.problem}`);
  await write(stdout, `process ${answer.pid} serves, process ${chosen.pid} drains\n`);
  return 0;
}

interface RunningGateway {
  readonly pid: number;
  readonly socket: Socket;
}

/** Removes the sockets of dead processes. */
async function runningGateways(env: Context["env"]): Promise<RunningGateway[]> {
  const connected = [...socketPaths(env)].map(async ([pid, path]): Promise<RunningGateway[]> => {
    const socket = await connectedTo(path);
    if (socket !== undefined) return [{ pid, socket }];
    await claimSocketFile(path);
    return [];
  });
  return (await Promise.all(connected)).flat();
}

function connectedTo(path: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => resolve(socket));
    socket.on("error", () => resolve(undefined));
  });
}

/** Rejects if the gateway ends first, or this command is interrupted. */
function ask(socket: Socket, signal: AbortSignal, request: TakeOverRequest): Promise<TakeOverAnswer> {
  return new Promise((resolve, reject) => {
    let text = "";
    signal.addEventListener("abort", () => socket.destroy(), { once: true });
    socket.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    socket.once("close", () => {
      const answer = readAnswer(text);
      if (answer !== undefined) resolve(answer);
      else reject(new CliError("failure", "the gateway ended without an answer; see its log"));
    });
    socket.write(`${JSON.stringify(request)}\n`);
  });
}
