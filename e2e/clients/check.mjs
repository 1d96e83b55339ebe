// What the JavaScript suites share: the contract suite, accounts, checks that name what they compare.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

export const suite = JSON.parse(readFileSync(new URL('contracts/suite.json', import.meta.url), 'utf8'))
export const MNEMONIC = 'test test test test test test test test test test test junk'
export const ZERO_ADDRESS = '0x0000000000000000000000000000000000000000'

/** HTTP and WebSocket addresses from the command line. */
export function endpoints() {
  const [http, ws] = process.argv.slice(2)
  if (!http || !ws) {
    console.error('usage: node SUITE.mjs http://HOST:PORT ws://HOST:PORT')
    process.exit(2)
  }
  return { http, ws }
}

/** Deep equality under a name; addresses and hashes compare without case. */
export function same(name, got, want) {
  assert.deepEqual(plain(got), plain(want), `${name}: got ${show(got)}, want ${show(want)}`)
}

export function holds(name, condition) {
  assert.ok(condition, name)
}

/** Fails unless the promise rejects with a message that matches. */
export async function refuses(name, promise, pattern) {
  let value
  try {
    value = await promise
  } catch (error) {
    const text = [error.message, error.shortMessage, error.details, error.cause?.message].join('\n')
    assert.match(text, pattern, name)
    return error
  }
  assert.fail(`${name}: accepted with ${show(value)}`)
}

/** The promise's value, or an error that names it after the time. */
export function within(seconds, name, promise) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${name}: nothing within ${seconds} s`)), seconds * 1000)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Runs the suite, prints one line, exits with its outcome: open sockets do not hold the process. */
export async function main(name, run) {
  try {
    const steps = await run()
    console.log(`ok ${name}: ${steps}`)
    process.exit(0)
  } catch (error) {
    console.error(`FAILED ${name}: ${error.stack ?? error}`)
    process.exit(1)
  }
}

function plain(value) {
  if (typeof value === 'string') return /^0x[0-9a-fA-F]*$/.test(value) ? value.toLowerCase() : value
  if (Array.isArray(value)) return value.map(plain)
  if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]))
  return value
}

function show(value) {
  return JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? `${v}n` : v))
}
