/**
 * The data plane of one worker: its binds, and the two phases of a reload (`prepare` builds aside, `commit` swaps; `abort` drops
 * what was built). The worker's commands come in (worker/worker.ts); connections are served by a BindServer for each bind.
 * All workers prepare before any commits, so a configuration that one of them cannot serve changes nothing anywhere.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { InheritedSocket } from "../base/inherited-sockets.ts";
import type { Sweepable } from "../base/sweeper.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import type { Endpoints } from "../upstream/endpoints/endpoints.ts";
import { compileIr, type Generation } from "./compile/compile-ir.ts";
import { BindServer } from "./ports/bind-server.ts";
import { DRAIN_STEPS, type DrainStep, takeDrainStep } from "./ports/drain.ts";
import type { Sharing } from "./ports/sharing.ts";
import type { TunnelTargets } from "./ports/tunnel.ts";
import type { Services } from "./services/services.ts";
import { UdpServer } from "./udp/udp-server.ts";

/** One port with what it serves. */
type PortServer = BindServer | UdpServer;

/** Ports to listen on, by bind key: the main thread has chosen them, the same for all workers. */
export type Ports = Readonly<Record<string, number>>;

/** The longest time that requests wait for the compilation of a configuration, apart from the last step of a slice. */
const SLICE_MS = 1;

type Compilation = Generator<void, Generation>;

interface Candidate {
  readonly generation: Generation;
  /** Listening already, not yet part of the configuration in effect. */
  readonly opened: ReadonlyMap<string, PortServer>;
}

/** Serves the traffic of one worker. A configuration is built aside, then put into effect as a whole or dropped. */
export class DataPlane implements TunnelTargets, Sweepable {
  readonly #services: Services;
  readonly #endpoints: Endpoints;
  readonly #servers = new Map<string, PortServer>();
  /** Servers of binds that left the configuration, until their last connection closes. */
  readonly #leaving = new Set<PortServer>();
  #compiling: Compilation | undefined;
  #candidate: Candidate | undefined;
  #current: Generation | undefined;
  #onIdle: (() => void) | undefined;

  constructor(services: Services, endpoints: Endpoints) {
    this.#services = services;
    this.#endpoints = endpoints;
    services.sockets.endSession = (client, most) => this.#endSession(client, most);
  }

