import type { VNode } from "preact";
import type { EffectivePolicy, PlacedRoute, WrittenPolicy } from "../../src/admin/plane/answers.ts";
import { counted } from "../../src/base/counted.ts";
import { agoText, durationText } from "../../src/report/recorded.ts";
import { useAnswer } from "../answer.ts";
import { withTerm } from "../filter.ts";
import type { PageProps } from "../page.ts";
import { Origin } from "../parts/origin.tsx";
import { Problem } from "../parts/problem.tsx";
import { Table } from "../parts/table.tsx";
import { hashOf, routeHash } from "../place.ts";

/** One route: what it takes, where it sends that, and the policies in effect with where they are written. */
export function Route({ rest: key }: PageProps): VNode {
  const { answer, problem } = useAnswer("/routes/", { rest: key }, key);
  if (answer === undefined)
    return (
      <>
        <h1 aria-busy={problem === undefined}>Route {key}</h1>
        <Problem problem={problem} />
        <p>
          <a href={hashOf("/routes")}>All routes</a>
        </p>
      </>
    );
  const { places, since } = answer;
  const [first] = places.shown;
  return (
    <article>
      <h1>
        Route {first?.name} {first?.rule}
      </h1>
      {places.total === places.shown.length ? null : (
        <p>
          It is at {counted(places.total, "listener")}, of which {places.shown.length} are shown.
        </p>
      )}
      {places.shown.map((route, index) => (
        <Placed key={index} route={route} since={since} />
      ))}
    </article>
  );
}

interface PlacedProps {
  readonly route: PlacedRoute;
  readonly since: string;
}

function Placed({ route, since }: PlacedProps): VNode {
  const { bind, listener, group, position, shadowedBy, hostnames, matches, origin, parents = [] } = route;
  return (
    <section>
      {shadowedBy === undefined ? null : (
        <p class="problem" role="note">
          It is never chosen: {shadowedBy.join(", ")} takes all its requests.
        </p>
      )}
      <dl class="facts">
        <dt>{group === undefined ? "listener" : "group"}</dt>
        <dd>
          {group ?? `${listener} of ${bind}`}, which tries it as number {position}
        </dd>
        <dt>hosts</dt>
        <dd>{hostnames.join(", ")}</dd>
        {matches.length === 0 ? null : (
          <>
            <dt>matches</dt>
            <dd>
              {matches.map((match, index) => (
                <div key={index}>{match}</div>
              ))}
            </dd>
          </>
        )}
        {origin === undefined ? null : (
          <>
            <dt>written at</dt>
            <dd>
              <Origin origin={origin} />
            </dd>
          </>
        )}
        {matches.length === 0 ? null : (
          <>
            <dt>requests</dt>
            <dd>
              <Traffic route={route} since={since} />
            </dd>
          </>
        )}
      </dl>
      <Backends route={route} />
      <Policies route={route} />
      {parents.length === 0 ? null : (
        <p>
          Policies of the routes that delegate to the group run too, unless this route has its own of the kind:{" "}
          {parents.map(({ key, name, rule = "" }) => (
            <span key={key}>
              <a href={routeHash(key)}>
                {name} {rule}
              </a>{" "}
            </span>
          ))}
        </p>
      )}
    </section>
  );
}

function Traffic({ route, since }: PlacedProps): VNode {
  const { name, requests, errors, p50, p99, latest, countedTogether } = route;
  const where = withTerm("", "route", name);
  const from = since.slice(0, 16).replace("T", " ");
  if (requests === 0) return <>none since {from} UTC</>;
  return (
    <>
      <a href={hashOf("/requests", { where })}>{requests}</a> since {from} UTC
      {latest === undefined ? "" : `, the latest ${agoText(latest)} ago`}
      {" · "}
      {errors === 0 ? (
        "no errors"
      ) : (
        <a class="bad" href={hashOf("/requests", { where, errors: "true" })}>
          {counted(errors, "error")}
        </a>
      )}
      {p50 === undefined || p99 === undefined ? "" : ` · p50 ${durationText(p50)} · p99 ${durationText(p99)}`}
      {countedTogether === undefined ? null : (
        <div class="quiet">Of {countedTogether} routes together: metrics have the same labels for them.</div>
      )}
    </>
  );
}

function Backends({ route: { backends } }: { readonly route: PlacedRoute }): VNode {
  const total = backends.reduce((sum, { weight }) => sum + weight, 0);
  return (
    <section>
      <h2>Backends</h2>
      {backends.length === 0 ? <p class="quiet">None.</p> : null}
      <ul class="plain mono">
        {backends.map(({ name, weight, key }, index) => (
          <li key={index}>
            {key === undefined ? name : <a href={`#/backends/${encodeURIComponent(key)}`}>{name}</a>}
            {backends.length === 1 && weight > 0 ? null : (
              <span class="quiet">
                {" "}
                weight {weight}
                {total === 0 ? "" : `, ${Math.round((100 * weight) / total)} %`}
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** All phases in the order in which a request goes through them. */
function Policies({ route: { policies, backends, backendPolicies } }: { readonly route: PlacedRoute }): VNode {
  const phases: readonly (readonly [name: string, policies: readonly EffectivePolicy[]])[] = [
    ["gateway", policies.gateway ?? []],
    ["route", policies.route],
    ...backendPolicies.map((list, index) => [`backend ${backends[index]?.name}`, list] as const),
  ];
  const rows = phases.flatMap(([phase, list]) => list.map((policy) => ({ phase, policy })));
  return (
    <section>
      <h2>Policies in effect</h2>
      {rows.length === 0 ? (
        <p class="quiet">None.</p>
      ) : (
        <Table
          label="Policies in effect"
          headings={["phase", "policy", "runs on", "written at", "replaces", "configuration"]}
          class="policies"
        >
          {rows.map(({ phase, policy }, index) => (
            <Policy key={index} phase={phase === rows[index - 1]?.phase ? "" : phase} policy={policy} />
          ))}
        </Table>
      )}
    </section>
  );
}

interface PolicyProps {
  /** Empty: the same as in the row before. */
  readonly phase: string;
  readonly policy: EffectivePolicy;
}

function Policy({ phase, policy: { kind, shadow, runs, from, replaced, config } }: PolicyProps): VNode {
  return (
    <tr>
      <td>{phase}</td>
      <td>
        <a href={`#/policies/${kind}`}>{kind}</a>
        {shadow === true ? <span class="warn"> shadow</span> : null}
      </td>
      <td>{runs.length === 0 ? "connections" : runs.join(", ")}</td>
      <Written list={from} />
      <Written list={replaced} />
      <td>
        <details>
          <summary>show</summary>
          <pre>{JSON.stringify(config, undefined, 2)}</pre>
        </details>
      </td>
    </tr>
  );
}

function Written({ list }: { readonly list: readonly WrittenPolicy[] }): VNode {
  return (
    <td>
      {list.map(({ origin, attachedTo, rules }, index) => (
        <div key={index}>
          {attachedTo === undefined ? "" : `${attachedTo} `}
          <Origin origin={origin} />
          {rules === undefined ? "" : ` ${counted(rules, "rule")}`}
        </div>
      ))}
    </td>
  );
}
