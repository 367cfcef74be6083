import type { EventRecorder } from "../kube/events.ts";
import type { Ingress } from "../kube/objects.ts";
import type { IngressProblem } from "./translate/routes/ingress-rules.ts";

/** The API server deletes Events after an hour: a problem that lasts is reported again before. */
const REPEAT_MS = 45 * 60_000;
/** Events of one Ingress; the budget of the recorder is larger. */
const MOST = 10;

/** Reports what is wrong with Ingresses as Events: each problem once, and again while it lasts. To be run by the leader. */
export class IngressEvents {
  readonly #events: Pick<EventRecorder, "record">;
  readonly #live: (key: string) => Ingress | undefined;
  readonly #now: () => number;
  /** When each problem was reported, by key of the Ingress and message. */
  #reported = new Map<string, number>();

  /** `now`: milliseconds; default `performance.now`. */
  constructor(
    events: Pick<EventRecorder, "record">,
    live: (key: string) => Ingress | undefined,
    now: () => number = () => performance.now(),
  ) {
    this.#events = events;
    this.#live = live;
    this.#now = now;
  }

  /** Takes the problems of all Ingresses, by key. */
  update(problems: ReadonlyMap<string, readonly IngressProblem[]>): void {
    const now = this.#now();
    const reported = new Map<string, number>();
    for (const [key, list] of problems) {
      const object = this.#live(key);
      if (object === undefined) continue;
      for (const { reason, message } of list.slice(0, MOST)) {
        const id = JSON.stringify([key, object.metadata.uid, reason, message]);
        const before = this.#reported.get(id);
        const isDue = before === undefined || now - before >= REPEAT_MS;
        reported.set(id, isDue ? now : before);
        if (isDue) void this.#events.record(object, { type: "Warning", reason, message });
      }
    }
    this.#reported = reported;
  }
}
