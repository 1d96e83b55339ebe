//! Where CometBFT reaches us: a unix socket in a folder that only this user may enter, or a loopback port.
//!
//! A unix address holds about 108 bytes, NUL included, so a home with a long path gets a short folder elsewhere.

use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use std::{
    fmt, fs,
    net::SocketAddr,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, chown},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Longest path used for a socket.
const PATH_BYTES_MAX: usize = 100;

/// What stands in the way of listening.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A file or folder.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The folder is someone else's, or others may enter it.
    #[error("{} is not a folder of this user alone (owner {owner}, mode {mode:o})", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Its permissions.
        mode: u32,
    },
    /// Something answers there.
    #[error("another process listens at {}", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something else than a socket stands there.
    #[error("{} is not a socket", path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// No such group.
    #[error("consensus.abci_group = {name:?}: no such group")]
    Group {
        /// As configured.
        name: String,
    },
    /// The listener failed.
    #[error("{reason}")]
    Listen {
        /// Its words.
        reason: String,
    },
}

impl SocketError {
    /// What the operator can do.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check that this user may write there",
            Self::Folder { .. } => "remove the folder, or set XDG_RUNTIME_DIR to one of your own",
            Self::InUse { .. } => "stop the other node of this home first",
            Self::NotASocket { .. } => "move the file away",
            Self::Group { .. } => "name a group of /etc/group, or give its number",
            Self::Listen { .. } => "stop the program that uses the address, or choose another",
        }
    }
}

/// An address of the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AbciAddress {
    /// A socket in a folder of its own.
    Unix {
        /// The socket.
        path: PathBuf,
        /// A group that may use it, by number.
        group: Option<u32>,
    },
    /// A loopback port.
    Tcp(SocketAddr),
}

impl fmt::Display for AbciAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { path, .. } => write!(formatter, "unix://{}", path.display()),
            Self::Tcp(address) => write!(formatter, "tcp://{address}"),
        }
    }
}

impl AbciAddress {
    /// The socket of a home: below it if the path is short enough, else in the user's runtime folder.
    pub fn unix_for_home(home: &Path, group: Option<&str>) -> Result<Self, SocketError> {
        let group = group.map(group_number).transpose()?;
        let absolute = std::path::absolute(home).map_err(io(home))?;
        let own = absolute.join("run/abci.sock");
        let path = if own.as_os_str().len() <= PATH_BYTES_MAX {
            own
        } else {
            short_path(&absolute)
        };
        Ok(Self::Unix { path, group })
    }

    /// Makes the folder, and removes a socket that nobody serves.
    pub(super) fn prepare(&self) -> Result<(), SocketError> {
        let Self::Unix { path, group } = self else {
            return Ok(());
        };
        let folder = path.parent().expect("a socket of ours stands in a folder");
        let mode = if group.is_some() { 0o710 } else { 0o700 };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(folder)
            .map_err(io(folder))?;
        check_folder(folder)?;
        // An earlier run may have had another group, or none.
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).map_err(io(folder))?;
        if group.is_some() {
            chown(folder, None, *group).map_err(io(folder))?;
        }
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io(path)(error)),
            Ok(file) if !file.file_type().is_socket() => {
                Err(SocketError::NotASocket { path: path.clone() })
            }
            Ok(_) if UnixStream::connect(path).is_ok() => {
                Err(SocketError::InUse { path: path.clone() })
            }
            Ok(_) => fs::remove_file(path).map_err(io(path)),
        }
    }

    /// Waits until the socket is there, and lets only those use it that may.
    pub(super) async fn wait_ready(&self, limit: Duration) -> Result<(), SocketError> {
        let Self::Unix { path, group } = self else {
            // The port is bound at the listener's first step; an error would come back at once.
            tokio::time::sleep(Duration::from_millis(20)).await;
            return Ok(());
        };
        let start = Instant::now();
        while !path.exists() {
            if start.elapsed() > limit {
                return Err(SocketError::Listen {
                    reason: format!("no socket at {} after {limit:?}", path.display()),
                });
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(io(path))?;
        if group.is_some() {
            chown(path, None, *group).map_err(io(path))?;
        }
        Ok(())
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> SocketError + '_ {
    |source| SocketError::Io {
        path: path.to_owned(),
        source,
    }
}

/// The same home always has the same one.
fn short_path(home: &Path) -> PathBuf {
    let digest = hex::encode(&Sha256::digest(home.as_os_str().as_encoded_bytes())[..8]);
    let user = geteuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute() && folder.as_os_str().len() < 60)
        .unwrap_or_else(|| "/tmp".into());
    runtime.join(format!("cloister-{user}-{digest}/abci.sock"))
}

/// In a folder like /tmp another user could have made it first, to listen in our place.
fn check_folder(folder: &Path) -> Result<(), SocketError> {
    let found = fs::symlink_metadata(folder).map_err(io(folder))?;
    if found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(SocketError::Folder {
        path: folder.to_owned(),
        owner: found.uid(),
        mode: found.mode() & 0o7777,
    })
}

fn group_number(name: &str) -> Result<u32, SocketError> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    groups
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
        })
        .ok_or_else(|| SocketError::Group {
            name: name.to_owned(),
        })
}

#[cfg(test)]
mod tests;
