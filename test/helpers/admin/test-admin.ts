import { after, before } from "node:test";
import { startAdminServer } from "../../../src/admin/admin-server.ts";
import type { RunningServer } from "../../../src/admin/server/http-server.ts";
import { unguarded } from "../../../src/net/testing/egress.ts";
import { ask } from "./raw-request.ts";
import { TestPlane } from "./test-plane.ts";

/** One admin server for all tests of a file. */
export class TestAdmin {
  readonly plane = new TestPlane();
  #server: RunningServer | undefined;

  /** `hosts`: names by which it may be called besides those of this machine. Starts before the first test. */
  constructor(hosts: readonly string[] = []) {
    before(async () => {
      this.#server = await startAdminServer(
        this.plane,
        { type: "socket", host: "127.0.0.1", port: 0 },
        this.plane.log,
        unguarded(),
        undefined,
        hosts,
      );
    });
    after(() => this.#server?.close());
  }

  get address(): string {
    return this.#server?.addresses[0] ?? "";
  }

  ask(method: string, target: string, fields?: readonly string[]): ReturnType<typeof ask> {
    return ask(this.address, method, target, fields);
  }
}
