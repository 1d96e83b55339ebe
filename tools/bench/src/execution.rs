//! Execution alone: our whole road of a block (decode, recover, execute, state root, commit to RocksDB) against revm's
//! mainnet handler on an in-memory database from the same raw bytes, sender recovery on the same cores included,
//! without root and storage. Rounds of both alternate, so noise hits both.

use crate::{
    stats::{Samples, Summary},
    workload::{self, Kind},
};
use alloy_consensus::{TxEnvelope, transaction::SignerRecoverable};
use alloy_eips::eip2718::Decodable2718;
use alloy_evm::FromRecoveredTx;
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_signer_local::PrivateKeySigner;
use anyhow::{Context as _, ensure};
use cloister_app::{
    app::App,
    block::{BlockInput, ConsensusAddress},
};
use cloister_node::store::Store;
use rayon::prelude::*;
use revm::{
    Context, ExecuteCommitEvm, ExecuteEvm, MainBuilder, MainContext,
    context::TxEnv,
    database::{CacheDB, EmptyDB},
    primitives::hardfork::SpecId,
    state::{AccountInfo, Bytecode},
};
use std::{collections::BTreeMap, time::Instant};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// What the blocks hold
    #[arg(long, value_enum, default_value = "native")]
    pub(crate) kind: Kind,
    /// Transactions in a block, each from its own sender
    #[arg(long, default_value_t = 1_000)]
    pub(crate) transactions: u64,
    /// Accounts in the state besides the senders
    #[arg(long, default_value_t = 10_000)]
    pub(crate) accounts: u64,
    /// Blocks measured, after one to warm up
    #[arg(long, default_value_t = 20)]
    pub(crate) rounds: u64,
    /// Sync the log at every block, as durability `every-block` does
    #[arg(long)]
    pub(crate) sync: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The figures of one run.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Report {
    kind: Kind,
    transactions: u64,
    accounts: u64,
    synced: bool,
    pub(crate) cloister: Summary,
    /// Of `cloister`: decode, recovery, execution and state root, without the store.
    cloister_execute: Summary,
    revm_in_memory: Summary,
    cloister_tps: f64,
    revm_tps: f64,
    /// cloister_tps / revm_tps.
    ratio: f64,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let report = measure(options)?;
    crate::output::print(options.json, &report, &table(&report))
}

fn table(report: &Report) -> String {
    format!(
        "{:?} transfers, blocks of {}, {} accounts{}\n\
         cloister (all)        median {:8.2} ms  min {:8.2}  max {:8.2}  {:9.0} tx/s\n\
         cloister (no store)   median {:8.2} ms  min {:8.2}  max {:8.2}\n\
         revm in memory        median {:8.2} ms  min {:8.2}  max {:8.2}  {:9.0} tx/s\n\
         ratio                 {:.3}\n",
        report.kind,
        report.transactions,
        report.accounts,
        if report.synced { ", log synced" } else { "" },
        report.cloister.median_ms,
        report.cloister.min_ms,
        report.cloister.max_ms,
        report.cloister_tps,
        report.cloister_execute.median_ms,
        report.cloister_execute.min_ms,
        report.cloister_execute.max_ms,
        report.revm_in_memory.median_ms,
        report.revm_in_memory.min_ms,
        report.revm_in_memory.max_ms,
        report.revm_tps,
        report.ratio,
    )
}

