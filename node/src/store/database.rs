//! RocksDB itself: how it is opened and tuned, and the plain reads everything else is made of.

use super::{StoreError, StoreOptions, schema::Family};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DBCompressionType,
    DBPinnableSlice, DBRecoveryMode, DBWithThreadMode, DataBlockIndexType, Direction, IteratorMode,
    Options, ReadOptions, SingleThreaded, SliceTransform, SnapshotWithThreadMode, WriteBatch,
};
use std::path::Path;

/// Key and value.
type Record = (Box<[u8]>, Box<[u8]>);

/// The column families are all opened at the start, so that handles need no lock.
pub(super) type Database = DBWithThreadMode<SingleThreaded>;
pub(super) type Snapshot<'a> = SnapshotWithThreadMode<'a, Database>;

/// All memtables together; RocksDB writes the largest out when they reach it.
const MEMTABLES_SIZE_BYTES_MAX: usize = 32 << 20;
/// One memtable.
const MEMTABLE_SIZE_BYTES_MAX: usize = 16 << 20;
/// When the logs reach this, families that hold the oldest one are written out. Bounds the replay at the next start.
const WAL_SIZE_BYTES_MAX: u64 = 128 << 20;
/// Table files kept open: the memory of their indices is part of an idle node's.
const OPEN_FILES_MAX: i32 = 512;
/// About one false positive in a hundred.
const BLOOM_BITS_PER_KEY: f64 = 10.0;

pub(super) fn open(folder: &Path, options: &StoreOptions) -> Result<Database, StoreError> {
    make_folder(folder)?;
    let mut settings = Options::default();
    settings.create_if_missing(true);
    settings.create_missing_column_families(true);
    // A log that ends in the middle of a batch is normal after a crash: open at the last whole one. Recycled log files
    // and partial syncs could leave a hole with whole batches behind it, which this mode would not see.
    settings.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    settings.set_recycle_log_file_num(0);
    settings.set_wal_bytes_per_sync(0);
    settings.set_max_total_wal_size(WAL_SIZE_BYTES_MAX);
    if let Some(wal_folder) = &options.wal_folder {
        make_folder(wal_folder)?;
        settings.set_wal_dir(wal_folder);
    }
    settings.set_paranoid_checks(true);
    settings.set_db_write_buffer_size(MEMTABLES_SIZE_BYTES_MAX);
    settings.set_max_open_files(OPEN_FILES_MAX);
    settings.set_max_background_jobs(2);
    settings.set_bytes_per_sync(1 << 20);
    settings.set_keep_log_file_num(4);
    settings.set_max_log_file_size(4 << 20);
    settings.set_stats_dump_period_sec(0);
    settings.set_stats_persist_period_sec(0);

    let cache = Cache::new_lru_cache(options.block_cache_bytes);
    let mut names: Vec<String> = Family::ALL
        .iter()
        .map(|family| family.name().to_owned())
        .collect();
    // A newer format may have families we do not know: open them too, so that the format version can be read and named.
    if folder.join("CURRENT").exists() {
        for name in Database::list_cf(&settings, folder)? {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let families = names.into_iter().map(|name| {
        let family = Family::ALL.into_iter().find(|family| family.name() == name);
        ColumnFamilyDescriptor::new(name, family_options(&cache, family))
    });
    let database = Database::open_cf_descriptors(&settings, folder, families)
        .map_err(|error| open_error(folder, error))?;
    check_table_files(folder, &database)?;
    Ok(database)
}

fn make_folder(folder: &Path) -> Result<(), StoreError> {
    std::fs::create_dir_all(folder).map_err(|error| StoreError::File {
        path: folder.to_owned(),
        reason: error.to_string(),
    })
}

/// RocksDB opens only the first few table files at the start: one that is lost or cut short would come out at the first
/// read of its records, long after.
fn check_table_files(folder: &Path, database: &Database) -> Result<(), StoreError> {
    for file in database.live_files()? {
        let path = folder.join(file.name.trim_start_matches('/'));
        let reason = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.len() == file.size as u64 => continue,
            Ok(metadata) => format!("{} bytes long, {} were written", metadata.len(), file.size),
            Err(error) => error.to_string(),
        };
        // A compaction may have begun with the opening, and deleted what it has merged since the list was made.
        if database
            .live_files()?
            .iter()
            .any(|live| live.name == file.name)
        {
            return Err(StoreError::File { path, reason });
        }
    }
    Ok(())
}

fn family_options(cache: &Cache, family: Option<Family>) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_bloom_filter(BLOOM_BITS_PER_KEY, false);
    table.set_optimize_filters_for_memory(true);
    // Indices and filters stay with their open tables. In the cache they would push each other out: one filter is as
    // large as a hundred blocks, and each read of a trie node needs several.
    table.set_cache_index_and_filter_blocks(false);
    table.set_format_version(5);
    let mut settings = Options::default();
    if let Some(length) = family.and_then(Family::history_prefix_bytes) {
        // Most keys never changed: the filter on the part before the height answers that without a read.
        settings.set_prefix_extractor(SliceTransform::create_fixed_prefix(length));
        settings.set_memtable_prefix_bloom_ratio(0.05);
        table.set_whole_key_filtering(false);
    }
    if family.is_some_and(Family::is_read_at_random) {
        // Keys are hashes: neighbours are strangers, so small blocks, found by hash.
        table.set_block_size(4 << 10);
        table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
        table.set_data_block_hash_ratio(0.75);
        settings.set_compression_type(DBCompressionType::Lz4);
    } else {
        table.set_block_size(16 << 10);
        settings.set_compression_type(DBCompressionType::Lz4);
        settings.set_bottommost_compression_type(DBCompressionType::Zstd);
    }
    if matches!(family, Some(Family::AccountNodes | Family::StorageNodes)) {
        // Nearly all hashes.
        settings.set_compression_type(DBCompressionType::None);
    }
    settings.set_block_based_table_factory(&table);
    settings.set_write_buffer_size(MEMTABLE_SIZE_BYTES_MAX);
    settings
}

