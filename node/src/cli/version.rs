//! `cloister version`

use super::print;
use crate::{comet::binary, failure::Failure};

/// The release of revm that executes blocks, as the lock file pins it.
pub(super) const REVM_VERSION: &str = "43.0.3";
/// The release of RocksDB's binding, as the lock file pins it.
pub(super) const ROCKSDB_VERSION: &str = "0.25.0";

/// Show versions: this program, the EVM, the consensus engine it runs with.
#[derive(Debug, clap::Args)]
pub(super) struct VersionArguments {
    /// As one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &VersionArguments) -> Result<(), Failure> {
    let parts = [
        ("cloister", env!("CARGO_PKG_VERSION").to_owned()),
        ("revm", REVM_VERSION.to_owned()),
        ("rocksdb", ROCKSDB_VERSION.to_owned()),
        (
            "cometbft",
            format!("{} or later of its line", binary::VERSION_MIN),
        ),
        ("abci", "2.0.0".to_owned()),
    ];
    if arguments.json {
        let object: serde_json::Map<_, _> = parts
            .into_iter()
            .map(|(name, version)| (name.to_owned(), version.into()))
            .collect();
        print(&format!("{}\n", serde_json::Value::Object(object)));
    } else {
        for (name, version) in parts {
            print(&format!("{name:<10}{version}\n"));
        }
    }
    Ok(())
}
