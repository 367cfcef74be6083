import { GatewayError } from "../base/errors.ts";
import { type Activation, CelError, compileExpression, type Expression } from "../cel/index.ts";

/**
 * `dynamic.target`: CEL that gives the address to call, such as `10.0.0.1:80`, `[::1]:80` or `name.example:443`. Of a
 * connection it reads less than of a request.
 */
export class DynamicTarget {
  readonly #expression: Expression;

  /** Throws CelError when the expression cannot be used. */
  constructor(text: string, scope: "request" | "network") {
    this.#expression = compileExpression(text, scope);
    const { type, reads } = this.#expression;
    if (type !== "string" && type !== "dyn")
      throw new CelError(`the target is of type ${type}; it has to be text such as "name.example:443"`, text, 0);
    if (reads.has("request.body") || reads.has("request.bodyPrefix"))
      throw new CelError("the backend is chosen before the body is read; a target cannot depend on it", text, 0);
  }

  /** `host:port`. Throws a GatewayError when there is none for this request. */
  read(variables: Activation): string {
    let value: unknown;
    try {
      value = this.#expression.evaluate(variables);
    } catch (error) {
      throw new GatewayError("TG_DNS_FAILED", undefined, error);
    }
    if (typeof value === "string" && isHostPort(value)) return value;
    const what = typeof value === "string" ? JSON.stringify(value) : "the target's value";
    throw new GatewayError("TG_DNS_FAILED", undefined, new Error(`${what} is not host:port`));
  }
}

function isHostPort(text: string): boolean {
  const port = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(text)?.[1];
  return port !== undefined && Number(port) > 0 && Number(port) <= 65535;
}
