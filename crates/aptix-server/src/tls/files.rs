//! Reads the files that TLS needs.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Bytes of a file at most: hundreds of authorities.
const MOST_BYTES: u64 = 4 << 20;

/// The permissions that a key's file may have: all of its owner's, and reading for its group.
const KEY_MODE: u32 = 0o740;

/// Why TLS cannot be served with the files that are configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("failed to read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Others than its owner and its group can read the key.
    #[error(
        "refused to use the private key in {0}: other users can read or write it (mode {mode:04o}), expected mode 0600; hint: \
         chmod 0600 {0}",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file does not hold what it is for. What it holds is not shown.
    #[error("expected {expected} in {}, found {found}; hint: check the file with `openssl`", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What it is for.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// The certificate and the key cannot be used together.
    #[error(
        "failed to use the certificate in {} with the key in {}: {error}; hint: the first certificate has to be the server's own, \
         of that key",
        certificate.display(), key.display()
    )]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong.
        error: Box<rustls::Error>,
    },
    /// An authority of client certificates cannot be used.
    #[error("failed to use an authority of client certificates in {}: {error}", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: rustls::Error,
    },
}

/// Differs whenever a file was replaced or written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    inode: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// That of a file as it is now.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        path.metadata().map(|metadata| (&metadata).into())
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            inode: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// The certificates of a file, at least one.
pub(super) fn certificates(path: &Path) -> Result<(Vec<CertificateDer<'static>>, Stamp), TlsError> {
    let (bytes, metadata) = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.and_then(|found| if found.is_empty() { Err(PemError::NoItemsFound) } else { Ok(found) });
    let found = found.map_err(|error| content(path, "certificates in PEM", &error))?;
    Ok((found, (&metadata).into()))
}

/// The private key of a file that its owner and its group alone can read.
pub(super) fn private_key(path: &Path) -> Result<(PrivateKeyDer<'static>, Stamp), TlsError> {
    let (bytes, metadata) = read(path)?;
    let mode = metadata.mode() & 0o777;
    if mode & !KEY_MODE != 0 {
        return Err(TlsError::Exposed { path: path.to_owned(), mode });
    }
    let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| content(path, "a private key in PEM", &error))?;
    Ok((key, (&metadata).into()))
}

fn read(path: &Path) -> Result<(Vec<u8>, Metadata), TlsError> {
    let mut bytes = Vec::new();
    let mut read = || {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(metadata)
    };
    let metadata = read().map_err(|error| TlsError::Read { path: path.to_owned(), error })?;
    Ok((bytes, metadata))
}

fn content(path: &Path, expected: &'static str, error: &PemError) -> TlsError {
    let found = match error {
        PemError::NoItemsFound => "none",
        PemError::MissingSectionEnd { .. } => "a section without its end",
        _ => "a section that cannot be decoded",
    };
    TlsError::Content { path: path.to_owned(), expected, found }
}
