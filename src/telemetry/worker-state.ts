/** A place for a worker, and whether one serves there. */
export interface WorkerState {
  readonly name: string;
  /** `starting`: it does not serve yet; `dead`: a replacement follows. */
  readonly state: "serving" | "starting" | "dead";
  /** Number of the configuration that it serves; null: none. */
  readonly generation: number | null;
  /** How many workers have died here. */
  readonly deaths: number;
}
