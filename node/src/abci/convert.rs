//! Between tendermint's types and ours: everything that crosses the border is checked here, once.

use crate::{chain::Fatal, ending::EXIT_CONSENSUS};
use alloy_primitives::{B256, Bytes};
use cloister_app::{
    block::{BlockInput, ConsensusAddress, Misbehaviour, TransactionResult, ValidatorUpdate, Vote},
    rejection::Rejection,
};
use tendermint::{
    AppHash, Hash, PublicKey, Time,
    abci::types::{CommitInfo, ExecTxResult, ExtendedCommitInfo, Misbehavior, MisbehaviorKind},
    account, block,
    v0_38::abci::{request, response},
    validator, vote,
};

/// PrepareProposal's view of the block: votes come from the extended commit, the same in order and content.
pub fn prepare_input(request: request::PrepareProposal) -> Result<BlockInput, Fatal> {
    let last_commit = request
        .local_last_commit
        .map_or_else(Vec::new, extended_votes);
    block_input(
        request.height,
        request.time,
        request.proposer_address,
        request.txs,
        request.misbehavior,
        last_commit,
    )
}

/// ProcessProposal's view of the block.
pub fn process_input(request: request::ProcessProposal) -> Result<BlockInput, Fatal> {
    let last_commit = request.proposed_last_commit.map_or_else(Vec::new, votes);
    block_input(
        request.height,
        request.time,
        request.proposer_address,
        request.txs,
        request.misbehavior,
        last_commit,
    )
}

/// FinalizeBlock's view of the block.
pub fn finalize_input(request: request::FinalizeBlock) -> Result<BlockInput, Fatal> {
    let last_commit = votes(request.decided_last_commit);
    block_input(
        request.height,
        request.time,
        request.proposer_address,
        request.txs,
        request.misbehavior,
        last_commit,
    )
}

fn block_input(
    height: block::Height,
    time: Time,
    proposer: account::Id,
    transactions: Vec<bytes::Bytes>,
    misbehaviour: Vec<Misbehavior>,
    last_commit: Vec<Vote>,
) -> Result<BlockInput, Fatal> {
    Ok(BlockInput {
        height: height.value(),
        time_ms: time_ms(time)?,
        proposer: ConsensusAddress::from_slice(proposer.as_bytes()),
        transactions: transactions.into_iter().map(Bytes).collect(),
        misbehaviour: misbehaviour.into_iter().map(misbehaviour_of).collect(),
        last_commit,
    })
}

/// Milliseconds since the epoch, rounded down.
fn time_ms(time: Time) -> Result<u64, Fatal> {
    u64::try_from(time.unix_timestamp_nanos().div_euclid(1_000_000)).map_err(|_| Fatal {
        exit_code: EXIT_CONSENSUS,
        report: format!("block time {time} lies before 1970"),
    })
}

fn misbehaviour_of(evidence: Misbehavior) -> Misbehaviour {
    Misbehaviour {
        duplicate_vote: evidence.kind == MisbehaviorKind::DuplicateVote,
        validator: ConsensusAddress::from(evidence.validator.address),
        height: evidence.height.value(),
    }
}

fn votes(commit: CommitInfo) -> Vec<Vote> {
    commit
        .votes
        .into_iter()
        .map(|vote| Vote {
            validator: ConsensusAddress::from(vote.validator.address),
            power: vote.validator.power.value(),
            signed: vote.sig_info.is_signed(),
        })
        .collect()
}

fn extended_votes(commit: ExtendedCommitInfo) -> Vec<Vote> {
    commit
        .votes
        .into_iter()
        .map(|vote| Vote {
            validator: ConsensusAddress::from(vote.validator.address),
            power: vote.validator.power.value(),
            signed: vote.sig_info.is_signed(),
        })
        .collect()
}

/// CometBFT's hash of a block: always 32 bytes in a proposed or decided one.
pub fn consensus_hash(hash: &Hash) -> Result<B256, Fatal> {
    match hash {
        Hash::Sha256(bytes) => Ok(B256::from(*bytes)),
        Hash::None => Err(Fatal {
            exit_code: EXIT_CONSENSUS,
            report: "CometBFT gave a block without its hash".to_owned(),
        }),
    }
}

/// Bytes that a proposal's transactions may take; -1 leaves it to the block's own limit.
pub fn max_tx_bytes(asked: i64, max_block_bytes: u64) -> u64 {
    u64::try_from(asked).map_or(max_block_bytes, |asked| asked.min(max_block_bytes))
}

/// Heights of ours come from CometBFT or count from zero: they fit its signed 64 bits.
pub fn height(height: u64) -> block::Height {
    block::Height::try_from(height).expect("heights count blocks and fit 63 bits")
}

/// The Ethereum block hash as app hash.
pub fn app_hash(hash: B256) -> AppHash {
    AppHash::try_from(hash.to_vec()).expect("an app hash is any byte string")
}

/// Changes of the validator set. Two of one key in a response would stop CometBFT for good.
pub fn validator_updates(updates: &[ValidatorUpdate]) -> Result<Vec<validator::Update>, Fatal> {
    let refuse = |update: &ValidatorUpdate, reason: &str| Fatal {
        exit_code: EXIT_CONSENSUS,
        report: format!(
            "validator update {} with power {}: {reason}",
            hex::encode(update.public_key),
            update.power
        ),
    };
    let mut seen = std::collections::BTreeSet::new();
    updates
        .iter()
        .map(|update| {
            if !seen.insert(update.public_key) {
                return Err(refuse(update, "the key comes twice"));
            }
            Ok(validator::Update {
                pub_key: PublicKey::from_raw_ed25519(&update.public_key)
                    .ok_or_else(|| refuse(update, "not an ed25519 key"))?,
                power: vote::Power::try_from(update.power)
                    .map_err(|_| refuse(update, "power above 2^63 - 1"))?,
            })
        })
        .collect()
}

/// The result of one transaction of a decided block. Code, data and gas are consensus; the text is not.
pub fn tx_result(result: &TransactionResult) -> ExecTxResult {
    let rejection = result.placement.as_ref().err();
    ExecTxResult {
        code: result.code.into(),
        log: rejection.map(ToString::to_string).unwrap_or_default(),
        codespace: rejection.map(codespace).unwrap_or_default().to_owned(),
        gas_wanted: gas(result.gas_wanted),
        gas_used: gas(result.gas_used),
        ..Default::default()
    }
}

/// CheckTx's answer.
pub fn check_tx_response(verdict: Result<(), Rejection>) -> response::CheckTx {
    match verdict {
        Ok(()) => response::CheckTx::default(),
        Err(rejection) => response::CheckTx {
            code: rejection.code().into(),
            log: rejection.to_string(),
            codespace: codespace(&rejection).to_owned(),
            ..Default::default()
        },
    }
}

/// Which list of codes a rejection's belongs to: rules of the EVM, or those of the pool.
const fn codespace(rejection: &Rejection) -> &'static str {
    if rejection.code() < 200 { "evm" } else { "app" }
}

/// Gas of one transaction is below 2^24, but a result is not the place to trust that.
fn gas(gas: u64) -> i64 {
    i64::try_from(gas).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
