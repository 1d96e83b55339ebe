//! Reads of the state after any kept block, without locks and beside the thread that writes.
//!
//! History holds, for each key and height, the value *before* that block. So the value after block `H` is that of the first
//! record above `H`, or the current value if there is none. The current value is read first and history after it: a
//! block that is committed between the two reads puts what it replaced into history in the same batch, so the second read
//! finds it. (In the other order, a change between the two would be missed.)
//!
//! While nothing is committed, history need not be read at all: the writer makes [`Inner::generation`] odd before
//! its batch and even after moving the head. A view of the head notes the even number, and where that is still the number after
//! its read, the current value was the right one.
//!
//! Pruning raises [`Inner::oldest_state`] before it deletes; a view checks that number after its reads.

use super::{
    Head, StoreError, StoreOptions,
    closing::OpenGuard,
    database::{Database, Source},
    durability::Log,
    recent::Recent,
    schema::{self, Family},
};
use alloy_primitives::{B256, Bytes, U256};
use cloister_app::state::{Account, HashedAddress, HashedSlot, StateError, StateRead};
use parking_lot::{Mutex, RwLock};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// What all clones of a store share.
pub(super) struct Inner {
    pub(super) database: Arc<Database>,
    pub(super) options: StoreOptions,
    pub(super) head: RwLock<Option<Arc<Head>>>,
    /// Odd while a batch is being written.
    pub(super) generation: AtomicU64,
    pub(super) oldest_state: AtomicU64,
    pub(super) recent: Mutex<Recent>,
    /// Held by whoever writes: one at a time.
    pub(super) writing: Mutex<()>,
    pub(super) log: Log,
    /// Last, so that it goes when the database is closed.
    pub(super) _open: OpenGuard,
}

impl Inner {
    pub(super) fn source(&self) -> Source<'_> {
        Source {
            database: &self.database,
            snapshot: None,
        }
    }
}

/// Immutable view of the state after one block. Implements [`StateRead`].
#[derive(Clone)]
pub struct StateView {
    inner: Arc<Inner>,
    height: u64,
    /// Of the store when this was its head, if no batch was then on its way.
    generation: Option<u64>,
}

impl std::fmt::Debug for StateView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateView")
            .field("height", &self.height)
            .finish_non_exhaustive()
    }
}

impl StateView {
    /// The view of a height, or of the head.
    pub(super) fn at(inner: &Arc<Inner>, height: Option<u64>) -> Result<Self, StoreError> {
        let generation = inner.generation.load(Ordering::SeqCst);
        let head = inner.head.read().as_ref().map(|head| head.height);
        let Some(head) = head else {
            let height = height.unwrap_or_default();
            return Err(StoreError::AboveHead { height, head: 0 });
        };
        let height = height.unwrap_or(head);
        if height > head {
            return Err(StoreError::AboveHead { height, head });
        }
        // The head read between two loads of the same even number belongs to that number.
        let quiet =
            generation.is_multiple_of(2) && inner.generation.load(Ordering::SeqCst) == generation;
        let view = Self {
            inner: Arc::clone(inner),
            height,
            generation: (quiet && height == head).then_some(generation),
        };
        view.check_kept()?;
        Ok(view)
    }

    /// The block after which this is the state.
    pub const fn height(&self) -> u64 {
        self.height
    }

    fn check_kept(&self) -> Result<(), StoreError> {
        let oldest = self.inner.oldest_state.load(Ordering::SeqCst);
        if self.height < oldest {
            return Err(StoreError::HistoryPruned {
                height: self.height,
                oldest,
            });
        }
        Ok(())
    }

    /// `current`, then `before`, never the other way round.
    pub(super) fn read<T>(
        &self,
        current: impl FnOnce(Source<'_>) -> Result<T, StoreError>,
        before: impl FnOnce(Source<'_>) -> Result<Option<T>, StoreError>,
    ) -> Result<T, StoreError> {
        let source = self.inner.source();
        let value = current(source)?;
        if self.generation == Some(self.inner.generation.load(Ordering::SeqCst)) {
            return Ok(value);
        }
        let value = before(source)?.unwrap_or(value);
        self.check_kept()?;
        Ok(value)
    }
}

impl StateRead for StateView {
    fn account(&self, address: HashedAddress) -> Result<Option<Account>, StateError> {
        let height = self.height;
        Ok(self.read(
            |source| source.account_record(address),
            |source| account_before(source, address, height),
        )?)
    }

    fn storage(&self, address: HashedAddress, slot: HashedSlot) -> Result<U256, StateError> {
        let height = self.height;
        Ok(self.read(
            |source| source.slot_value(address, slot),
            |source| slot_before(source, address, slot, height),
        )?)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        self.inner.source().code(code_hash)
    }

    fn block_hash(&self, height: u64) -> Result<Option<B256>, StateError> {
        if height > self.height {
            return Ok(None);
        }
        self.inner.source().block_hash(height)
    }
}

/// The account before its first change above `height`; `None` if there is none.
pub(super) fn account_before(
    source: Source<'_>,
    address: HashedAddress,
    height: u64,
) -> Result<Option<Option<Account>>, StoreError> {
    let family = Family::AccountHistory;
    let Some((key, value)) = first_above(source, family, address.0.as_slice(), height)? else {
        return Ok(None);
    };
    if value.is_empty() {
        return Ok(Some(None));
    }
    Ok(Some(Some(schema::decode_account(family, &key, &value)?)))
}

/// The slot's value before its first change above `height`; `None` if there is none.
pub(super) fn slot_before(
    source: Source<'_>,
    address: HashedAddress,
    slot: HashedSlot,
    height: u64,
) -> Result<Option<U256>, StoreError> {
    let family = Family::StorageHistory;
    let prefix = schema::slot_key(address, slot);
    let Some((key, value)) = first_above(source, family, &prefix, height)? else {
        return Ok(None);
    };
    Ok(Some(schema::decode_slot(family, &key, &value)?))
}

type Record = (Box<[u8]>, Box<[u8]>);

fn first_above(
    source: Source<'_>,
    family: Family,
    prefix: &[u8],
    height: u64,
) -> Result<Option<Record>, StoreError> {
    let Some(above) = height.checked_add(1) else {
        return Ok(None);
    };
    source.first_at(family, &schema::history_key(prefix, above), prefix.len())
}
