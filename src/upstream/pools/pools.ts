import type { Sweeper } from "../../base/sweeper.ts";
import { SocketBudget } from "../../net/socket-budget.ts";
import type { Resolver } from "../resolve/resolver.ts";
import { type PoolTarget, poolKey } from "../settings/pool-target.ts";
import { Pool, type PoolObserver, type PoolSettings } from "./pool.ts";

interface Counted {
  readonly pool: Pool;
  users: number;
}

/**
 * The pools of a worker, one for each target and way to connect, counted by the configurations that use them: a reload that keeps a
 * target keeps its connections, and a target that no configuration uses is drained. Old and new configuration overlap during a
 * reload, because requests of the old one may still be running.
 */
export class Pools {
  readonly #pools = new Map<string, Counted>();
  readonly #settings: PoolSettings;
  readonly #resolver: Resolver;
  readonly #observer: PoolObserver;
  readonly #sweeper: Sweeper;
  readonly #budget: SocketBudget;

  /** `budget`: by default, without a limit. */
  constructor(
    settings: PoolSettings,
    resolver: Resolver,
    observer: PoolObserver,
    sweeper: Sweeper,
    budget: SocketBudget = new SocketBudget(),
  ) {
    this.#settings = settings;
    this.#resolver = resolver;
    this.#observer = observer;
    this.#sweeper = sweeper;
    this.#budget = budget;
    budget.closeIdle = () => this.#closeIdle();
  }

  get resolver(): Resolver {
    return this.#resolver;
  }

  /** The pool of a target, until `release` has been called as often. */
  acquire(target: PoolTarget): Pool {
    const key = poolKey(target);
    let counted = this.#pools.get(key);
    if (counted === undefined) {
      const pool = new Pool(target, this.#settings, this.#resolver, this.#observer, this.#budget);
      counted = { pool, users: 0 };
      this.#pools.set(key, counted);
      this.#sweeper.add(counted.pool);
    }
    counted.users++;
    return counted.pool;
  }

  /** Drains the pool if this was its last user. */
  release(pool: Pool): void {
    const counted = this.#pools.get(poolKey(pool.target));
    if (counted === undefined || --counted.users > 0) return;
    this.#pools.delete(poolKey(pool.target));
    pool.close(() => this.#sweeper.delete(pool));
  }

  /** Without it, idle connections of some pools would leave others without any until they time out. */
  #closeIdle(): boolean {
    for (const { pool } of this.#pools.values()) if (pool.closeIdle()) return true;
    return false;
  }
}