pub(crate) fn measure(options: &Options) -> anyhow::Result<Report> {
    ensure!(
        options.transactions > 0 && options.rounds > 0,
        "transactions and rounds must be at least 1"
    );
    let senders: Vec<PrivateKeySigner> = (0..options.transactions)
        .map(workload::signer)
        .collect::<Result<_, _>>()?;
    let alloc = workload::alloc(&senders, options.accounts)?;
    let genesis = crate::network(&alloc)?;
    let app = App::new(&genesis);
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let store = Store::open(folder.path(), crate::store_options(options.sync))
        .context("opening the store")?;
    store
        .init(&app.init_chain(&genesis))
        .context("writing genesis")?;
    let mut baseline = baseline_database(&genesis.alloc);

    let (mut all, mut execute, mut revm_alone) =
        (Samples::default(), Samples::default(), Samples::default());
    for round in 0..=options.rounds {
        let transactions = workload::block(options.kind, &senders, round, options.accounts)?;
        let head = store.head().context("the store holds block 0")?;
        let input = BlockInput {
            height: head.height + 1,
            time_ms: (genesis.timestamp + head.height + 1) * 1_000,
            proposer: ConsensusAddress::ZERO,
            transactions: transactions.clone(),
            misbehaviour: Vec::new(),
            last_commit: Vec::new(),
        };
        let start = Instant::now();
        let executed = app.execute_block(&store.current(), &head.header, &input, &|_| None)?;
        let executed_in = start.elapsed();
        let included = executed.transactions.len() as u64;
        let gas = executed.header.gas_used;
        store.commit(&executed.seal(keccak256(round.to_be_bytes())))?;
        let took = start.elapsed();
        ensure!(
            included == options.transactions,
            "only {included} of {} transactions were included",
            options.transactions
        );

        let start = Instant::now();
        let baseline_gas = baseline_block(&mut baseline, &transactions, head.header.number + 1)?;
        let baseline_took = start.elapsed();
        ensure!(
            gas == baseline_gas,
            "cloister used {gas} gas, revm {baseline_gas}: not the same work"
        );
        if round > 0 {
            all.push(took);
            execute.push(executed_in);
            revm_alone.push(baseline_took);
        }
    }
    let (cloister, revm_in_memory) = (all.summary(), revm_alone.summary());
    let tps = |summary: Summary| options.transactions as f64 / summary.median_ms * 1e3;
    Ok(Report {
        kind: options.kind,
        transactions: options.transactions,
        accounts: options.accounts,
        synced: options.sync,
        cloister,
        cloister_execute: execute.summary(),
        revm_in_memory,
        cloister_tps: tps(cloister),
        revm_tps: tps(revm_in_memory),
        ratio: tps(cloister) / tps(revm_in_memory),
    })
}

fn baseline_database(alloc: &BTreeMap<Address, GenesisAccount>) -> CacheDB<EmptyDB> {
    let mut database = CacheDB::new(EmptyDB::new());
    for (address, account) in alloc {
        let code = account.code.clone().map(Bytecode::new_raw);
        let info = AccountInfo {
            balance: account.balance,
            nonce: account.nonce.unwrap_or_default(),
            code_hash: code
                .as_ref()
                .map_or(alloy_primitives::KECCAK256_EMPTY, Bytecode::hash_slow),
            code,
            ..Default::default()
        };
        database.insert_account_info(*address, info);
        for (slot, value) in account.storage.iter().flatten() {
            let _: Result<(), std::convert::Infallible> = database.insert_account_storage(
                *address,
                U256::from_be_bytes(slot.0),
                U256::from_be_bytes(value.0),
            );
        }
    }
    database
}

/// Executes and commits a block in memory; returns the gas used.
fn baseline_block(
    database: &mut CacheDB<EmptyDB>,
    transactions: &[Bytes],
    number: u64,
) -> anyhow::Result<u64> {
    let recovered: Vec<(TxEnvelope, Address)> = transactions
        .par_iter()
        .map(|raw| {
            let envelope = TxEnvelope::decode_2718_exact(raw)?;
            let sender = envelope.recover_signer()?;
            anyhow::Ok((envelope, sender))
        })
        .collect::<anyhow::Result<_>>()?;
    let mut evm = Context::mainnet()
        .with_db(database)
        .modify_cfg_chained(|cfg| {
            cfg.set_spec_and_mainnet_gas_params(SpecId::OSAKA);
            cfg.chain_id = workload::CHAIN_ID;
        })
        .modify_block_chained(|block| {
            block.number = U256::from(number);
            block.gas_limit = u64::MAX;
            block.basefee = 1_000_000_000;
            block.prevrandao = Some(B256::ZERO);
        })
        .build_mainnet();
    let mut gas = 0u64;
    for (envelope, sender) in &recovered {
        let result = evm.transact_commit(TxEnv::from_recovered_tx(envelope, *sender))?;
        ensure!(
            result.is_success(),
            "baseline transaction failed: {result:?}"
        );
        gas += result.tx_gas_used();
    }
    let _ = evm.finalize();
    Ok(gas)
}
