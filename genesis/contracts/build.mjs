// Compiles the system contracts to the checked-in artifacts: `node build.mjs`, or `node build.mjs --check` to compare.
// Needs `npm install` in this folder; NODE_PATH or CLOISTER_SOLC may name another place that holds solc 0.8.30.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = dirname(fileURLToPath(import.meta.url));
const contracts = ["ValidatorRegistry"];
const settings = {
  // Shanghai: the oldest rules a network may choose.
  evmVersion: "shanghai",
  optimizer: { enabled: true, runs: 200 },
  // No metadata hash: the bytes depend on the source and the compiler alone.
  metadata: { bytecodeHash: "none", appendCBOR: false },
  outputSelection: { "*": { "*": ["abi", "evm.deployedBytecode.object", "storageLayout"] } },
};

const require = createRequire(import.meta.url);
const solc = require(process.env.CLOISTER_SOLC ?? "solc");
const wanted = JSON.parse(readFileSync(join(folder, "package.json"))).dependencies.solc;
if (!solc.version().startsWith(`${wanted}+`)) {
  console.error(`solc is ${solc.version()}, want ${wanted}: run npm install in ${folder}`);
  process.exit(1);
}

let differs = false;
for (const name of contracts) {
  const source = readFileSync(join(folder, `${name}.sol`), "utf8");
  const input = { language: "Solidity", sources: { [`${name}.sol`]: { content: source } }, settings };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  for (const problem of output.errors ?? []) console.error(problem.formattedMessage);
  if ((output.errors ?? []).length > 0) process.exit(1);
  const compiled = output.contracts[`${name}.sol`][name];
  const artifact = {
    contract: name,
    compiler: `solc ${solc.version()}`,
    evmVersion: settings.evmVersion,
    sourceSha256: createHash("sha256").update(source).digest("hex"),
    runtime: `0x${compiled.evm.deployedBytecode.object}`,
    storage: Object.fromEntries(compiled.storageLayout.storage.map((v) => [v.label, Number(v.slot)])),
    abi: compiled.abi,
  };
  const path = join(folder, `${name}.json`);
  const text = `${JSON.stringify(artifact, null, 1)}\n`;
  const same = existsSync(path) && readFileSync(path, "utf8") === text;
  if (process.argv.includes("--check")) {
    differs ||= !same;
    console.log(`${name}: ${same ? "as checked in" : "differs from the checked-in artifact"}`);
  } else {
    writeFileSync(path, text);
    console.log(`${name}: ${compiled.evm.deployedBytecode.object.length / 2} bytes${same ? "" : ", written"}`);
  }
}
process.exit(differs ? 1 : 0);