/// RocksDB tells a taken lock only in words.
fn open_error(folder: &Path, error: rocksdb::Error) -> StoreError {
    let lock = folder.join("LOCK");
    let text = error.to_string();
    if text.contains("lock") && text.contains(lock.to_string_lossy().as_ref()) {
        StoreError::Locked { lock, reason: text }
    } else {
        StoreError::Database(error)
    }
}

/// Handle of a family.
pub(super) fn handle(database: &Database, family: Family) -> &ColumnFamily {
    let handle = database.cf_handle(family.name());
    handle.expect("open creates every family")
}

/// A batch that knows the families.
pub(super) struct Batch<'a> {
    database: &'a Database,
    pub(super) writes: WriteBatch,
}

impl<'a> Batch<'a> {
    pub(super) fn new(database: &'a Database) -> Self {
        Self {
            database,
            writes: WriteBatch::default(),
        }
    }

    pub(super) fn put(&mut self, family: Family, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.writes
            .put_cf(handle(self.database, family), key, value);
    }

    pub(super) fn delete(&mut self, family: Family, key: impl AsRef<[u8]>) {
        self.writes.delete_cf(handle(self.database, family), key);
    }

    /// Deletes the whole family: no key is 65 bytes of 0xff or more.
    pub(super) fn clear(&mut self, family: Family) {
        let end = [0xff; 80];
        self.writes
            .delete_range_cf(handle(self.database, family), &[][..], &end[..]);
    }
}

/// Plain reads, of the newest state or of a RocksDB snapshot.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) database: &'a Database,
    pub(super) snapshot: Option<&'a Snapshot<'a>>,
}

impl<'a> Source<'a> {
    pub(super) fn get(
        &self,
        family: Family,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<DBPinnableSlice<'a>>, StoreError> {
        let handle = handle(self.database, family);
        Ok(match self.snapshot {
            None => self.database.get_pinned_cf(handle, key)?,
            Some(snapshot) => snapshot.get_pinned_cf(handle, key)?,
        })
    }

    /// The first record at `from` or after it that shares its first `prefix_length` bytes.
    pub(super) fn first_at(
        &self,
        family: Family,
        from: &[u8],
        prefix_length: usize,
    ) -> Result<Option<Record>, StoreError> {
        let mut records = self.iterate(family, from, prefix_length, true);
        records.next().transpose()
    }

    /// Records from `from` on that share its first `prefix_length` bytes.
    pub(super) fn range(
        &self,
        family: Family,
        from: &[u8],
        prefix_length: usize,
    ) -> impl Iterator<Item = Result<Record, StoreError>> + use<'a> {
        self.iterate(family, from, prefix_length, false)
    }

    fn iterate(
        &self,
        family: Family,
        from: &[u8],
        prefix_length: usize,
        same_prefix: bool,
    ) -> impl Iterator<Item = Result<Record, StoreError>> + use<'a> {
        let mut options = ReadOptions::default();
        options.set_prefix_same_as_start(same_prefix);
        options.set_total_order_seek(!same_prefix);
        let handle = handle(self.database, family);
        let mode = IteratorMode::From(from, Direction::Forward);
        let records = match self.snapshot {
            None => self.database.iterator_cf_opt(handle, options, mode),
            Some(snapshot) => snapshot.iterator_cf_opt(handle, options, mode),
        };
        let prefix = from.get(..prefix_length).unwrap_or(from).to_vec();
        records
            .map(|record| record.map_err(StoreError::from))
            .take_while(move |record| match record {
                Ok((key, _)) => key.starts_with(&prefix),
                Err(_) => true,
            })
    }
}
