/**
 * A bounded queue in which everybody has a line of their own, and the lines take turns: who brings much waits behind their
 * own, not others behind them.
 */
export class FairQueue<Task> {
  readonly #limit: number;
  /** The line whose turn it is comes first. */
  readonly #lines = new Map<string, Task[]>();
  size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Puts a task at the end of its owner's line. When all is full, returns the one that gives way: the last of the longest line. */
  add(owner: string, task: Task): Task | undefined {
    const line = this.#lines.get(owner);
    if (line === undefined) this.#lines.set(owner, [task]);
    else line.push(task);
    this.size++;
    if (this.size <= this.#limit) return undefined;
    let longest = owner;
    for (const [name, tasks] of this.#lines) if (tasks.length > (this.#lines.get(longest)?.length ?? 0)) longest = name;
    return this.#take(longest, (tasks) => tasks.pop());
  }

  next(): Task | undefined {
    const [owner] = this.#lines.keys();
    if (owner === undefined) return undefined;
    const task = this.#take(owner, (tasks) => tasks.shift());
    const rest = this.#lines.get(owner);
    if (rest !== undefined) {
      this.#lines.delete(owner);
      this.#lines.set(owner, rest);
    }
    return task;
  }

  #take(owner: string, from: (tasks: Task[]) => Task | undefined): Task | undefined {
    const tasks = this.#lines.get(owner) ?? [];
    const task = from(tasks);
    this.size--;
    if (tasks.length === 0) this.#lines.delete(owner);
    return task;
  }
}
