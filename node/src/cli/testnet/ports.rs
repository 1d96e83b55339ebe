//! Ports for the nodes of a network on this machine.

use crate::failure::Failure;
use rand::Rng;
use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
};

/// Below the ports that systems give to outgoing connections, so that none of those takes one before a node does.
const FREE_RANGE: Range<u16> = 15_000..32_000;
/// Ports from one node's first to the next one's, counted from --base-port.
const STEP: u16 = 10;

/// The four ports of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodePorts {
    pub(super) http: u16,
    pub(super) ws: u16,
    pub(super) cometbft_rpc: u16,
    pub(super) p2p: u16,
}

/// Ports for `count` nodes: from a base, or free ones.
pub(super) fn assign(count: usize, base: Option<u16>) -> Result<Vec<NodePorts>, Failure> {
    let mut taken = BTreeSet::new();
    (0..count)
        .map(|index| match base {
            Some(base) => from_base(base, index),
            None => Ok(NodePorts {
                http: free(&mut taken)?,
                ws: free(&mut taken)?,
                cometbft_rpc: free(&mut taken)?,
                p2p: free(&mut taken)?,
            }),
        })
        .collect()
}

fn from_base(base: u16, index: usize) -> Result<NodePorts, Failure> {
    let first = u16::try_from(index)
        .ok()
        .and_then(|index| index.checked_mul(STEP))
        .and_then(|offset| base.checked_add(offset))
        .filter(|first| *first != 0 && first.checked_add(STEP).is_some())
        .ok_or_else(|| {
            Failure::config(
                format!("--base-port {base} leaves no ports for node {index}"),
                "choose a lower one, or leave it out for free ports",
            )
        })?;
    Ok(NodePorts {
        http: first,
        ws: first + 1,
        cometbft_rpc: first + 2,
        p2p: first + 3,
    })
}

fn free(taken: &mut BTreeSet<u16>) -> Result<u16, Failure> {
    let mut rng = rand::rng();
    for _ in 0..1_000 {
        let port = rng.random_range(FREE_RANGE);
        if !taken.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            taken.insert(port);
            return Ok(port);
        }
    }
    Err(Failure::other(
        "no free ports found",
        "give --base-port, or stop other programs",
    ))
}

#[cfg(test)]
mod tests;
