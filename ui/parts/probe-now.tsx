import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import type { ProbeAnswer } from "../../src/admin/plane/backends.ts";
import { counted } from "../../src/base/counted.ts";
import { foundText, NOTHING_PROBED, notProbed, sentText } from "../../src/report/health.ts";
import { durationText } from "../../src/report/recorded.ts";
import { type AskError, ask, lasting } from "../ask.ts";
import { Problem } from "./problem.tsx";
import { Table } from "./table.tsx";

/** A button that probes the endpoints of a backend, by its key, and what came back. */
export function ProbeNow({ backend }: { readonly backend: string }): VNode {
  const answer = useSignal<ProbeAnswer | undefined>(undefined);
  const problem = useSignal<AskError | undefined>(undefined);
  const busy = useSignal(false);
  const probe = async (): Promise<void> => {
    busy.value = true;
    problem.value = undefined;
    try {
      answer.value = await ask("/probe/", { rest: backend, changes: true });
    } catch (error) {
      problem.value = lasting(error);
    }
    busy.value = false;
  };
  return (
    <section>
      <p>
        <button type="button" aria-disabled={busy.value} onClick={() => busy.value || void probe()}>
          Probe now
        </button>{" "}
        <span role="status" class="quiet">
          {busy.value ? "probing" : answer.value === undefined ? "" : summaryOf(answer.value)}
        </span>
      </p>
      <Problem problem={problem.value} />
      {answer.value === undefined || answer.value.probes.length === 0 ? null : <Results answer={answer.value} />}
    </section>
  );
}

function summaryOf({ probes, endpoints }: ProbeAnswer): string {
  if (probes.length === 0) return NOTHING_PROBED;
  const failed = probes.filter(({ healthy }) => !healthy).length;
  const left = notProbed(endpoints, probes);
  const all = left > 0 ? `${endpoints - left} of ${endpoints} endpoints` : counted(probes.length, "probe");
  return `${all}: ${failed === 0 ? "healthy" : `${failed} failed`}`;
}

function Results({ answer: { probes } }: { readonly answer: ProbeAnswer }): VNode {
  const areOfReplicas = probes.some(({ pod }) => pod !== undefined);
  return (
    <Table
      label="Probes"
      headings={["endpoint", ...(areOfReplicas ? ["replica"] : []), "state", { number: "time" }, "sent", "result"]}
    >
      {probes.map((probe, index) => (
        <tr key={index}>
          <td>{probe.address}</td>
          {areOfReplicas && <td>{probe.pod}</td>}
          <td class={probe.healthy ? "good" : "bad"}>{probe.healthy ? "healthy" : "unhealthy"}</td>
          <td class="number">{durationText(probe.duration)}</td>
          <td>{sentText(probe.sent)}</td>
          <td title={foundText(probe)}>{foundText(probe)}</td>
        </tr>
      ))}
    </Table>
  );
}
