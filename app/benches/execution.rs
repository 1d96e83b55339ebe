//! Blocks of 1,000 transactions from raw bytes: ours with state root, against revm's mainnet handler on its own database
//! with neither root nor storage. Sender recovery is in both, on the same cores.
//!
//! `cargo bench -p cloister-app --features test-support --bench execution`

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench has a clock"
)]

use alloy_primitives::{Address, B256, Bytes, TxKind, U256, hex};
use cloister_app::{
    evm::transaction_environment,
    testing::{CHAIN_ID, TestChain, TestKey},
    transaction::decode_all,
};
use revm::{
    Context, ExecuteCommitEvm, MainBuilder, MainContext,
    bytecode::Bytecode,
    database::{CacheDB, EmptyDB},
    state::AccountInfo,
};
use std::time::{Duration, Instant};

const TRANSACTIONS: u64 = 1_000;
const ROUNDS: usize = 21;
const CONTRACT: Address = Address::repeat_byte(0xcc);
/// Takes word 1 from the caller's slot, adds it to the slot of word 0, and logs: an ERC-20 transfer without checks.
const TOKEN: &[u8] =
    &hex!("602035335403335560203560003554016000355560203560005260003560206000a100");

#[expect(clippy::print_stdout, reason = "the figures are what a bench is for")]
fn main() {
    let token = Bytes::from_static(TOKEN);
    let chain = TestChain::new(|_| {}, [(CONTRACT, token)]);
    let transfers = block(|key, nonce, to| key.transfer(nonce, to, 1));
    let tokens = block(|key, nonce, to| {
        let input = [to.into_word(), B256::with_last_byte(1)].concat();
        key.call(nonce, TxKind::Call(CONTRACT), 0, input)
    });
    for (name, raw) in [("native transfers", transfers), ("token transfers", tokens)] {
        let ours = median(|| {
            let executed = chain.execute(raw.clone());
            assert_eq!(executed.transactions.len() as u64, TRANSACTIONS);
        });
        let stock = median(|| run_stock(&raw));
        println!(
            "{name}: ours {:.0}/s, revm in memory {:.0}/s, ratio {:.2}",
            rate(ours),
            rate(stock),
            stock.as_secs_f64() / ours.as_secs_f64()
        );
    }
}

fn block(sign: impl Fn(&TestKey, u64, Address) -> Bytes) -> Vec<Bytes> {
    (0..TRANSACTIONS)
        .map(|index| {
            let key = TestKey::new(index % 10);
            let to = Address::left_padding_from(&(0x1_0000 + index).to_be_bytes());
            sign(&key, index / 10, to)
        })
        .collect()
}

fn run_stock(raw: &[Bytes]) {
    let mut database = CacheDB::new(EmptyDB::default());
    for index in 0..10 {
        let info = AccountInfo::from_balance(U256::from(10u128.pow(21)));
        database.insert_account_info(TestKey::new(index).address(), info);
    }
    let code = Bytecode::new_raw(Bytes::from_static(TOKEN));
    database.insert_account_info(CONTRACT, AccountInfo::from_bytecode(code));
    let mut evm = Context::mainnet()
        .with_db(database)
        .modify_cfg_chained(|cfg| cfg.chain_id = CHAIN_ID)
        .modify_block_chained(|block| {
            block.gas_limit = u64::MAX;
            block.basefee = 1_000_000_000;
        })
        .build_mainnet();
    for transaction in decode_all(raw, CHAIN_ID, &|_| None) {
        let transaction = transaction.expect("well formed");
        evm.transact_commit(transaction_environment(&transaction))
            .expect("valid");
    }
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

fn rate(block: Duration) -> f64 {
    TRANSACTIONS as f64 / block.as_secs_f64()
}
