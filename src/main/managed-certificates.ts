import type { Certificates } from "../acme/certificates.ts";
import type { ManagedCertificate } from "../acme/settings.ts";
import type { Logger } from "../base/log.ts";
import type { Ir } from "../ir/ir.ts";
import type { Egress } from "../net/egress.ts";
import { fetchThrough } from "../upstream/callouts/fetch.ts";
import { Resolver } from "../upstream/resolve/resolver.ts";

/** The certificates that the gateway orders. Their code is loaded with the first configuration that has one. */
export class ManagedCertificates {
  readonly #egress: Egress;
  readonly #log: Logger;
  #certificates: Promise<Certificates> | undefined;
  #loaded: Certificates | undefined;
  #closed = false;

  constructor(egress: Egress, log: Logger) {
    this.#egress = egress;
    this.#log = log;
  }

  /** Orders what this configuration, which is in effect, wants; nothing else from then on. */
  async follow({ binds }: Pick<Ir, "binds">): Promise<void> {
    const wanted = binds.flatMap(({ listeners }) => listeners.flatMap(({ acme }) => acme ?? []));
    if (wanted.length === 0 && this.#certificates === undefined) return;
    this.#certificates ??= this.#load();
    const certificates = await this.#certificates;
    if (!this.#closed) certificates.follow(wanted);
  }

  /** What comes next for a certificate; undefined if that is not known yet. */
  stepOf(certificate: ManagedCertificate): ReturnType<Certificates["stepOf"]> {
    return this.#loaded?.stepOf(certificate);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await (await this.#certificates)?.close();
  }

  async #load(): Promise<Certificates> {
    const { Certificates } = await import("../acme/certificates.ts");
    this.#loaded = new Certificates(fetchThrough(new Resolver("All", this.#egress)), this.#log);
    return this.#loaded;
  }
}
