/**
 * Property tests import fast-check from here: all of them use one seed, so that a run is the same as the last one and a failure
 * that CI has seen is seen here too. `PROPERTY_SEED=random` explores with another seed each time, `PROPERTY_SEED=<number>` runs
 * one again; fast-check prints the seed of a failure.
 */
import fc from "fast-check";

const DEFAULT_SEED = 20_260_101;

export function seedFrom(text: string | undefined, random: () => number): number {
  if (text === undefined || text === "") return DEFAULT_SEED;
  const seed = text === "random" ? Math.floor(random() * 2 ** 31) : Number(text);
  if (!Number.isInteger(seed)) throw new Error(`PROPERTY_SEED=${text}: use random or a whole number`);
  return seed;
}

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: seedFrom(process.env.PROPERTY_SEED, Math.random) });

export { fc };