  /** The port with the most sessions gives way first. */
  #endSession(client: string, most: number): boolean {
    const ports = this.#open.filter((server) => server instanceof UdpServer);
    ports.sort((a, b) => b.connections - a.connections);
    return ports.some((server) => server.evictOne(client, most));
  }

  /**
   * Builds a configuration, in slices between which requests are served, and opens the ports that are new. Rejects, with
   * nothing changed, when it cannot be compiled, a port cannot be opened, or `abort` was called meanwhile.
   */
  async prepare(generation: number, configuration: PackedIr, ports: Ports, sharing: Sharing): Promise<void> {
    this.abort();
    const steps = compileIr(generation, configuration, this.#services, this.#endpoints, this.#current);
    this.#compiling = steps;
    try {
      await this.#openPorts(await this.#inSlices(steps), ports, sharing);
    } catch (error) {
      if (this.#compiling === steps) this.abort();
      throw error;
    }
  }

  /** Takes steps in slices: thousands of routes at once would delay every request. */
  async #inSlices(steps: Compilation): Promise<Generation> {
    for (;;) {
      const end = performance.now() + SLICE_MS;
      do {
        const step = steps.next();
        if (step.done === true) return step.value;
      } while (performance.now() < end);
      await nextTurn();
      if (this.#compiling !== steps) throw new Error("the configuration was discarded while it was being compiled");
    }
  }

  /** Ports are opened before the commit, so that a port in use rejects the configuration instead of failing later. */
  async #openPorts(generation: Generation, ports: Ports, sharing: Sharing): Promise<void> {
    const opened = new Map<string, PortServer>();
    this.#candidate = { generation, opened };
    this.#compiling = undefined;
    try {
      for (const bind of generation.binds.values()) {
        if (this.#servers.has(bind.key)) continue;
        const onEmpty = (): void => this.#emptied(server);
        const server: PortServer =
          bind.protocol === "udp"
            ? new UdpServer(bind, this.#services, onEmpty)
            : new BindServer(bind, this, this.#services, onEmpty);
        // Before it listens: if one of several addresses fails, the others close.
        opened.set(bind.key, server);
        if (bind.mode === "standard") await server.listen(ports[bind.key] ?? bind.port, sharing);
      }
    } catch (error) {
      this.abort();
      throw error;
    }
  }

  /** Swaps the prepared configuration in, without waiting: every request sees either the old one or the new one as a whole. */
  commit(): void {
    const candidate = this.#candidate;
    if (candidate === undefined) return;
    this.#candidate = undefined;
    const { generation, opened } = candidate;
    const before = this.#current;
    generation.destinations.commit();
    for (const [key, server] of opened) {
      this.#servers.set(key, server);
      if (server instanceof BindServer) server.begin();
    }
    for (const [key, server] of this.#servers) {
      const bind = generation.binds.get(key);
      if (bind !== undefined) server.update(bind);
      else {
        this.#servers.delete(key);
        if (server.connections > 0) this.#leaving.add(server);
        server.drain();
      }
    }
    if (generation.addresses !== before?.addresses) this.#services.workloads.become(generation.addresses.byAddress);
    this.#endpoints.calls = generation.calls;
    this.#endpoints.budgets = generation.budgets;
    this.#current = generation;
    if (before !== undefined) this.#endpoints.drop(before);
  }

  /** Drops the configuration that is being built. */
  abort(): void {
    this.#compiling?.return(undefined as never);
    this.#compiling = undefined;
    const candidate = this.#candidate;
    if (candidate === undefined) return;
    this.#candidate = undefined;
    for (const server of candidate.opened.values()) server.destroy();
    this.#endpoints.drop(candidate.generation);
  }

  /** The listening sockets, for a process that takes over. Ports of UDP are not among them: it opens its own beside them. */
  get sockets(): readonly InheritedSocket[] {
    return [...this.#servers.values()].flatMap((server) => (server instanceof BindServer ? server.sockets : []));
  }

  /** Another process has the listening sockets too, with the connections that wait on them; this one accepts no more. */
  handOver(): void {
    for (const server of this.#open) if (server instanceof BindServer) server.stopListening(true);
  }

  /** Takes a step of a shutdown, for which `deadlineMs` is the total; the last step resolves when no connection is left. */
  async drain(step: DrainStep, deadlineMs: number): Promise<void> {
    await takeDrainStep(step, this.#open, deadlineMs);
    if (step !== DRAIN_STEPS.at(-1)) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      this.#checkIdle();
    });
  }

  /** Ends the connections that a drain has left. Returns their number. */
  destroy(): number {
    const servers = this.#open;
    const open = servers.reduce((sum, server) => sum + server.connections, 0);
    for (const server of servers) server.destroy();
    return open;
  }

  /** Enforces the deadlines of all connections. */
  sweep(now: number): void {
    for (const server of this.#open) server.sweep(now);
  }

  /** listener → connection → request, for `/debug/tasks`. */
  tasks(): unknown[] {
    return [...this.#servers].map(([bind, server]) => ({ bind, port: server.port, connections: server.tasks() }));
  }

  /** The target of a tunnel: the bind of this port, else the internal bind without a port. */
  findTarget(port: number): BindServer | undefined {
    const servers = [...this.#servers.values()].filter((server) => server instanceof BindServer);
    return servers.find((server) => server.port === port && port !== 0) ?? servers.find((server) => server.wildcard);
  }

  /** The last connection of a bind has closed. */
  #emptied(server: PortServer): void {
    this.#leaving.delete(server);
    this.#checkIdle();
  }

  /** The servers that have connections, or may get some. */
  get #open(): PortServer[] {
    return [...this.#servers.values(), ...this.#leaving];
  }

  #checkIdle(): void {
    if (this.#onIdle === undefined) return;
    for (const server of this.#servers.values()) if (server.connections > 0) return;
    if (this.#leaving.size === 0) this.#onIdle();
  }
}
