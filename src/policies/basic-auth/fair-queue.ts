/**
 * A bounded queue with one line per owner, served round robin. An owner with many tasks delays only its own: a client that guesses
 * passwords cannot keep others from logging in.
 */
export class FairQueue<Task> {
  readonly #limit: number;
  /** In the order of turns: a Map keeps the order of insertion. */
  readonly #lines = new Map<string, Task[]>();
  size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Adds a task to the line of its owner. When the queue is over its limit, removes and returns the last task of the longest line,
   * which is the new task itself if no other line is longer.
   */
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

  /** Removes the first task of the next line; undefined when the queue is empty. The line moves to the end. */
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
