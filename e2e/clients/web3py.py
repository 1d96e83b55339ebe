"""web3.py: deploy, call, events over HTTP and WebSocket, transactions of types 0, 1, 2 and 4.

usage: python web3py.py http://HOST:PORT ws://HOST:PORT
"""

import asyncio
import json
import sys
from pathlib import Path

from eth_account import Account
from web3 import AsyncWeb3, Web3, WebSocketProvider
from web3.exceptions import ContractCustomError, ContractLogicError, Web3RPCError

MNEMONIC = "test test test test test test test test test test test junk"
ZERO_ADDRESS = "0x" + "00" * 20
ZERO_SLOT = "0x" + "00" * 32
SUITE = json.loads((Path(__file__).parent / "contracts" / "suite.json").read_text())


def same(name, got, want):
    assert got == want, f"{name}: got {got!r}, want {want!r}"


def entry(log):
    keys = ("address", "topics", "data", "blockNumber", "blockHash", "transactionHash", "transactionIndex", "logIndex")
    return {key: log[key] for key in keys}


async def run(http, ws):
    w3 = Web3(Web3.HTTPProvider(http))
    Account.enable_unaudited_hdwallet_features()
    account = Account.from_mnemonic(MNEMONIC, account_path="m/44'/60'/0'/0/3")
    chain_id = w3.eth.chain_id

    def mined(fields, kind):
        """Signs, sends, waits; checks that receipt, transaction and block agree."""
        transaction = {
            "from": account.address,
            "chainId": chain_id,
            "nonce": w3.eth.get_transaction_count(account.address, "pending"),
            **fields,
        }
        if kind in (2, 4):
            base = w3.eth.get_block("latest")["baseFeePerGas"]
            transaction["maxPriorityFeePerGas"] = w3.eth.max_priority_fee
            transaction["maxFeePerGas"] = 2 * base + transaction["maxPriorityFeePerGas"]
        else:
            transaction["gasPrice"] = 2 * w3.eth.gas_price
        if kind:
            transaction["type"] = kind
        transaction["gas"] = w3.eth.estimate_gas(
            {key: value for key, value in transaction.items() if key != "authorizationList"}
        ) + (100_000 if kind == 4 else 0)
        signed = account.sign_transaction(transaction)
        receipt = w3.eth.wait_for_transaction_receipt(
            w3.eth.send_raw_transaction(signed.raw_transaction), timeout=60, poll_latency=0.1
        )
        same("status", receipt["status"], 1)
        same("type of receipt", receipt["type"], kind)
        sent = w3.eth.get_transaction(receipt["transactionHash"])
        same("type of transaction", sent["type"], kind)
        same("signer", sent["from"], account.address)
        block = w3.eth.get_block(receipt["blockHash"])
        same("hash in block", block["transactions"][receipt["transactionIndex"]], receipt["transactionHash"])
        same("logs in receipt", all(log["blockHash"] == block["hash"] for log in receipt["logs"]), True)
        return receipt

    factory = w3.eth.contract(abi=SUITE["Counter"]["abi"], bytecode=SUITE["Counter"]["bytecode"])
    deployed = mined({"data": factory.constructor(7).data_in_transaction}, 2)
    address = deployed["contractAddress"]
    counter = w3.eth.contract(address=address, abi=SUITE["Counter"]["abi"])
    same("count after deployment", counter.functions.count().call(), 7)

    def increment(amount):
        return {"to": address, "data": counter.encode_abi("increment", [amount])}

    async with AsyncWeb3(WebSocketProvider(ws)) as socket:
        same("chain id over WebSocket", await socket.eth.chain_id, chain_id)
        await socket.eth.subscribe("logs", {"address": address})
        heads = await socket.eth.subscribe("newHeads")

        access_list = [{"address": address, "storageKeys": [ZERO_SLOT]}]
        receipts = [
            mined(increment(1), 0),
            mined({**increment(2), "accessList": access_list}, 1),
            mined({**increment(3), "accessList": access_list}, 2),
        ]

        batch_factory = w3.eth.contract(abi=SUITE["Batch"]["abi"], bytecode=SUITE["Batch"]["bytecode"])
        batch = mined({"data": batch_factory.constructor().data_in_transaction}, 2)["contractAddress"]

        def authorise(target, signer=account, nonce=None):
            if nonce is None:
                # The sender's own nonce is raised before its authorisation is looked at.
                nonce = w3.eth.get_transaction_count(account.address, "pending") + 1
            return [signer.sign_authorization({"chainId": chain_id, "address": target, "nonce": nonce})]

        calls = [(address, 0, counter.encode_abi("increment", [amount])) for amount in (4, 5)]
        mined({"to": account.address, "value": 0, "authorizationList": authorise(batch)}, 4)
        same("delegation", w3.eth.get_code(account.address).hex(), "ef0100" + batch[2:].lower())
        delegated = w3.eth.contract(address=account.address, abi=SUITE["Batch"]["abi"])
        receipts.append(mined({"to": account.address, "data": delegated.encode_abi("run", [calls])}, 2))
        mined({"to": ZERO_ADDRESS, "value": 0, "authorizationList": authorise(ZERO_ADDRESS)}, 4)
        same("code after the delegation was taken back", w3.eth.get_code(account.address).hex(), "")
        authority = Account.create()
        mined({"to": authority.address, "value": 5, "authorizationList": authorise(batch, authority, 0)}, 4)
        same("nonce of authority", w3.eth.get_transaction_count(authority.address), 1)
        same("balance of authority", w3.eth.get_balance(authority.address), 5)

        events = counter.events.Incremented().get_logs(from_block=deployed["blockNumber"])
        same("amounts", [event["args"]["amount"] for event in events], [1, 2, 3, 4, 5])
        same("counts", [event["args"]["count"] for event in events], [8, 10, 13, 17, 22])
        logs = w3.eth.get_logs({"address": address, "fromBlock": deployed["blockNumber"]})
        same("receipts and getLogs", [entry(log) for receipt in receipts for log in receipt["logs"]], [entry(log) for log in logs])
        seen, new_heads = [], []

        async def listen():
            async for message in socket.socket.process_subscriptions():
                (new_heads if message["subscription"] == heads else seen).append(message["result"])
                if len(seen) >= 5 and new_heads:
                    return

        await asyncio.wait_for(listen(), 30)
        same("subscription and getLogs", [entry(log) for log in seen], [entry(log) for log in logs])
        head = new_heads[-1]
        same("new head", w3.eth.get_block(head["number"])["hash"], head["hash"])
        over_socket = await socket.eth.get_logs({"address": address, "fromBlock": 0, "topics": [None, None, "0x" + "00" * 31 + "03"]})
        same("filter by topic over WebSocket", [entry(log) for log in over_socket], [entry(logs[2])])

    same("state at an old block", counter.functions.count().call(block_identifier=receipts[0]["blockNumber"]), 8)
    override = {address: {"stateDiff": {ZERO_SLOT: "0x" + "00" * 31 + "2a"}}}
    same("state override", counter.functions.count().call(state_override=override), 42)
    caller = {"from": account.address}
    try:
        counter.functions.increment(0).call(caller)
        raise AssertionError("increment(0) did not revert")
    except ContractLogicError as error:
        same("reason of a revert", "amount is zero" in str(error), True)
    try:
        counter.functions.increment(101).call(caller)
        raise AssertionError("increment(101) did not revert")
    except ContractCustomError as error:
        same("custom error", "TooLarge" in str(error) or bool(error.data), True)
    stale = account.sign_transaction(
        {"to": ZERO_ADDRESS, "value": 1, "gas": 21000, "gasPrice": 2 * w3.eth.gas_price, "nonce": 0, "chainId": chain_id}
    )
    try:
        w3.eth.send_raw_transaction(stale.raw_transaction)
        raise AssertionError("a used nonce was accepted")
    except Web3RPCError as error:
        same("message for a used nonce", "nonce too low" in str(error), True)
    proof = w3.eth.get_proof(address, [0])
    same("value in proof", int.from_bytes(proof["storageProof"][0]["value"], "big"), 22)
    history = w3.eth.fee_history(4, "latest", [25, 75])
    same("fee history", len(history["baseFeePerGas"]), len(history["gasUsedRatio"]) + 1)


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    asyncio.run(run(*sys.argv[1:]))
    print("ok web3.py: deployed, called, types 0, 1, 2, 4, events over HTTP and WebSocket")


main()
