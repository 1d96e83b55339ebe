// Compiles Suite.sol into suite.json (ABI and bytecode, checked in): npm run compile, in e2e/clients.
import { readFileSync, writeFileSync } from 'node:fs'
import solc from 'solc'

const folder = new URL('.', import.meta.url)
const input = {
  language: 'Solidity',
  sources: { 'Suite.sol': { content: readFileSync(new URL('Suite.sol', folder), 'utf8') } },
  settings: {
    evmVersion: 'prague',
    optimizer: { enabled: true, runs: 200 },
    metadata: { bytecodeHash: 'none', appendCBOR: false },
    outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
  },
}
const output = JSON.parse(solc.compile(JSON.stringify(input)))
for (const problem of output.errors ?? []) {
  if (problem.severity === 'error' || !problem.message.includes('selfdestruct')) console.error(problem.formattedMessage)
}
const contracts = {}
for (const [name, contract] of Object.entries(output.contracts['Suite.sol']).sort()) {
  contracts[name] = { abi: contract.abi, bytecode: `0x${contract.evm.bytecode.object}` }
}
writeFileSync(new URL('suite.json', folder), `${JSON.stringify(contracts, null, 1)}\n`)
console.log(`compiled ${Object.keys(contracts).join(', ')} with solc ${solc.version()}`)
