/** Gathers bytes during a turn of the event loop, and writes them at its end. */
export interface TurnOutput {
  endTurn(): void;
}

let outputs: TurnOutput[] = [];

function endTurn(): void {
  const ended = outputs;
  outputs = [];
  for (const output of ended) output.endTurn();
}

/**
 * Calls `output.endTurn()` once this turn of the event loop has read every socket that was ready. Consecutive writes cost less CPU than
 * writes between reads (4 % of a request over HTTP/1.1), and all messages to one peer leave in one system call. `nextTick` would run
 * after each socket's callback and gather almost nothing.
 */
export function writeAtEndOfTurn(output: TurnOutput): void {
  if (outputs.push(output) === 1) setImmediate(endTurn);
}
