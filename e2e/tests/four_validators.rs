//! Four validators with real CometBFT, under load: one history, provable state.

use alloy_primitives::{Address, B256, U256};
use alloy_sol_types::{SolCall, SolValue};
use anyhow::{Context, Result, ensure};
use cloister_e2e::{
    bounded_or_full,
    contracts::{Batch, Caller, Counter, Maker, counter_code, creation_code},
    gnark::{CIRCUITS, SCALAR_ORDER, Statement, VERIFY_WITH_KEY},
    load::Load,
    network::Network,
    proof::{Expect, check, verify_in_javascript},
    report,
    wallet::{Action, Type, Wallet},
};
use serde_json::json;
use std::time::{Duration, Instant};

/// Blocks under load; the proof at H - 100 needs more than 100.
fn blocks() -> u64 {
    bounded_or_full(110, 500)
}

/// An account, its state at a height, and what a proof must show.
struct Claim {
    height: u64,
    address: Address,
    slots: Vec<B256>,
    expect: Expect,
}

#[tokio::test(flavor = "multi_thread")]
async fn four_validators_agree_under_load_and_prove_their_state() -> Result<()> {
    let mut network = Network::validators(4)?;
    network.start().await?;
    let rpcs = network.rpcs();
    let wallet = network.wallet(0);
    let counter = wallet.deploy(&rpcs[0], counter_code(0)).await?;
    let started = Instant::now();
    let first = rpcs[0].height().await?;
    let load = Load::start(
        rpcs.clone(),
        (4..8).map(|index| network.wallet(index)).collect(),
        counter,
        15,
    );

    // A contract call, sent to one validator and read from another.
    let increment = Action::call(
        counter,
        Counter::incrementCall {
            amount: U256::from(5),
        }
        .abi_encode(),
    );
    let receipt = wallet
        .send_ok(&rpcs[0], &Type::DynamicFee, &increment)
        .await?;
    let same = rpcs[3]
        .receipt(receipt.transaction_hash, Duration::from_secs(10))
        .await?;
    assert_eq!(same, receipt);

    seven_seven_zero_two(&network, counter).await?;
    gnark_proofs(&network).await?;
    let claims = come_and_go(&network).await?;

    // Each claim is proved after the next block, and again 100 blocks later.
    let mut cases = prove(&network, &claims).await?;
    let last_claim = claims
        .iter()
        .map(|claim| claim.height)
        .max()
        .context("claims were made")?;
    let target = (first + blocks()).max(last_claim + 100);
    rpcs[0]
        .reach(target, Duration::from_secs(30 + blocks() * 2))
        .await?;
    cases.extend(prove(&network, &claims).await?);
    let (accepted, refused) = load.stop().await;
    verify_in_javascript(&cases)?;

    ensure!(
        accepted.len() as u64 > blocks(),
        "only {} transactions were accepted ({refused} refused)",
        accepted.len()
    );
    for hash in &accepted {
        rpcs[1]
            .receipt(*hash, Duration::from_secs(30))
            .await
            .context("an accepted transaction was lost")?;
    }
    let head = rpcs[0].height().await?;
    let compared = network.agree(1, head).await?;
    report(&format!(
        "four validators: {compared} blocks agree on hash and app hash, {} transactions, {:.1} blocks a second, {} proofs",
        accepted.len(),
        (head - first) as f64 / started.elapsed().as_secs_f64(),
        cases.len()
    ));
    for node in &mut network.nodes {
        node.stop()?;
    }
    Ok(())
}

