import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";

const ROOT = "/sys/fs/cgroup";

/** A control group of version 2 with a limit of memory, without swap. Needs root. */
export class ControlGroup implements Disposable {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Throws if the system has no such groups, or this process may not make them. `bytes`: the limit; undefined = none. */
  static create(name: string, bytes?: number): ControlGroup {
    writeFileSync(`${ROOT}/cgroup.subtree_control`, "+memory");
    const folder = `${ROOT}/tracegate-${name}-${process.pid}`;
    mkdirSync(folder);
    const group = new ControlGroup(folder);
    group.#write("memory.max", String(bytes ?? "max"));
    if (existsSync(`${folder}/memory.swap.max`)) group.#write("memory.swap.max", "0");
    return group;
  }

  /** Bytes at most so far, with memory of the kernel and what waits in sockets. */
  get peak(): number {
    return Number(readFileSync(`${this.folder}/memory.peak`, "latin1"));
  }

  /** How often the system has ended a process of the group because of its limit. */
  get kills(): number {
    return Number(/^oom_kill (\d+)$/m.exec(readFileSync(`${this.folder}/memory.events`, "latin1"))?.[1]);
  }

  /** Its processes must have ended. */
  [Symbol.dispose](): void {
    rmdirSync(this.folder);
  }

  #write(file: string, text: string): void {
    writeFileSync(`${this.folder}/${file}`, text);
  }
}
