// cast and forge: deploy, call, events over HTTP and WebSocket, transactions of types 0, 1, 2 and 4.
// usage: node foundry.mjs cast|forge http://HOST:PORT ws://HOST:PORT
import { execFile, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync, chmodSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ZERO_ADDRESS, holds, main, refuses, same, suite, within } from './check.mjs'

const tool = process.argv[2]
const [http, ws] = process.argv.slice(3)
if (!['cast', 'forge'].includes(tool) || !ws) {
  console.error('usage: node foundry.mjs cast|forge http://HOST:PORT ws://HOST:PORT')
  process.exit(2)
}

// Keys 4 and 5 of the well-known test mnemonic.
const KEYS = {
  cast: '0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a',
  forge: '0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba',
}
const ADDRESSES = {
  cast: '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65',
  forge: '0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc',
}
const key = KEYS[tool]
const sender = ADDRESSES[tool]

// The npm packages hold the binaries themselves; nothing is downloaded when they run.
const require = createRequire(import.meta.url)
function binary(name) {
  const arch = { x64: 'amd64', arm64: 'arm64' }[process.arch]
  return require.resolve(`@foundry-rs/${name}-${process.platform}-${arch}/bin/${name}`)
}
const execute = promisify(execFile)
const environment = { ...process.env, FOUNDRY_DISABLE_NIGHTLY_WARNING: '1', FOUNDRY_OFFLINE: 'true', NO_COLOR: '1', HOME: mkdtempSync(join(tmpdir(), 'cloister-foundry-home-')) }

async function run(name, args, options = {}) {
  const { stdout } = await execute(binary(name), args, { env: environment, timeout: 120_000, maxBuffer: 64 << 20, ...options })
  return stdout.trim()
}
const cast = (...args) => run('cast', args)
const rpc = async (method, ...params) => JSON.parse(await cast('rpc', '--rpc-url', http, method, ...params.map((p) => JSON.stringify(p))))
const number = (text) => BigInt(text.split(' ')[0])

async function receiptIs(receipt, type) {
  same('status', BigInt(receipt.status), 1n)
  same('type of receipt', BigInt(receipt.type ?? 0), BigInt(type))
  const transaction = await rpc('eth_getTransactionByHash', receipt.transactionHash)
  same('type of transaction', BigInt(transaction.type), BigInt(type))
  same('signer', transaction.from, sender)
  const block = await rpc('eth_getBlockByHash', receipt.blockHash, false)
  same('hash in block', block.transactions[Number(receipt.transactionIndex)], receipt.transactionHash)
  return receipt
}

async function castSuite() {
  same('chain id over WebSocket', await cast('chain-id', '--rpc-url', ws), await cast('chain-id', '--rpc-url', http))
  const signed = ['--rpc-url', http, '--private-key', key, '--json', '--poll-interval', '1']
  const send = async (type, ...args) => receiptIs(JSON.parse(await cast('send', ...signed, ...args)), type)

  const start = (await cast('abi-encode', 'f(uint256)', '7')).slice(2)
  const deployed = await send(2, '--create', suite.Counter.bytecode + start)
  const counter = deployed.contractAddress
  same('count after deployment', number(await cast('call', '--rpc-url', http, counter, 'count()(uint256)')), 7n)

  const subscription = spawn(binary('cast'), ['logs', '--rpc-url', ws, '--subscribe', '--json', '--address', counter], { env: environment })
  let streamed = ''
  subscription.stdout.on('data', (chunk) => { streamed += chunk })
  const ended = new Promise((resolve) => subscription.on('exit', resolve))
  await new Promise((resolve) => setTimeout(resolve, 1_000))

  const increment = (amount) => [counter, 'increment(uint256)', `${amount}`]
  const slot = `0x${'00'.repeat(32)}`
  const list = JSON.stringify([{ address: counter, storageKeys: [slot] }])
  const receipts = [
    await send(0, '--legacy', ...increment(1)),
    await send(1, '--legacy', '--access-list', list, ...increment(2)),
    await send(2, '--access-list', list, ...increment(3)),
  ]
  const batch = (await send(2, '--create', suite.Batch.bytecode)).contractAddress
  const data = async (amount) => cast('calldata', 'increment(uint256)', `${amount}`)
  const calls = `[(${counter},0,${await data(4)}),(${counter},0,${await data(5)})]`
  receipts.push(await send(4, '--auth', batch, sender, 'run((address,uint256,bytes)[])', calls))
  same('delegation', await cast('code', '--rpc-url', http, sender), `0xef0100${batch.slice(2)}`)
  await send(4, '--auth', ZERO_ADDRESS, ZERO_ADDRESS)
  same('code after the delegation was taken back', await cast('code', '--rpc-url', http, sender), '0x')

  // cast holds back what it has streamed until it is interrupted.
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  subscription.kill('SIGINT')
  await within(10, 'the end of cast logs --subscribe', ended)
  const logs = JSON.parse(await cast('logs', '--rpc-url', http, '--json', '--address', counter, '--from-block', '0', 'Incremented(address,uint256,uint256)'))
  same('amounts', logs.map((log) => BigInt(log.topics[2])), [1n, 2n, 3n, 4n, 5n])
  same('counts', logs.map((log) => BigInt(log.data)), [8n, 10n, 13n, 17n, 22n])
  same('subscription and getLogs', jsonValues(streamed).map(entry), logs.map(entry))
  same('receipts and getLogs', receipts.flatMap((receipt) => receipt.logs).map(entry), logs.map(entry))
  const overSocket = JSON.parse(await cast('logs', '--rpc-url', ws, '--json', '--address', counter, '--from-block', '0'))
  same('getLogs over WebSocket', overSocket.map(entry), logs.map(entry))

  const old = await cast('call', '--rpc-url', http, '--block', `${Number(receipts[0].blockNumber)}`, counter, 'count()(uint256)')
  same('state at an old block', number(old), 8n)
  await refuses('reason of a revert', cast('call', '--rpc-url', http, ...increment(0)), /amount is zero/)
  await refuses('custom error', cast('call', '--rpc-url', http, ...increment(101)), /TooLarge|custom error|execution reverted/)
  const proof = JSON.parse(await cast('proof', '--rpc-url', http, counter, slot))
  same('value in proof', BigInt(proof.storageProof[0].value), 22n)
  holds('estimate', number(await cast('estimate', '--rpc-url', http, '--from', sender, ...increment(1))) > 21_000n)
  const made = JSON.parse(await cast('access-list', '--rpc-url', http, '--json', ...increment(1)))
  same('created access list', made.accessList[0].address, counter)
  const block = JSON.parse(await cast('block', '--rpc-url', http, '--json', 'latest'))
  holds('block hash', /^0x[0-9a-f]{64}$/.test(block.hash))
}

