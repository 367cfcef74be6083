/** An error of the command line, the configuration or the machine: its message says what to change, and no stack is printed. */
export class ExpectedError extends Error {
  readonly exitCode: number = 1;
}
