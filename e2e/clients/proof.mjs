// Verifies eth_getProof answers with a trie that is not ours. Standard input: [{ block, proof, expect }], block as
// eth_getBlockByNumber gives it, proof as eth_getProof does, expect: "account" or "absent". One line for each; exit 1 at the first fault.
import { readFileSync } from 'node:fs'
import { verifyMerkleProof } from '@ethereumjs/mpt'
import { RLP } from '@ethereumjs/rlp'
import { hexToBytes, keccak256, toRlp } from 'viem'
import { same } from './check.mjs'

const EMPTY_CODE = keccak256('0x')
const EMPTY_ROOT = keccak256('0x80')
const bytes = (hex) => hexToBytes(hex)
const hex = (value) => `0x${Buffer.from(value).toString('hex')}`
const minimal = (quantity) => {
  const digits = BigInt(quantity).toString(16)
  return BigInt(quantity) === 0n ? '0x' : `0x${digits.length % 2 ? '0' : ''}${digits}`
}

/** Fields of an Osaka header in the order of its RLP. */
function headerHash(b) {
  return keccak256(toRlp([
    b.parentHash, b.sha3Uncles, b.miner, b.stateRoot, b.transactionsRoot, b.receiptsRoot, b.logsBloom, minimal(b.difficulty),
    minimal(b.number), minimal(b.gasLimit), minimal(b.gasUsed), minimal(b.timestamp), b.extraData, b.mixHash, b.nonce,
    minimal(b.baseFeePerGas), b.withdrawalsRoot, minimal(b.blobGasUsed), minimal(b.excessBlobGas), b.parentBeaconBlockRoot, b.requestsHash,
  ]))
}

async function proven(root, key, nodes) {
  if (root === EMPTY_ROOT && nodes.length === 0) return null
  return verifyMerkleProof(bytes(key), nodes.map(bytes), { root: bytes(root), useKeyHashing: true })
}

for (const { block, proof, expect } of JSON.parse(readFileSync(0, 'utf8'))) {
  same('block hash', headerHash(block), block.hash)
  const leaf = await proven(block.stateRoot, proof.address, proof.accountProof)
  if (expect === 'absent') {
    same('absent account', leaf, null)
    same('balance of an absent account', BigInt(proof.balance), 0n)
  } else {
    const [nonce, balance, storageRoot, codeHash] = RLP.decode(leaf).map(hex)
    same('nonce', nonce, minimal(proof.nonce))
    same('balance', balance, minimal(proof.balance))
    same('storage root', storageRoot, proof.storageHash)
    same('code hash', codeHash, proof.codeHash ?? EMPTY_CODE)
  }
  for (const { key, value, proof: nodes } of proof.storageProof) {
    const slot = `0x${BigInt(key).toString(16).padStart(64, '0')}`
    const stored = expect === 'absent' ? null : await proven(proof.storageHash, slot, nodes)
    same(`slot ${key}`, stored === null ? 0n : BigInt(hex(RLP.decode(stored))), BigInt(value))
  }
  console.log(`verified ${proof.address} at block ${Number(block.number)}: ${expect}`)
}
