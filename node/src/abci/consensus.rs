//! The consensus connection: each call becomes one of the block thread's, in our types.

use super::{convert, service::Handler};
use crate::{
    chain::{Chain, ChainHandle, Fatal},
    ending::{EXIT_CONFIG, EXIT_CONSENSUS},
};
use alloy_primitives::Bytes;
use cloister_genesis::Genesis;
use tendermint::v0_38::abci::{ConsensusRequest, ConsensusResponse, request, response};

/// Hands calls to the block thread.
#[derive(Debug)]
pub struct Consensus {
    chain: Chain,
    handle: ChainHandle,
}

impl Consensus {
    /// `handle` belongs to `chain`.
    pub const fn new(chain: Chain, handle: ChainHandle) -> Self {
        Self { chain, handle }
    }

    async fn init_chain(&self, request: request::InitChain) -> Result<response::InitChain, Fatal> {
        check_genesis(&request, self.chain.genesis())?;
        let answer = self
            .handle
            .init_chain(
                request.chain_id,
                Bytes(request.app_state_bytes),
                request.initial_height.value(),
            )
            .await?;
        Ok(response::InitChain {
            consensus_params: None,
            validators: convert::validator_updates(&answer.validators)?,
            app_hash: convert::app_hash(answer.app_hash),
        })
    }

    async fn prepare_proposal(
        &self,
        request: request::PrepareProposal,
    ) -> Result<response::PrepareProposal, Fatal> {
        let max_bytes = convert::max_tx_bytes(
            request.max_tx_bytes,
            self.chain.app().parameters().max_block_bytes,
        );
        let input = convert::prepare_input(request)?;
        let transactions = self.handle.prepare_proposal(input, max_bytes).await?;
        Ok(response::PrepareProposal {
            txs: transactions.into_iter().map(|raw| raw.0).collect(),
        })
    }

    async fn process_proposal(
        &self,
        request: request::ProcessProposal,
    ) -> Result<response::ProcessProposal, Fatal> {
        let hash = convert::consensus_hash(&request.hash)?;
        let input = convert::process_input(request)?;
        Ok(match self.handle.process_proposal(input, hash).await? {
            true => response::ProcessProposal::Accept,
            false => response::ProcessProposal::Reject,
        })
    }

    async fn finalize_block(
        &self,
        request: request::FinalizeBlock,
    ) -> Result<response::FinalizeBlock, Fatal> {
        let hash = convert::consensus_hash(&request.hash)?;
        let transaction_count = request.txs.len();
        let height = request.height.value();
        let input = convert::finalize_input(request)?;
        let answer = self.handle.finalize_block(input, hash).await?;
        // CometBFT panics on any other number, without saying why.
        assert_eq!(
            answer.results.len(),
            transaction_count,
            "one result for each transaction of block {height}"
        );
        Ok(response::FinalizeBlock {
            events: Vec::new(),
            tx_results: answer.results.iter().map(convert::tx_result).collect(),
            validator_updates: convert::validator_updates(&answer.validator_updates)?,
            consensus_param_updates: None,
            app_hash: convert::app_hash(answer.app_hash),
        })
    }

    async fn commit(&self) -> Result<response::Commit, Fatal> {
        let retain_height = self.handle.commit().await?;
        Ok(response::Commit {
            retain_height: convert::height(retain_height),
            ..Default::default()
        })
    }
}

impl Handler for Consensus {
    type Request = ConsensusRequest;
    type Response = ConsensusResponse;

    fn name(request: &ConsensusRequest) -> &'static str {
        match request {
            ConsensusRequest::InitChain(_) => "init_chain",
            ConsensusRequest::PrepareProposal(_) => "prepare_proposal",
            ConsensusRequest::ProcessProposal(_) => "process_proposal",
            ConsensusRequest::Commit => "commit",
            ConsensusRequest::ExtendVote(_) => "extend_vote",
            ConsensusRequest::VerifyVoteExtension(_) => "verify_vote_extension",
            ConsensusRequest::FinalizeBlock(_) => "finalize_block",
        }
    }

    async fn answer(&self, request: ConsensusRequest) -> Result<ConsensusResponse, Fatal> {
        tracing::trace!(call = Self::name(&request), "consensus call");
        Ok(match request {
            ConsensusRequest::InitChain(request) => {
                ConsensusResponse::InitChain(self.init_chain(request).await?)
            }
            ConsensusRequest::PrepareProposal(request) => {
                ConsensusResponse::PrepareProposal(self.prepare_proposal(request).await?)
            }
            ConsensusRequest::ProcessProposal(request) => {
                ConsensusResponse::ProcessProposal(self.process_proposal(request).await?)
            }
            ConsensusRequest::FinalizeBlock(request) => {
                ConsensusResponse::FinalizeBlock(self.finalize_block(request).await?)
            }
            ConsensusRequest::Commit => ConsensusResponse::Commit(self.commit().await?),
            ConsensusRequest::ExtendVote(_) | ConsensusRequest::VerifyVoteExtension(_) => {
                return Err(Fatal {
                    exit_code: EXIT_CONSENSUS,
                    report: "CometBFT asks for vote extensions, which this chain's genesis switches off \
                             (consensus_params.abci.vote_extensions_enable_height = 0)"
                        .to_owned(),
                });
            }
        })
    }
}

/// CometBFT's genesis must agree with ours in what both hold.
fn check_genesis(request: &request::InitChain, genesis: &Genesis) -> Result<(), Fatal> {
    let refuse = |field: &str, got: String, expected: String| {
        Err(Fatal {
            exit_code: EXIT_CONFIG,
            report: format!(
                "CometBFT's genesis has {field} = {got}, ours needs {expected}; both files must come from \
                 one `cloister init`"
            ),
        })
    };
    if request.chain_id != genesis.network {
        return refuse(
            "chain_id",
            format!("{:?}", request.chain_id),
            format!("{:?}", genesis.network),
        );
    }
    let max_block_bytes = genesis.parameters.max_block_bytes;
    let parameters = &request.consensus_params;
    if parameters.block.max_bytes != max_block_bytes {
        return refuse(
            "consensus_params.block.max_bytes",
            parameters.block.max_bytes.to_string(),
            max_block_bytes.to_string(),
        );
    }
    let app_version = parameters.version.as_ref().map_or(0, |version| version.app);
    if app_version != cloister_genesis::APP_VERSION {
        return refuse(
            "consensus_params.version.app",
            app_version.to_string(),
            cloister_genesis::APP_VERSION.to_string(),
        );
    }
    match parameters.abci.vote_extensions_enable_height {
        Some(height) if height.value() != 0 => refuse(
            "consensus_params.abci.vote_extensions_enable_height",
            height.to_string(),
            "0".to_owned(),
        ),
        _ => Ok(()),
    }
}
