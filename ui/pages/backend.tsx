import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import type { BackendView, EndpointView } from "../../src/admin/plane/backends.ts";
import { counted } from "../../src/base/counted.ts";
import { changeText, timeText } from "../../src/report/health.ts";
import { durationText } from "../../src/report/recorded.ts";
import { type AskError, ask } from "../ask.ts";
import type { PageProps } from "../page.ts";
import { EndpointCells, EndpointHeadings } from "../parts/endpoint-cells.tsx";
import { HealthStrip } from "../parts/health-strip.tsx";
import { Origin } from "../parts/origin.tsx";
import { ProbeNow } from "../parts/probe-now.tsx";
import { Problem } from "../parts/problem.tsx";
import { Table } from "../parts/table.tsx";
import { hashOf, routeHash } from "../place.ts";
import { usePoll } from "../poll.ts";

/** Milliseconds between two questions, and of the health that is drawn. */
const PAUSE = 2000;
const PERIOD = 900_000;
/** Endpoints and routes at most. */
const LIMIT = 200;

/** One backend: its endpoints with their limits and how their health changed, and the routes that send requests to it. */
export function Backend({ rest: key }: PageProps): VNode {
  const answer = useSignal<BackendView | undefined>(undefined);
  const problem = useSignal<AskError | undefined>(undefined);
  usePoll(
    key,
    PAUSE,
    async (signal) => {
      answer.value = await ask("/backends/", { rest: key, signal });
    },
    (error) => {
      problem.value = error;
    },
  );
  const backend = answer.value;
  return (
    <article>
      <h1 aria-busy={backend === undefined && problem.value === undefined}>Backend {backend?.name ?? key}</h1>
      <Problem problem={problem.value} />
      {backend === undefined ? (
        <p>
          <a href={hashOf("/backends")}>All backends</a>
        </p>
      ) : (
        <>
          <Facts backend={backend} />
          <ProbeNow backend={key} />
          <Endpoints endpoints={backend.endpoints} />
          <Routes routes={backend.routes} />
        </>
      )}
    </article>
  );
}

function Facts({ backend: { kind, origin, requests, failing, endpoints, key } }: { readonly backend: BackendView }) {
  return (
    <dl class="facts">
      <dt>kind</dt>
      <dd>{kind}</dd>
      <dt>key</dt>
      <dd>{key}</dd>
      {origin === undefined ? null : (
        <>
          <dt>written at</dt>
          <dd>
            <Origin origin={origin} />
          </dd>
        </>
      )}
      <dt>requests</dt>
      <dd>{requests}</dd>
      <dt>endpoints</dt>
      <dd class={failing > 0 ? "bad" : ""}>
        {endpoints.total === 0
          ? "the configuration names none"
          : `${endpoints.total}${failing === 0 ? "" : `, ${failing} ${failing === 1 ? "gets" : "get"} no requests`}`}
      </dd>
    </dl>
  );
}

