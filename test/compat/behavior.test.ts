import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { TestGateway } from "../helpers/gateway.ts";

/** Fields whose acceptance alone says nothing about what they do. */
suite("the meaning of accepted fields", () => {
  let gateway: TestGateway;
  before(async () => {
    const text = (body: string) => ({ directResponse: { status: 200, body } });
    const routes = [
      { name: "never", matches: [{ path: "invalid" }], policies: text("never") },
      { name: "broken", matches: [{ path: { exact: "/broken" } }], backends: [{ invalid: {} }] },
      { name: "null-policies", matches: [{ path: { exact: "/null" } }], policies: null, backends: [] },
      { name: "rest", matches: [{ path: {}, method: "GET" }], policies: text("rest") },
    ];
    gateway = await TestGateway.start({
      binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes }] }],
      config: {
        session: { key: "00" },
        logging: { filter: 'request.path != "/quiet"', fields: { add: { who: '"me"' } } },
      },
    });
  });
  after(() => gateway.stop());

  const ask = async (path: string): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`);
    return `${response.status} ${await response.text()}`;
  };

  test("an invalid match matches no request, one with an empty path every request", async () => {
    assert.equal(await ask("/anything"), "200 rest");
  });

  test("an invalid backend is an error of the gateway; null policies count as absent", async () => {
    assert.equal(await ask("/broken"), "500 backend does not exist");
    assert.equal(await ask("/null"), "500 no valid backends");
  });

  test("filter and fields of the log in their former place apply to the access log, with a warning", async () => {
    await ask("/quiet");
    await ask("/loud");
    const line = () => gateway.lines.find((each) => each["http.path"] === "/loud");
    await gateway.until(() => line() !== undefined, "the access log");
    assert.equal(line()?.who, "me");
    assert.equal(
      gateway.lines.some((each) => each["http.path"] === "/quiet"),
      false,
    );
    const warnings = gateway.lines.filter((each) => each.level === "warn").map((each) => String(each.message));
    for (const field of ["config.session", "config.logging.filter", "config.logging.fields"])
      assert.ok(
        warnings.some((warning) => warning.includes(`${field}: `)),
        field,
      );
  });
});
