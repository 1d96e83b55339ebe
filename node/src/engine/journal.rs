//! The last block the engine proposed, on disk before it is decided: one file, replaced by renaming.

use super::block::EngineBlock;
use crate::chain::Fatal;
use alloy_rlp::Decodable as _;
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// See the module.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
}

impl Journal {
    pub(super) fn open(folder: &Path) -> Result<Self, Fatal> {
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        Ok(Self {
            path: folder.join("last_block.rlp"),
        })
    }

    pub(super) fn save(&self, block: &EngineBlock) -> Result<(), Fatal> {
        let temporary = self.path.with_extension("new");
        std::fs::write(&temporary, alloy_rlp::encode(block))
            .and_then(|()| std::fs::rename(&temporary, &self.path))
            .map_err(|error| failed(&self.path, &error))
    }

    /// A file that a power cut left torn is no block: nothing of it was ever committed.
    pub(super) fn load(&self) -> Result<Option<EngineBlock>, Fatal> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&self.path, &error)),
        };
        let mut rest = bytes.as_slice();
        match EngineBlock::decode(&mut rest) {
            Ok(block) if rest.is_empty() => Ok(Some(block)),
            Ok(_) | Err(_) => {
                tracing::warn!(path = %self.path.display(), "the engine's last block is torn; ignoring it");
                Ok(None)
            }
        }
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Fatal {
    Fatal {
        exit_code: 74,
        report: format!("{}: {error}", path.display()),
    }
}
