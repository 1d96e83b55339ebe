//! The bytes of every column family after a fixed chain. A difference means a new format: raise the version, then run with
//! `CLOISTER_BLESS=1` to write the file anew.

use super::{TestChain, options, some_steps};
use crate::store::{Durability, database, schema::Family};
use rocksdb::IteratorMode;
use std::fmt::Write;

#[test]
fn bytes_of_every_family_after_three_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = TestChain::new(folder.path(), options(Durability::Os), &some_steps(0));
    for height in 1..=3 {
        chain.commit(&some_steps(height));
    }
    let database = &chain.store.inner.database;
    let mut text = String::new();
    for family in Family::ALL {
        writeln!(text, "[{}]", family.name()).unwrap();
        let handle = database::handle(database, family);
        let mut count = 0;
        for record in database.iterator_cf(handle, IteratorMode::Start) {
            let (key, value) = record.unwrap();
            writeln!(text, "{} = {}", hex::encode(key), hex::encode(value)).unwrap();
            count += 1;
        }
        assert_ne!(
            count,
            0,
            "the chain has a record in family {}",
            family.name()
        );
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/tests/golden.txt");
    if std::env::var_os("CLOISTER_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    let difference = text
        .lines()
        .zip(golden.lines())
        .find(|(got, expected)| got != expected);
    assert_eq!(difference, None, "first differing line, got and golden");
    assert_eq!(text.lines().count(), golden.lines().count());
}