/// An account without coins lends its code slot; the sponsor pays.
async fn seven_seven_zero_two(network: &Network, counter: Address) -> Result<()> {
    let rpc = &network.nodes[1].rpc;
    let sponsor = network.wallet(1);
    let batch = sponsor.deploy(rpc, creation_code("Batch")).await?;
    let calls = [1, 2].map(|amount| Batch::Call {
        to: counter,
        value: U256::ZERO,
        data: Counter::incrementCall {
            amount: U256::from(amount),
        }
        .abi_encode()
        .into(),
    });
    let run = Action::call(
        sponsor.address(),
        Batch::runCall {
            calls: calls.to_vec(),
        }
        .abi_encode(),
    );
    let nonce = rpc.pending_nonce(sponsor.address()).await?;
    let authority = Wallet::random(sponsor.chain_id);
    let kind = Type::SetCode(vec![
        sponsor.authorize(batch, nonce + 1),
        authority.authorize(batch, 0),
    ]);
    let receipt = sponsor.send_ok(rpc, &kind, &run).await?;
    assert_eq!(receipt.transaction_type() as u8, 4);
    assert_eq!(receipt.inner.logs().len(), 2);
    for node in &network.nodes {
        node.rpc
            .receipt(receipt.transaction_hash, Duration::from_secs(10))
            .await?;
        let code = node.rpc.code(authority.address()).await?;
        assert_eq!(
            code[..3],
            [0xef, 0x01, 0x00],
            "the authority delegates on every validator"
        );
    }
    Ok(())
}

/// A proof of another implementation, by `eth_call` on every validator and in transactions; a changed one is false or refused.
async fn gnark_proofs(network: &Network) -> Result<()> {
    let rpc = &network.nodes[2].rpc;
    let wallet = network.wallet(2);
    let caller = wallet.deploy(rpc, creation_code("Caller")).await?;
    let valid = U256::from(1).to_be_bytes::<32>();
    for circuit in CIRCUITS {
        let statement = Statement::read(circuit)?;
        for node in &network.nodes {
            let answer = node
                .rpc
                .eth_call(VERIFY_WITH_KEY, statement.with_key())
                .await?;
            ensure!(answer[..] == valid, "{circuit}: {answer}");
        }
        let keep = |statement: &Statement| {
            let call = Caller::callAndKeepCall {
                target: VERIFY_WITH_KEY,
                input: statement.with_key(),
            };
            Action::call(caller, call.abi_encode()).with_gas(3_000_000)
        };
        let answered = Caller::answerCall {}.abi_encode();
        wallet
            .send_ok(rpc, &Type::DynamicFee, &keep(&statement))
            .await
            .with_context(|| circuit.to_owned())?;
        ensure!(
            rpc.eth_call(caller, answered.clone()).await?[..] == valid,
            "{circuit} in a transaction"
        );
        let mut changed = statement.clone();
        changed.inputs[0] += U256::from(1);
        wallet
            .send_ok(rpc, &Type::DynamicFee, &keep(&changed))
            .await?;
        ensure!(
            rpc.eth_call(caller, answered.clone()).await?[..] == [0; 32],
            "{circuit} with another input in a transaction"
        );
        changed.inputs[0] = statement.inputs[0] + SCALAR_ORDER;
        ensure!(
            rpc.eth_call(VERIFY_WITH_KEY, changed.with_key())
                .await
                .is_err(),
            "{circuit}: input + r"
        );
    }
    Ok(())
}

/// An address funded, destroyed in the transaction that gives it code, and made again with storage: its state after each.
async fn come_and_go(network: &Network) -> Result<Vec<Claim>> {
    let rpc = &network.nodes[0].rpc;
    let wallet = network.wallet(3);
    let maker = wallet.deploy(rpc, creation_code("Maker")).await?;
    let salt = B256::repeat_byte(0x5a);
    let flash = Address::abi_decode(
        &rpc.eth_call(maker, Maker::addressOfCall { salt }.abi_encode())
            .await?,
    )?;
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
    let mut claims = Vec::new();
    let steps = [
        (Action::transfer(flash, 3), Expect::Account),
        (make(false, 7), Expect::Absent),
        (make(true, 42), Expect::Account),
    ];
    for (action, expect) in steps {
        let receipt = wallet.send_ok(rpc, &Type::DynamicFee, &action).await?;
        let height = receipt.block_number.context("a receipt names its block")?;
        claims.push(Claim {
            height,
            address: flash,
            slots: vec![B256::ZERO, B256::repeat_byte(1)],
            expect,
        });
        // Others at the same heights: a contract with storage, an account that only has coins, one that never was.
        claims.push(Claim {
            height,
            address: maker,
            slots: vec![B256::ZERO],
            expect: Expect::Account,
        });
        claims.push(Claim {
            height,
            address: wallet.address(),
            slots: vec![],
            expect: Expect::Account,
        });
        claims.push(Claim {
            height,
            address: Address::repeat_byte(0x77),
            slots: vec![B256::ZERO],
            expect: Expect::Absent,
        });
    }
    Ok(claims)
}

