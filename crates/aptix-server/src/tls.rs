//! TLS: the certificate and the key that the server proves itself with, reloaded when their files change.

mod der;
mod expiry;
mod files;
pub(crate) mod names;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use aptix_model::record::UnixMillis;
use aptix_model::wire;
use tokio::task::JoinError;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use self::files::Stamp;
pub use self::files::TlsError;
use crate::metrics;
use crate::mint;

/// The protocols that are offered, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// How many milliseconds before its end a certificate is warned of: two weeks.
const WARNED_BEFORE: u64 = 14 * 24 * 3_600_000;

/// How often the files are looked at. A change is loaded once a look finds it as the look before did.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The files that TLS needs, each with PEM sections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The server's certificate, and after it those that lead to an authority that clients trust.
    pub certificate: PathBuf,
    /// The private key of the first certificate.
    pub key: PathBuf,
    /// The authorities of client certificates; without it no client is asked for one.
    pub client_ca: Option<PathBuf>,
}

/// What connections are secured with.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    loaded: RwLock<Loaded>,
}

#[derive(Clone, Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    stamps: Vec<Stamp>,
    /// When the server's certificate expires.
    expires: Option<UnixMillis>,
}

impl Loaded {
    /// Has operators know when the certificate expires, before clients refuse it.
    fn announce(&self) {
        let Some(expires) = self.expires else { return };
        metrics::certificate_expires(expires);
        let now = mint::now();
        if expires <= now {
            tracing::error!(expires = wire::rfc3339(expires), "the certificate has expired: clients refuse it");
        } else if expires.0 - now.0 < WARNED_BEFORE {
            tracing::warn!(expires = wire::rfc3339(expires), "the certificate expires soon");
        }
    }
}

impl Tls {
    /// Loads the files.
    ///
    /// # Errors
    /// When one cannot be read or holds something else, when the key is not that of the certificate, and when users other than
    /// the key's owner and group can read it.
    pub fn open(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        let loaded = load(&files)?;
        Ok(Arc::new(Self { files, loaded: RwLock::new(loaded) }))
    }

    /// Secures a connection with what is loaded now.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.loaded().config)
    }

    /// Loads the files, if there are any, again whenever they have changed, for as long as it is polled. New connections use what was
    /// loaded last; files that cannot be used change nothing.
    pub async fn watch(tls: Option<Arc<Self>>) -> Infallible {
        let Some(tls) = tls else { return std::future::pending().await };
        tls.loaded().announce();
        let mut before = Vec::new();
        let mut refused = String::new();
        loop {
            sleep(LOOK_EVERY).await;
            let this = Arc::clone(&tls);
            let stamps = tokio::task::spawn_blocking(move || this.stamps()).await.unwrap_or_default();
            let has_settled = std::mem::replace(&mut before, stamps.clone()) == stamps;
            if stamps == tls.loaded().stamps {
                refused.clear();
            } else if has_settled {
                let this = Arc::clone(&tls);
                let why = tokio::task::spawn_blocking(move || this.reload()).await.unwrap_or_else(broken_off);
                match why {
                    None => tracing::info!("the changed certificate is used for new connections"),
                    Some(why) if why != refused => {
                        tracing::error!(why, "the changed certificate is of no use; the former one is used");
                        refused = why;
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// Loads the files anew. Answers why they cannot be used.
    fn reload(&self) -> Option<String> {
        match load(&self.files) {
            Ok(loaded) => {
                loaded.announce();
                *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = loaded;
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }

    fn loaded(&self) -> Loaded {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The stamps of the files as they are now; fewer than there are files when one cannot be looked at.
    fn stamps(&self) -> Vec<Stamp> {
        self.files.paths().filter_map(|path| Stamp::of(path).ok()).collect()
    }
}

impl TlsFiles {
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the error of a task that ended")]
fn broken_off(error: JoinError) -> Option<String> {
    Some(error.to_string())
}

fn load(files: &TlsFiles) -> Result<Loaded, TlsError> {
    let (chain, certificate) = files::certificates(&files.certificate)?;
    let (private_key, key) = files::private_key(&files.key)?;
    let mut stamps = vec![certificate, key];
    let expires = chain.first().and_then(|own| expiry::expires(own));
    let authorities = files.client_ca.as_ref().map(|path| files::certificates(path).map(|found| (path, found)));
    let authorities = match authorities.transpose()? {
        Some((path, (authorities, stamp))) => {
            stamps.push(stamp);
            Some(trusted(authorities).map_err(|error| TlsError::Authority { path: path.clone(), error })?)
        }
        None => None,
    };
    let config = config(chain, private_key, authorities);
    let config = config.map_err(|error| TlsError::Pair {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        error: Box::new(error),
    })?;
    Ok(Loaded { config: Arc::new(config), stamps, expires })
}

type RustlsError = tokio_rustls::rustls::Error;

fn trusted(authorities: Vec<CertificateDer<'static>>) -> Result<RootCertStore, RustlsError> {
    let mut roots = RootCertStore::empty();
    authorities.into_iter().try_for_each(|authority| roots.add(authority))?;
    Ok(roots)
}

/// The authorities of a file, to hold the certificate of a server against that this one connects to. Certificates of the file that
/// cannot be used are passed over, as long as there is another one.
///
/// # Errors
/// When it cannot be read, or has none.
#[cfg(feature = "postgres")]
pub(crate) fn authorities(path: &std::path::Path) -> Result<RootCertStore, TlsError> {
    let (certificates, _) = files::certificates(path)?;
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(certificates);
    if usable == 0 {
        let (expected, found) = ("the certificate of an authority", "none that can be used");
        return Err(TlsError::Content { path: path.to_owned(), expected, found });
    }
    Ok(roots)
}

/// Without resumption: each connection proves anew who its client is.
fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    authorities: Option<RootCertStore>,
) -> Result<ServerConfig, RustlsError> {
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = match authorities {
        Some(authorities) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| RustlsError::General(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}