function Endpoints({ endpoints: { shown, total } }: { readonly endpoints: BackendView["endpoints"] }): VNode | null {
  if (total === 0) return null;
  const listed = shown.slice(0, LIMIT);
  const now = Date.now();
  const isWeighted = listed.some(({ weight }) => weight !== 1);
  const hasNames = listed.some(({ name }) => name !== undefined);
  const isService = listed.some(({ workload }) => workload !== undefined);
  return (
    <section>
      <h2>Endpoints</h2>
      <section class="scroll" tabIndex={0} aria-label="Endpoints">
        <table class="mono">
          <thead>
            <tr>
              <EndpointHeadings />
              {isWeighted ? (
                <th scope="col" class="number">
                  weight
                </th>
              ) : null}
              {hasNames ? <th scope="col">looked up</th> : null}
              <th scope="col">limits</th>
              <th scope="col">checks</th>
              {isService ? <th scope="col">workload</th> : null}
            </tr>
          </thead>
          <tbody>
            {listed.map((endpoint, index) => (
              <tr key={index}>
                <EndpointCells endpoint={endpoint} />
                {isWeighted ? <td class="number">{endpoint.weight}</td> : null}
                {hasNames ? <LookupCell endpoint={endpoint} /> : null}
                <td>{limitsOf(endpoint)}</td>
                <td>{checksOf(endpoint)}</td>
                {isService ? <td>{workloadOf(endpoint)}</td> : null}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {listed.length < total ? (
        <p class="quiet">
          The first {listed.length} of {total}: those that get no requests come first.
        </p>
      ) : null}
      <h2>Health of the last 15 minutes</h2>
      <section class="scroll" tabIndex={0} aria-label="Health">
        <table class="mono">
          <tbody>
            {listed.map((endpoint, index) => (
              <tr key={index}>
                <th scope="row">
                  {endpoint.addresses.join(" ")} {endpoint.name?.host}
                </th>
                <td>
                  <HealthStrip changes={endpoint.changes} now={now} period={PERIOD} />
                </td>
                <td>
                  <Changes endpoint={endpoint} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </section>
  );
}

/** The latest change, and those before it when somebody asks for them. */
function Changes({ endpoint: { changes } }: { readonly endpoint: EndpointView }): VNode {
  const texts = changes.map((change) => `${timeText(change.at)} ${changeText(change)}`);
  const [latest = "no change since the gateway started", ...earlier] = texts;
  if (earlier.length === 0) return <span class={texts.length === 0 ? "quiet" : ""}>{latest}</span>;
  return (
    <details>
      <summary>{latest}</summary>
      <ul class="changes">
        {earlier.map((text, index) => (
          <li key={index}>{text}</li>
        ))}
      </ul>
    </details>
  );
}

/** When the addresses of a host name were found, those that are no endpoints, and why the last lookup failed. */
function LookupCell({ endpoint: { name, state } }: { readonly endpoint: EndpointView }): VNode {
  if (name === undefined) return <td />;
  const { host, addresses, foundAt, omitted = 0, error } = name;
  const text = [
    host === undefined ? addresses.join(" ") : "",
    foundAt === undefined ? "" : `${durationText(Math.max(0, Date.now() - foundAt))} ago`,
    omitted === 0 ? "" : `${omitted} more not used`,
    // Of one that has no address, it is why that gets no requests.
    state === "unresolved" ? "" : (error ?? ""),
  ];
  const shown = text.filter(Boolean).join(", ");
  return (
    <td class={error === undefined ? "" : "bad"} title={shown}>
      {shown}
    </td>
  );
}

function limitsOf({ limits, perWorker }: EndpointView): string {
  if (limits === undefined) return "";
  const { connections, waiting, requests } = limits;
  const alone = perWorker === undefined ? "" : "; each worker counts alone";
  return `${connections} connections, ${waiting} waiting${requests === null ? "" : `, ${requests} requests`}${alone}`;
}

function checksOf({ check }: EndpointView): string {
  return check === undefined ? "none" : `${check.passed} passed, ${check.failed} failed`;
}

function workloadOf({ workload }: EndpointView): string {
  if (workload === undefined) return "";
  const { name, region, zone, node, rank } = workload;
  const near = rank === undefined ? "" : rank === 0 ? "nearest" : `${rank} further`;
  return [name, region, zone, node, near].filter((part) => part !== undefined && part !== "").join(" · ");
}

function Routes({ routes: { shown, total } }: { readonly routes: BackendView["routes"] }): VNode {
  const listed = shown.slice(0, LIMIT);
  return (
    <section>
      <h2>{total === 0 ? "No route leads here" : `Used by ${counted(total, "route")}`}</h2>
      {total === 0 ? null : (
        <Table label="Routes" headings={["route", { number: "weight" }, "written at"]}>
          {listed.map(({ key, name, rule, weight, origin }, index) => (
            <tr key={`${key} ${index}`}>
              <td>
                <a href={routeHash(key)}>{name}</a> <span class="quiet">{rule}</span>
              </td>
              <td class="number">{weight}</td>
              <td>{origin === undefined ? "" : <Origin origin={origin} />}</td>
            </tr>
          ))}
        </Table>
      )}
      {listed.length < total ? (
        <p class="quiet">
          The first {listed.length} of {total}.
        </p>
      ) : null}
    </section>
  );
}