/// Checks each claim on a validator against the app hash that CometBFT of another has.
async fn prove(network: &Network, claims: &[Claim]) -> Result<Vec<serde_json::Value>> {
    let mut cases = Vec::new();
    for (index, claim) in claims.iter().enumerate() {
        let node = &network.nodes[index % network.nodes.len()];
        let other = &network.nodes[(index + 1) % network.nodes.len()];
        for reader in [node, other] {
            reader
                .reach(claim.height + 1, Duration::from_secs(20))
                .await?;
        }
        let app_hash = other.comet.app_hash(claim.height + 1).await?;
        cases.push(
            check(
                &node.rpc,
                claim.address,
                &claim.slots,
                claim.height,
                app_hash,
                claim.expect,
            )
            .await?,
        );
    }
    Ok(cases)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_another_chain_is_refused_by_all() -> Result<()> {
    let mut network = Network::validators(2)?;
    network.start().await?;
    let stranger = Wallet::of_mnemonic(0, 1);
    let raw = stranger.sign(&Type::DynamicFee, &Action::transfer(Address::ZERO, 1), 0);
    for node in &network.nodes {
        node.rpc
            .refused("eth_sendRawTransaction", json!([raw]))
            .await?;
    }
    Ok(())
}

/// A promoted transaction must leave the node that queued it.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_node_gossips_a_transaction_once_its_gap_is_filled() -> Result<()> {
    let mut network = Network::with_full_nodes(3, 1)?;
    network.start().await?;
    let rpc = network.nodes[3].rpc.clone();
    let wallet = network.wallet(0);
    let later = rpc
        .send_raw(wallet.sign(
            &Type::DynamicFee,
            &Action::transfer(Address::repeat_byte(1), 1),
            1,
        ))
        .await?;
    let height = rpc.height().await?;
    rpc.reach(height + 3, Duration::from_secs(20)).await?;
    assert_eq!(
        rpc.nonce(wallet.address()).await?,
        0,
        "a gapped transaction is not mined"
    );
    assert_eq!(
        rpc.pending_nonce(wallet.address()).await?,
        0,
        "pending does not jump over a gap"
    );
    let earlier = rpc
        .send_raw(wallet.sign(
            &Type::DynamicFee,
            &Action::transfer(Address::repeat_byte(1), 1),
            0,
        ))
        .await?;
    for node in &network.nodes {
        for hash in [earlier, later] {
            ensure!(
                node.rpc
                    .receipt(hash, Duration::from_secs(20))
                    .await?
                    .status(),
                "{hash} failed"
            );
        }
    }
    Ok(())
}

/// One of four down: the chain goes on and the one that returns catches up; two down: it halts, and goes on after.
#[tokio::test(flavor = "multi_thread")]
async fn the_chain_outlives_one_of_four_and_waits_for_two() -> Result<()> {
    let mut network = Network::validators(4)?;
    network.start().await?;
    network.nodes[3].process = None;
    let height = network.nodes[0].rpc.height().await?;
    network.nodes[0]
        .reach(height + 5, Duration::from_secs(60))
        .await?;
    network.nodes[2].process = None;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let halted = network.nodes[0].rpc.height().await?;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let still = network.nodes[0].rpc.height().await?;
    ensure!(
        still <= halted + 1,
        "two of four made blocks: {halted} then {still}"
    );
    for index in [2, 3] {
        network.nodes[index].start()?;
    }
    for node in &network.nodes {
        node.reach(still + 5, Duration::from_secs(60)).await?;
    }
    network.agree(1, still + 3).await?;
    Ok(())
}
