//! The order in which a proposer takes transactions: highest effective tip first, ties by arrival, nonces of a sender
//! in order. A snapshot: it does not see what the pool takes in or drops meanwhile.

use cloister_app::transaction::Transaction;
use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc, vec};

/// An executable transaction with its sort key.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) tip_wei: u128,
    pub(crate) arrival: u64,
    pub(crate) transaction: Arc<Transaction>,
}

/// Iterator over a snapshot of the executable transactions, best first.
#[derive(Debug)]
pub struct Best {
    /// What follows the head of each sender.
    rest: Vec<vec::IntoIter<Candidate>>,
    /// The next of each sender: (tip, arrival, index in `rest`).
    heads: BinaryHeap<(u128, Reverse<u64>, usize)>,
    /// The transactions of the heads, by index in `rest`.
    next: Vec<Option<Arc<Transaction>>>,
}

impl Best {
    /// `senders` gives each sender's executable transactions in nonce order.
    pub(crate) fn new(senders: impl Iterator<Item = Vec<Candidate>>) -> Self {
        let mut best = Self {
            rest: Vec::new(),
            heads: BinaryHeap::new(),
            next: Vec::new(),
        };
        for sender in senders {
            best.rest.push(sender.into_iter());
            best.next.push(None);
            best.advance(best.rest.len() - 1);
        }
        best
    }

    fn advance(&mut self, index: usize) {
        if let Some(candidate) = self.rest[index].next() {
            self.heads
                .push((candidate.tip_wei, Reverse(candidate.arrival), index));
            self.next[index] = Some(candidate.transaction);
        }
    }
}

impl Iterator for Best {
    type Item = Arc<Transaction>;

    fn next(&mut self) -> Option<Self::Item> {
        let (_, _, index) = self.heads.pop()?;
        let transaction = self.next[index].take();
        self.advance(index);
        transaction
    }
}
