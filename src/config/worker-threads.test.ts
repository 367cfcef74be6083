import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { test } from "node:test";
import { guessThreads } from "./worker-threads.ts";

test("the number of workers is guessed from the text and the environment", () => {
  const guess = (text: string, env = {}) => guessThreads(text, env);
  assert.equal(guess("config:\n  workerThreads: 3\n"), 3);
  assert.equal(guess('config: {adminAddr: "off", workerThreads: 3}'), 3);
  assert.equal(guess("config:\n  workerThreads: 50%\n", { CPU_LIMIT: "8" }), 4);
  assert.equal(guess("config:\n  workerThreads: 3\n", { WORKER_THREADS: "5" }), 5);
  assert.equal(guess("config:\n  # workerThreads: 3\n", { CPU_LIMIT: "7" }), 7);
  assert.equal(guess("binds: []\n"), availableParallelism());
});
