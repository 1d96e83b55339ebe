//! The snapshot connection: there are none yet, and it says so.

use super::service::Handler;
use crate::chain::Fatal;
use tendermint::v0_38::abci::{SnapshotRequest, SnapshotResponse, response};

/// Lists nothing, refuses every offer.
#[derive(Debug)]
pub struct Snapshot;

impl Handler for Snapshot {
    type Request = SnapshotRequest;
    type Response = SnapshotResponse;

    fn name(request: &SnapshotRequest) -> &'static str {
        match request {
            SnapshotRequest::ListSnapshots => "list_snapshots",
            SnapshotRequest::OfferSnapshot(_) => "offer_snapshot",
            SnapshotRequest::LoadSnapshotChunk(_) => "load_snapshot_chunk",
            SnapshotRequest::ApplySnapshotChunk(_) => "apply_snapshot_chunk",
        }
    }

    async fn answer(&self, request: SnapshotRequest) -> Result<SnapshotResponse, Fatal> {
        Ok(match request {
            SnapshotRequest::ListSnapshots => {
                SnapshotResponse::ListSnapshots(response::ListSnapshots::default())
            }
            SnapshotRequest::OfferSnapshot(offer) => {
                tracing::warn!(
                    height = offer.snapshot.height.value(),
                    "snapshot rejected: this build restores none"
                );
                SnapshotResponse::OfferSnapshot(response::OfferSnapshot::Reject)
            }
            SnapshotRequest::LoadSnapshotChunk(_) => {
                SnapshotResponse::LoadSnapshotChunk(response::LoadSnapshotChunk::default())
            }
            // No offer was accepted, so no chunk can be meant.
            SnapshotRequest::ApplySnapshotChunk(_) => {
                SnapshotResponse::ApplySnapshotChunk(response::ApplySnapshotChunk {
                    result: tendermint::abci::response::ApplySnapshotChunkResult::Abort,
                    ..Default::default()
                })
            }
        })
    }
}