async function forgeSuite() {
  const folder = mkdtempSync(join(tmpdir(), 'cloister-forge-'))
  try {
    cpSync(new URL('forge', import.meta.url).pathname, folder, { recursive: true })
    cpSync(new URL('contracts/Suite.sol', import.meta.url).pathname, join(folder, 'src', 'Suite.sol'))
    // The compiler that foundry.toml names.
    const compiler = join(folder, 'solc')
    writeFileSync(compiler, `#!/bin/sh\nexec '${process.execPath}' '${new URL('forge-solc.mjs', import.meta.url).pathname}' "$@"\n`)
    chmodSync(compiler, 0o755)
    const forge = (...args) => run('forge', args, { cwd: folder })
    await forge('build')
    const signed = ['--rpc-url', http, '--private-key', key, '--broadcast']
    const create = async (type, contract, ...args) => {
      const made = JSON.parse(lastObject(await forge('create', `src/Suite.sol:${contract}`, ...signed, '--json', ...args)))
      await receiptIs(await rpc('eth_getTransactionReceipt', made.transactionHash), type)
      return made.deployedTo
    }
    const counter = await create(2, 'Counter', '--constructor-args', '7')
    await create(0, 'Counter', '--legacy', '--constructor-args', '8')
    await create(1, 'Counter', '--legacy', '--access-list', '[]', '--constructor-args', '9')
    const batch = await create(2, 'Batch')

    const script = async (contract, url, ...args) => {
      const output = await forge('script', `script/Suite.s.sol:${contract}`, '--rpc-url', url, '--private-key', key, '--slow', '--broadcast', '--non-interactive', '--sender', sender, ...args)
      holds(`${contract} complete`, /ONCHAIN EXECUTION COMPLETE/.test(output))
      const chain = Number(await cast('chain-id', '--rpc-url', http))
      const run = JSON.parse(readFileSync(join(folder, 'broadcast', 'Suite.s.sol', `${chain}`, 'run-latest.json'), 'utf8'))
      for (const receipt of run.receipts) await receiptIs(receipt, BigInt(receipt.type))
      return run.receipts
    }
    environment.COUNTER = counter
    environment.BATCH = batch
    environment.SENDER_KEY = key
    same('types of a script over HTTP', (await script('Increment', http)).map((r) => BigInt(r.type)), [2n, 2n])
    same('types of a legacy script over WebSocket', (await script('Increment', ws, '--legacy')).map((r) => BigInt(r.type)), [0n, 0n])
    const delegated = await script('Delegate', http)
    holds('a script sends type 4', delegated.some((receipt) => BigInt(receipt.type) === 4n))
    same('delegation', await cast('code', '--rpc-url', http, sender), `0xef0100${batch.slice(2)}`)
    await script('Undelegate', http)
    same('code after the delegation was taken back', await cast('code', '--rpc-url', http, sender), '0x')
    // 7 + 2 * (1 + 2) from the scripts, 4 + 5 from the batch.
    same('count', number(await cast('call', '--rpc-url', http, counter, 'count()(uint256)')), 22n)
    for (const [name, url] of Object.entries({ HTTP: http, WebSocket: ws })) {
      environment.FORK_URL = url
      const tested = await forge('test', '--fork-url', url, '-vv')
      holds(`forge test reads state and events over ${name}: ${tested}`, /2 tests passed, 0 failed/.test(tested))
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The JSON values of a stream in which they follow one another. */
function jsonValues(text) {
  const values = []
  let depth = 0
  let from = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const c = text[at]
    if (quoted) {
      if (c === '\\') at++
      else if (c === '"') quoted = false
    } else if (c === '"') quoted = true
    else if (c === '{' || c === '[') { if (depth++ === 0) from = at }
    else if ((c === '}' || c === ']') && --depth === 0) values.push(JSON.parse(text.slice(from, at + 1)))
  }
  return values.flat()
}

function lastObject(text) {
  return text.slice(text.lastIndexOf('\n{') + 1)
}

function entry({ address, topics, data, blockNumber, blockHash, transactionHash, transactionIndex, logIndex }) {
  return { address, topics, data, blockNumber: BigInt(blockNumber), blockHash, transactionHash, transactionIndex: BigInt(transactionIndex), logIndex: BigInt(logIndex) }
}

main(tool, async () => {
  await (tool === 'cast' ? castSuite() : forgeSuite())
  return 'deployed, called, types 0, 1, 2, 4, events over HTTP and WebSocket'
})
