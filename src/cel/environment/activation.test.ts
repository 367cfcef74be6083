import assert from "node:assert/strict";
import { test } from "node:test";
import { overlaid } from "./activation.ts";

test("what is beneath is computed only when it is read, also from private fields; what is on top wins", () => {
  class Base {
    readonly #port = 80;
    readonly metadata: object = { a: 1 };
    get jwt(): unknown {
      throw new Error("computed");
    }
    get port(): number {
      return this.#port;
    }
  }
  const variables = overlaid(new Base(), { metadata: { a: 2 } });
  assert.deepEqual(variables.metadata, { a: 2 });
  assert.equal(variables.port, 80);
  assert.throws(() => variables.jwt, /computed/);
});
