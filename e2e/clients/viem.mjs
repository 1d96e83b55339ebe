// viem: deploy, call, events over HTTP and WebSocket, transactions of types 0, 1, 2 and 4.
import {
  createPublicClient, createWalletClient, defineChain, encodeFunctionData, http, parseEther, webSocket, zeroAddress,
} from 'viem'
import { generatePrivateKey, mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'
import { MNEMONIC, endpoints, holds, main, refuses, same, suite, within } from './check.mjs'

const urls = endpoints()
const account = mnemonicToAccount(MNEMONIC, { addressIndex: 1 })

main('viem', async () => {
  const probe = createPublicClient({ transport: http(urls.http) })
  const id = await probe.getChainId()
  const chain = defineChain({
    id, name: 'cloister', nativeCurrency: { name: 'coin', symbol: 'COIN', decimals: 18 },
    rpcUrls: { default: { http: [urls.http], webSocket: [urls.ws] } },
  })
  const options = { chain, pollingInterval: 100, cacheTime: 0 }
  const reader = createPublicClient({ ...options, transport: http(urls.http) })
  const socket = createPublicClient({ ...options, transport: webSocket(urls.ws) })
  const wallet = createWalletClient({ ...options, account, transport: http(urls.http) })
  same('chain id over WebSocket', await socket.getChainId(), id)

  const mined = async (hash, type) => {
    const receipt = await reader.waitForTransactionReceipt({ hash, timeout: 60_000 })
    same('status', receipt.status, 'success')
    same('type of receipt', receipt.type, type)
    const transaction = await reader.getTransaction({ hash })
    same('type of transaction', transaction.type, type)
    same('block hash of transaction', transaction.blockHash, receipt.blockHash)
    const block = await reader.getBlock({ blockHash: receipt.blockHash })
    same('hash in block', block.transactions[receipt.transactionIndex], hash)
    holds('price covers base fee', receipt.effectiveGasPrice >= block.baseFeePerGas)
    return receipt
  }

  const { abi, bytecode } = suite.Counter
  const deployed = await mined(await wallet.deployContract({ abi, bytecode, args: [7n] }), 'eip1559')
  const address = deployed.contractAddress
  const counter = { address, abi }
  same('count after deployment', await reader.readContract({ ...counter, functionName: 'count' }), 7n)

  // Both subscriptions stand before the transactions whose events they must see.
  const seen = []
  let onAll, onHead
  const all = new Promise((resolve) => { onAll = resolve })
  const head = new Promise((resolve) => { onHead = resolve })
  const stopEvents = socket.watchContractEvent({
    ...counter, eventName: 'Incremented', onLogs: (logs) => { seen.push(...logs); if (seen.length >= 5) onAll() },
  })
  const stopHeads = socket.watchBlocks({ onBlock: (block) => onHead(block) })
  await new Promise((resolve) => setTimeout(resolve, 300))

  const increment = (amount) => ({ ...counter, functionName: 'increment', args: [amount] })
  const gasPrice = await reader.getGasPrice()
  const accessList = [{ address, storageKeys: [`0x${'00'.repeat(32)}`] }]
  const receipts = [
    await mined(await wallet.writeContract({ ...increment(1n), type: 'legacy', gasPrice: gasPrice * 2n }), 'legacy'),
    await mined(await wallet.writeContract({ ...increment(2n), type: 'eip2930', gasPrice: gasPrice * 2n, accessList }), 'eip2930'),
    await mined(await wallet.writeContract({ ...increment(3n), accessList }), 'eip1559'),
  ]

  // EIP-7702, self-sponsored: two calls in one transaction; then the delegation is taken back.
  const batch = await mined(await wallet.deployContract(suite.Batch), 'eip1559')
  const authorization = await wallet.signAuthorization({ contractAddress: batch.contractAddress, executor: 'self' })
  const call = (amount) => ({ to: address, value: 0n, data: encodeFunctionData({ abi, functionName: 'increment', args: [amount] }) })
  receipts.push(await mined(await wallet.writeContract({
    address: account.address, abi: suite.Batch.abi, functionName: 'run', args: [[call(4n), call(5n)]], authorizationList: [authorization],
  }), 'eip7702'))
  same('delegation', await reader.getCode({ address: account.address }), `0xef0100${batch.contractAddress.slice(2)}`)
  const clear = await wallet.signAuthorization({ contractAddress: zeroAddress, executor: 'self' })
  await mined(await wallet.sendTransaction({ to: zeroAddress, authorizationList: [clear] }), 'eip7702')
  same('code after the delegation was taken back', await reader.getCode({ address: account.address }), undefined)

  // EIP-7702, sponsored: the authority has no coins and never sent anything.
  const authority = privateKeyToAccount(generatePrivateKey())
  const sponsored = await authority.signAuthorization({ contractAddress: batch.contractAddress, chainId: id, nonce: 0 })
  await mined(await wallet.sendTransaction({ to: authority.address, value: parseEther('0.01'), authorizationList: [sponsored] }), 'eip7702')
  same('nonce of authority', await reader.getTransactionCount({ address: authority.address }), 1)
  same('balance of authority', await reader.getBalance({ address: authority.address }), parseEther('0.01'))

  // Events: the subscription's entries are getLogs' entries, field for field.
  await within(30, 'five events over WebSocket', all)
  same('new head over WebSocket has a hash', typeof (await within(30, 'new head', head)).hash, 'string')
  stopEvents()
  stopHeads()
  const logs = await reader.getContractEvents({ ...counter, eventName: 'Incremented', fromBlock: deployed.blockNumber })
  same('amounts', logs.map((log) => log.args.amount), [1n, 2n, 3n, 4n, 5n])
  same('counts', logs.map((log) => log.args.count), [8n, 10n, 13n, 17n, 22n])
  same('subscription and getLogs', seen.map(entry), logs.map(entry))
  same('receipts and getLogs', receipts.flatMap((receipt) => receipt.logs).map(entry), logs.map(entry))
  const filtered = await socket.getContractEvents({ ...counter, eventName: 'Incremented', args: { amount: 3n }, fromBlock: 0n })
  same('filter by topic over WebSocket', filtered.map(entry), [entry(logs[2])])

  same('state at an old block', await reader.readContract({ ...counter, functionName: 'count', blockNumber: receipts[0].blockNumber }), 8n)
  const overridden = await reader.readContract({
    ...counter, functionName: 'count', stateOverride: [{ address, stateDiff: [{ slot: `0x${'00'.repeat(32)}`, value: `0x${'00'.repeat(31)}2a` }] }],
  })
  same('state override', overridden, 42n)
  await refuses('reason of a revert', reader.simulateContract({ ...increment(0n), account }), /amount is zero/)
  const custom = await refuses('custom error', reader.simulateContract({ ...increment(101n), account }), /TooLarge/)
  same('arguments of the custom error', custom.walk((e) => e.data?.errorName)?.data.args, [101n, 100n])
  const proof = await reader.getProof({ address, storageKeys: [`0x${'00'.repeat(32)}`] })
  same('value in proof', proof.storageProof[0].value, 22n)
  const fees = await reader.estimateFeesPerGas()
  holds('fees estimated', fees.maxFeePerGas >= 0n)
  return 'deployed, called, types 0, 1, 2, 4, events over HTTP and WebSocket'
})

function entry({ address, topics, data, blockNumber, blockHash, transactionHash, transactionIndex, logIndex }) {
  return { address, topics, data, blockNumber, blockHash, transactionHash, transactionIndex, logIndex }
}
