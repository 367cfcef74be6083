/**
 * Fuzzes the request parser against Node's for a while. `npm run fuzz -- --seconds 60 --seed 1`
 * Ends with status 1 at the first disagreement, which it prints with the input as hex and the seed that makes it.
 */
import { inspect, parseArgs } from "node:util";
import { compare } from "./differential.ts";
import { generateStream } from "./generate.ts";

function wholeNumber(text: string, option: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new Error(`--${option} must be a whole number, for example --${option} 60; it is ${text}`);
}

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
  },
});
const deadline = performance.now() + wholeNumber(values.seconds, "seconds") * 1000;
const firstSeed = wholeNumber(values.seed, "seed");

let seed = firstSeed;
let accepted = 0;
// At least one stream, so that `--seconds 0 --seed S` runs again the one that failed.
do {
  const stream = generateStream(seed);
  const result = compare(stream);
  if (result.disagreement !== undefined) {
    console.error(`disagreement with seed ${seed}; again with: npm run fuzz -- --seconds 0 --seed ${seed}`);
    console.error(`input as hex: ${stream.toString("hex")}`);
    console.error(`input: ${JSON.stringify(stream.toString("latin1"))}`);
    console.error(inspect(result.disagreement, { depth: null }));
    process.exit(1);
  }
  accepted += result.accepted;
  seed++;
} while (performance.now() < deadline);
console.log(`${seed - firstSeed} streams from seed ${firstSeed}, ${accepted} requests accepted, no disagreement`);
