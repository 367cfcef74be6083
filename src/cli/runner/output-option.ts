/** `-o, --output` of a command, which adds its formats. */
export const OUTPUT_OPTION = {
  type: "text",
  short: "o",
  value: "format",
  invalid: (value: string) => `output format "${value}" not supported`,
} as const;
