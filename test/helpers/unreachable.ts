import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** A port whose listener is stopped and whose queue is full: further connects get no response from the system. */
export async function unreachable(host = "127.0.0.1"): Promise<{ port: number } & AsyncDisposable> {
  const script = `const s=require("net").createServer().listen({port:0,host:"${host}",backlog:1},()=>console.log(s.address().port))`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(child.stdout, "data");
  const port = Number(line);
  child.kill("SIGSTOP");
  const fillers = Array.from({ length: 8 }, () => connect(port, host).on("error", () => {}));
  await once(fillers[0] as Socket, "connect");
  return {
    port,
    async [Symbol.asyncDispose]() {
      for (const filler of fillers) filler.destroy();
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}
