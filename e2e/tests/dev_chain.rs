//! The development chain, one process: the road a newcomer walks, and the doors that must stay shut.

use alloy_consensus::Typed2718;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::{SolCall, SolValue};
use anyhow::{Result, ensure};
use cloister_e2e::{
    contracts::{Batch, Caller, Counter, Maker, counter_code, creation_code},
    gnark::{CIRCUITS, CIRCUITS_REFUSED, SCALAR_ORDER, Statement, VERIFY, VERIFY_WITH_KEY},
    network::Dev,
    proof::{Expect, verify},
    wallet::{Action, Type, Wallet},
};
use serde_json::json;
use std::time::Duration;

const VALID: [u8; 32] = {
    let mut word = [0; 32];
    word[31] = 1;
    word
};

#[tokio::test(flavor = "multi_thread")]
async fn ten_accounts_of_the_mnemonic_hold_10_000_coins() -> Result<()> {
    let dev = Dev::start("0").await?;
    assert_eq!(dev.rpc.chain_id().await?, 31_337);
    for index in 0..10 {
        let balance = dev.rpc.balance(dev.wallet(index).address()).await?;
        assert_eq!(
            balance,
            U256::from(10_000) * U256::from(10).pow(U256::from(18)),
            "account {index}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_transaction_type_runs_and_survives_a_restart() -> Result<()> {
    let mut dev = Dev::start("200ms").await?;
    let wallet = dev.wallet(0);
    let counter = wallet.deploy(&dev.rpc, counter_code(7)).await?;
    let increment = |amount: u64| {
        Action::call(
            counter,
            Counter::incrementCall {
                amount: U256::from(amount),
            }
            .abi_encode(),
        )
    };
    let list = AccessList(vec![AccessListItem {
        address: counter,
        storage_keys: vec![B256::ZERO],
    }]);
    let batch = wallet.deploy(&dev.rpc, creation_code("Batch")).await?;
    let calls = [4, 5].map(|amount| Batch::Call {
        to: counter,
        value: U256::ZERO,
        data: increment(amount).data,
    });
    let run = Action::call(
        wallet.address(),
        Batch::runCall {
            calls: calls.to_vec(),
        }
        .abi_encode(),
    );

    let mut hashes = Vec::new();
    for (kind, action) in [
        (Type::Legacy, increment(1)),
        (Type::AccessList(list), increment(2)),
        (Type::DynamicFee, increment(3)),
    ] {
        hashes.push(
            wallet
                .send_ok(&dev.rpc, &kind, &action)
                .await?
                .transaction_hash,
        );
    }
    let nonce = dev.rpc.pending_nonce(wallet.address()).await?;
    let set_code = Type::SetCode(vec![wallet.authorize(batch, nonce + 1)]);
    let receipt = wallet.send_ok(&dev.rpc, &set_code, &run).await?;
    assert_eq!(receipt.inner.logs().len(), 2, "both calls of the batch log");
    hashes.push(receipt.transaction_hash);
    assert_eq!(
        dev.rpc.code(wallet.address()).await?[..3],
        [0xef, 0x01, 0x00]
    );

    for (hash, kind) in hashes.iter().zip([0, 1, 2, 4]) {
        let receipt = dev.rpc.receipt(*hash, Duration::ZERO).await?;
        assert_eq!(receipt.transaction_type() as u8, kind);
        let transaction: alloy_rpc_types_eth::Transaction = dev
            .rpc
            .call("eth_getTransactionByHash", json!([hash]))
            .await?;
        assert_eq!(transaction.ty(), kind);
        assert_eq!(transaction.inner.signer(), wallet.address());
        ensure!(
            transaction.effective_gas_price == Some(receipt.effective_gas_price),
            "prices differ"
        );
    }
    let count = Counter::countCall {}.abi_encode();
    assert_eq!(
        U256::abi_decode(&dev.rpc.eth_call(counter, count.clone()).await?)?,
        U256::from(22)
    );

    let height = dev.rpc.height().await?;
    let before = dev.rpc.block(height).await?;
    let status = dev.process.stop(Duration::from_secs(10))?;
    ensure!(status.success(), "a clean stop ended with {status}");
    dev.restart("200ms").await?;
    assert_eq!(
        dev.rpc.block(height).await?,
        before,
        "the block is the same after a restart"
    );
    dev.rpc.reach(height + 2, Duration::from_secs(10)).await?;
    assert_eq!(
        U256::abi_decode(&dev.rpc.eth_call(counter, count).await?)?,
        U256::from(22)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_loses_no_block() -> Result<()> {
    let mut dev = Dev::start("100ms").await?;
    let wallet = dev.wallet(0);
    for round in 0..3 {
        let receipt = wallet
            .send_ok(
                &dev.rpc,
                &Type::DynamicFee,
                &Action::transfer(Address::repeat_byte(7), 1),
            )
            .await?;
        let height = receipt.block_number.unwrap_or_default();
        let before = dev.rpc.block(height).await?;
        dev.process.signal(rustix::process::Signal::KILL);
        dev.process.wait(Duration::from_secs(5))?;
        dev.restart("100ms").await?;
        assert_eq!(dev.rpc.block(height).await?, before, "round {round}");
        assert_eq!(dev.rpc.nonce(wallet.address()).await?, round + 1);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn gnark_proofs_verify_and_their_changes_do_not() -> Result<()> {
    let dev = Dev::start("0").await?;
    let wallet = dev.wallet(1);
    let caller = wallet.deploy(&dev.rpc, creation_code("Caller")).await?;
    for (index, circuit) in CIRCUITS.into_iter().enumerate() {
        let statement = Statement::read(circuit)?;
        assert_eq!(
            dev.rpc
                .eth_call(VERIFY_WITH_KEY, statement.with_key())
                .await?[..],
            VALID,
            "{circuit}"
        );
        if index == 0 {
            let call = Caller::callAndKeepCall {
                target: VERIFY_WITH_KEY,
                input: statement.with_key(),
            };
            let receipt = wallet
                .send_ok(
                    &dev.rpc,
                    &Type::DynamicFee,
                    &Action::call(caller, call.abi_encode()),
                )
                .await?;
            ensure!(
                receipt.gas_used > 100_000,
                "a verification costs gas: {}",
                receipt.gas_used
            );
            let answer = dev
                .rpc
                .eth_call(caller, Caller::answerCall {}.abi_encode())
                .await?;
            assert_eq!(answer[..], VALID);
            // The development genesis registers the development keys in a fixed order; transfer_k2 is among them.
            let mut found = false;
            for reference in 0..CIRCUITS.len() as u64 {
                let data = statement.registered(U256::from(reference).into());
                found |= dev
                    .rpc
                    .eth_call(VERIFY, data)
                    .await
                    .is_ok_and(|answer| answer[..] == VALID);
            }
            ensure!(found, "transfer_k2 verifies under a registered key");
        }
        for position in 0..statement.inputs.len() {
            let mut changed = statement.clone();
            changed.inputs[position] += SCALAR_ORDER;
            let refused = dev.rpc.eth_call(VERIFY_WITH_KEY, changed.with_key()).await;
            ensure!(
                refused.is_err(),
                "{circuit}: input {position} + r was answered"
            );
        }
    }
    for circuit in CIRCUITS_REFUSED {
        let statement = Statement::read(circuit)?;
        ensure!(
            dev.rpc
                .eth_call(VERIFY_WITH_KEY, statement.with_key())
                .await
                .is_err(),
            "{circuit} was accepted as a key"
        );
    }

    // Every bit of one proof and its inputs, through the node.
    let statement = Statement::read("transfer_k2")?;
    let honest = statement.with_key();
    let from = 32 + statement.key.len();
    for bit in 0..(honest.len() - from) * 8 {
        let mut changed = honest.to_vec();
        changed[from + bit / 8] ^= 1 << (bit % 8);
        let answer = dev
            .rpc
            .eth_call(VERIFY_WITH_KEY, Bytes::from(changed))
            .await;
        ensure!(
            answer.is_err() || answer.is_ok_and(|answer| answer[..] == [0; 32]),
            "bit {bit} changed and still valid"
        );
    }
    for count in [0, statement.inputs.len() - 1, statement.inputs.len() + 1] {
        let mut changed = statement.clone();
        changed.inputs.resize(count, U256::ZERO);
        ensure!(
            dev.rpc
                .eth_call(VERIFY_WITH_KEY, changed.with_key())
                .await
                .is_err(),
            "{count} inputs were answered"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_that_come_and_go_prove_their_state() -> Result<()> {
    let dev = Dev::start("0").await?;
    let wallet = dev.wallet(2);
    let maker = wallet.deploy(&dev.rpc, creation_code("Maker")).await?;
    let salt = B256::repeat_byte(9);
    let at = dev
        .rpc
        .eth_call(maker, Maker::addressOfCall { salt }.abi_encode())
        .await?;
    let flash = Address::abi_decode(&at)?;
    let make = |stay: bool, value: u64| {
        Action::call(
            maker,
            Maker::makeCall {
                salt,
                value: U256::from(value),
                stay,
            }
            .abi_encode(),
        )
    };
    let slot = [B256::ZERO];

    // Funded before it has code, destroyed in the transaction that makes it, made again with storage.
    let mut heights = Vec::new();
    for (action, expect) in [
        (Action::transfer(flash, 5), Expect::Account),
        (make(false, 1), Expect::Absent),
        (make(true, 42), Expect::Account),
    ] {
        let receipt = wallet.send_ok(&dev.rpc, &Type::DynamicFee, &action).await?;
        heights.push((receipt.block_number.unwrap_or_default(), expect));
    }
    for (height, expect) in heights {
        let block = dev.rpc.block(height).await?;
        let answer = dev.rpc.proof(flash, &slot, height).await?;
        verify(block.header.state_root, &answer, expect)?;
        if height == dev.rpc.height().await? {
            assert_eq!(answer.storage_proof[0].value, U256::from(42));
            assert_eq!(answer.nonce, 1);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_signed_for_another_chain_are_refused() -> Result<()> {
    let dev = Dev::start("0").await?;
    for kind in [
        Type::Legacy,
        Type::AccessList(AccessList::default()),
        Type::DynamicFee,
    ] {
        let stranger = Wallet::of_mnemonic(0, 31_338);
        let raw = stranger.sign(&kind, &Action::transfer(Address::ZERO, 1), 0);
        let error = dev
            .rpc
            .refused("eth_sendRawTransaction", json!([raw]))
            .await?;
        assert_eq!(error.code, -32_000, "{error}");
        ensure!(error.message.contains("chain"), "{kind:?}: {error}");
    }
    assert_eq!(dev.rpc.nonce(dev.wallet(0).address()).await?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_get_an_error_and_change_nothing() -> Result<()> {
    let dev = Dev::start("0").await?;
    let wallet = dev.wallet(0);
    let before = dev.rpc.block(dev.rpc.height().await?).await?;
    let good = wallet.sign(&Type::DynamicFee, &Action::transfer(Address::ZERO, 1), 0);
    let with_tail = [&good[..], &[0]].concat();
    for raw in [
        Bytes::new(),
        Bytes::from(vec![0x02]),
        Bytes::from(vec![0xff; 40]),
        with_tail.into(),
        good.slice(..good.len() - 1),
    ] {
        let error = dev
            .rpc
            .refused("eth_sendRawTransaction", json!([raw]))
            .await?;
        ensure!(!error.message.is_empty(), "{raw}: an error without words");
    }
    for body in [
        "",
        "{",
        "[]",
        "null",
        "7",
        "\"x\"",
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        "\u{0}\u{0}",
    ] {
        let (_, text) = dev.rpc.post(body).await?;
        ensure!(
            text.contains("error") || !text.contains("result"),
            "{body:?} was answered with {text}"
        );
    }
    for (method, params) in [
        ("eth_getBalance", json!([])),
        ("eth_getBalance", json!(["0x12", "latest"])),
        ("eth_getBalance", json!([Address::ZERO, "latests"])),
        ("eth_getBlockByNumber", json!(["0x", false])),
        ("eth_call", json!([{ "to": "nobody" }, "latest"])),
        ("eth_getProof", json!([Address::ZERO, ["0xzz"], "latest"])),
        ("eth_noSuchMethod", json!([])),
    ] {
        let error = dev.rpc.refused(method, params.clone()).await?;
        ensure!(
            matches!(error.code, -32_602 | -32_601 | -32_000),
            "{method} {params}: {error}"
        );
    }
    assert_eq!(dev.rpc.block(dev.rpc.height().await?).await?, before);
    Ok(())
}
