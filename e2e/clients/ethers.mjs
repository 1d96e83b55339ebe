// ethers v6: deploy, call, events over HTTP and WebSocket, transactions of types 0, 1, 2 and 4.
import {
  Contract, ContractFactory, HDNodeWallet, Interface, JsonRpcProvider, Mnemonic, NonceManager, Wallet, WebSocketProvider, ZeroAddress,
} from 'ethers'
import { MNEMONIC, endpoints, holds, main, refuses, same, suite, within } from './check.mjs'

const urls = endpoints()

main('ethers', async () => {
  const reader = new JsonRpcProvider(urls.http, undefined, { pollingInterval: 100, cacheTimeout: -1 })
  const socket = new WebSocketProvider(urls.ws)
  const network = await reader.getNetwork()
  same('chain id over WebSocket', (await socket.getNetwork()).chainId, network.chainId)
  const wallet = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(MNEMONIC), "m/44'/60'/0'/0/2").connect(reader)

  const mined = async (response, type) => {
    const receipt = await response.wait(1, 60_000)
    same('status', receipt.status, 1)
    same('type of receipt', receipt.type, type)
    const transaction = await reader.getTransaction(receipt.hash)
    same('type of transaction', transaction.type, type)
    same('signer', transaction.from, wallet.address)
    const block = await reader.getBlock(receipt.blockHash)
    same('hash in block', block.transactions[receipt.index], receipt.hash)
    return receipt
  }

  const factory = new ContractFactory(suite.Counter.abi, suite.Counter.bytecode, wallet)
  const deployment = await factory.deploy(7n)
  const deployed = await mined(deployment.deploymentTransaction(), 2)
  const address = deployed.contractAddress
  const counter = new Contract(address, suite.Counter.abi, wallet)
  same('count after deployment', await counter.count(), 7n)

  const seen = []
  const watched = new Contract(address, suite.Counter.abi, socket)
  const all = new Promise((resolve) => {
    watched.on('Incremented', (by, amount, count, event) => {
      seen.push(event.log)
      if (seen.length >= 5) resolve()
    })
  })
  const head = new Promise((resolve) => socket.once('block', resolve))
  await new Promise((resolve) => setTimeout(resolve, 300))

  const { gasPrice } = await reader.getFeeData()
  const accessList = [{ address, storageKeys: [`0x${'00'.repeat(32)}`] }]
  const receipts = [
    await mined(await counter.increment(1n, { type: 0, gasPrice: gasPrice * 2n }), 0),
    await mined(await counter.increment(2n, { type: 1, gasPrice: gasPrice * 2n, accessList }), 1),
    await mined(await counter.increment(3n, { type: 2, accessList }), 2),
  ]

  const batch = await new ContractFactory(suite.Batch.abi, suite.Batch.bytecode, wallet).deploy()
  const batchAddress = (await mined(batch.deploymentTransaction(), 2)).contractAddress
  const call = (amount) => ({ to: address, value: 0n, data: counter.interface.encodeFunctionData('increment', [amount]) })
  const run = new Interface(suite.Batch.abi).encodeFunctionData('run', [[call(4n), call(5n)]])
  const authorise = async (target) => {
    const nonce = await wallet.getNonce('pending')
    // The sender's own nonce is raised before its authorisation is looked at.
    return wallet.authorize({ address: target, nonce: nonce + 1, chainId: network.chainId })
  }
  receipts.push(await mined(await wallet.sendTransaction({
    type: 4, to: wallet.address, data: run, authorizationList: [await authorise(batchAddress)],
  }), 4))
  same('delegation', await reader.getCode(wallet.address), `0xef0100${batchAddress.slice(2)}`)
  await mined(await wallet.sendTransaction({ type: 4, to: ZeroAddress, authorizationList: [await authorise(ZeroAddress)] }), 4)
  same('code after the delegation was taken back', await reader.getCode(wallet.address), '0x')
  const authority = Wallet.createRandom()
  const sponsored = await authority.authorize({ address: batchAddress, nonce: 0, chainId: 0n })
  await mined(await wallet.sendTransaction({ type: 4, to: authority.address, value: 5n, authorizationList: [sponsored] }), 4)
  same('delegation valid on any chain', await reader.getCode(authority.address), `0xef0100${batchAddress.slice(2)}`)
  same('balance of authority', await reader.getBalance(authority.address), 5n)

  await within(30, 'five events over WebSocket', all)
  holds('new head over WebSocket', (await within(30, 'new head', head)) > 0)
  await watched.removeAllListeners()
  const logs = await counter.queryFilter('Incremented', deployed.blockNumber)
  same('amounts', logs.map((log) => log.args.amount), [1n, 2n, 3n, 4n, 5n])
  same('counts', logs.map((log) => log.args.count), [8n, 10n, 13n, 17n, 22n])
  same('subscription and getLogs', seen.map(entry), logs.map(entry))
  same('receipts and getLogs', receipts.flatMap((receipt) => receipt.logs).map(entry), logs.map(entry))
  const filtered = await watched.queryFilter(watched.filters.Incremented(null, 3n), 0)
  same('filter by topic over WebSocket', filtered.map(entry), [entry(logs[2])])

  same('state at an old block', await counter.count({ blockTag: receipts[0].blockNumber }), 8n)
  await refuses('reason of a revert', counter.increment.staticCall(0n), /amount is zero/)
  const custom = await refuses('custom error', counter.increment.staticCall(101n), /TooLarge/)
  same('arguments of the custom error', [...custom.revert.args], [101n, 100n])
  const poor = Wallet.createRandom().connect(reader)
  const unfunded = await refuses('an empty account', poor.sendTransaction({ to: ZeroAddress, value: 1n }), /insufficient funds/)
  same('error code that ethers reads from the message', unfunded.code, 'INSUFFICIENT_FUNDS')
  const populated = await wallet.populateTransaction({ to: ZeroAddress, value: 1n, nonce: 0 })
  const stale = await refuses('a used nonce', reader.broadcastTransaction(await wallet.signTransaction(populated)), /nonce/)
  same('error code for a used nonce', stale.code, 'NONCE_EXPIRED')

  // Several at once, without waiting in between.
  const manager = new NonceManager(wallet)
  const heir = Wallet.createRandom().address
  const burst = await Promise.all([1, 2, 3, 4, 5].map((value) => manager.sendTransaction({ to: heir, value })))
  for (const response of burst) same('status in a burst', (await response.wait(1, 60_000)).status, 1)
  return 'deployed, called, types 0, 1, 2, 4, events over HTTP and WebSocket'
})

function entry({ address, topics, data, blockNumber, blockHash, transactionHash, transactionIndex, index }) {
  return { address, topics: [...topics], data, blockNumber, blockHash, transactionHash, transactionIndex, index }
}
