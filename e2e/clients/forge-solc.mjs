// The npm Solidity compiler with the command line that forge expects of solc: --version and --standard-json.
import { readFileSync } from 'node:fs'
import solc from 'solc'

if (process.argv.includes('--version')) {
  console.log(`solc, the solidity compiler commandline interface\nVersion: ${solc.version().replace('Emscripten.clang', 'Linux.g++')}`)
} else {
  process.stdout.write(solc.compile(readFileSync(0, 'utf8')))
}
