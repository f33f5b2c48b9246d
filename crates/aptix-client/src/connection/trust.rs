//! Which servers are trusted, how this side proves who it is by a certificate, and what it sends without TLS.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use super::server_url::ServerUrl;

/// What to do about a file that cannot be read: one of authorities, of the certificate, and of its key.
const AUTHORITIES: &str = "name a file with certificates in PEM with --ca FILE";
const CERTIFICATE: &str = "name a file with a certificate in PEM with --client-certificate FILE";
const KEY: &str = "name a file with the certificate's private key in PEM with --client-key FILE";

/// Which servers are trusted, and what proves to them who calls beside a token. Its files are read for each connection, so that
/// those that were replaced are used.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trust {
    /// A file with the authorities of servers' certificates, in PEM. Without it those of the system are trusted.
    pub authorities: Option<PathBuf>,
    /// The certificate of this side.
    pub certificate: Option<ClientCertificate>,
    /// Whether a token may be sent without TLS.
    pub clear_text: ClearText,
}

/// A certificate, and its private key, in PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientCertificate {
    /// The certificate's file.
    pub certificate: PathBuf,
    /// The key's file.
    pub key: PathBuf,
}

/// To which machines a token is sent without TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClearText {
    /// To this machine alone.
    #[default]
    Loopback,
    /// To any: the user accepts that whoever reads the connection has the token.
    Anywhere,
}

impl Trust {
    /// Refuses to send a token to this server where others could read it on the way.
    ///
    /// # Errors
    /// APPROVAL_REQUIRED.
    pub(super) fn check_token(&self, server: &ServerUrl) -> Result<(), Failure> {
        if server.is_secure() || server.is_loopback() || self.clear_text == ClearText::Anywhere {
            return Ok(());
        }
        let message =
            format!("refused to send the token to {server} in clear text, expected https:// or a loopback address");
        Err(Failure::new(Reason::ApprovalRequired, message).hint(
            "use the server's https:// address or an SSH tunnel, or accept with --token-in-clear-text that others can read the token",
        ))
    }

    /// Prepares a connection to a server. Reads files.
    ///
    /// # Errors
    /// When a file cannot be used, or is given for a server without TLS.
    pub(super) fn prepare(&self, server: &ServerUrl, endpoint: Endpoint) -> Result<Endpoint, Failure> {
        if !server.is_secure() {
            return match &self.certificate {
                Some(_) => {
                    Err(unusable(&format!("the client certificate is of no use for {server}: it is sent by TLS alone"))
                        .hint("use the server's https:// address"))
                }
                None => Ok(endpoint),
            };
        }
        let mut config = match &self.authorities {
            Some(file) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authorities(file)?)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        if let Some(ClientCertificate { certificate, key }) = &self.certificate {
            config = config.identity(Identity::from_pem(read(certificate, CERTIFICATE)?, read_key(key)?));
        }
        endpoint.tls_config(config).map_err(|error| {
            let given = self.authorities.iter().chain(self.certificate.iter().map(|files| &files.certificate));
            let files: Vec<_> = given.map(|file| file.display().to_string()).collect();
            let of = if files.is_empty() { "the system's authorities".to_owned() } else { files.join(" and ") };
            let hint = match &self.certificate {
                Some(ClientCertificate { certificate, key }) => format!(
                    "see that {} is the private key of the first certificate in {}, and that --ca FILE holds authorities",
                    key.display(),
                    certificate.display()
                ),
                None => "name the authority of the server's certificate with --ca FILE".to_owned(),
            };
            unusable(&format!("TLS cannot be used with {of}: {}", super::call_error::innermost(&error))).hint(hint)
        })
    }
}

/// The file, once it is known to hold authorities and no section that was cut off.
fn authorities(file: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = read(file, AUTHORITIES)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(bytes),
        _ => Err(unusable(&format!("expected certificates in PEM in {}, found something else", file.display()))
            .hint("name the authority of the server's certificate with --ca FILE")),
    }
}

/// The file of a private key, which its owner and its group alone may read.
fn read_key(file: &Path) -> Result<Vec<u8>, Failure> {
    let metadata = std::fs::metadata(file).map_err(|error| unread(file, &error, KEY))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o037 != 0 {
        let message = format!(
            "refused to use the private key in {}: other users can read or write it (mode {mode:04o}), expected mode 0600",
            file.display()
        );
        return Err(unusable(&message).hint(format!("chmod 0600 {}", file.display())));
    }
    read(file, KEY)
}

fn read(file: &Path, hint: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| unread(file, &error, hint))
}

fn unread(file: &Path, error: &io::Error, hint: &str) -> Failure {
    Failure::new(Reason::ReadFailed, format!("failed to read {}: {error}", file.display())).hint(hint)
}

fn unusable(message: &str) -> Failure {
    Failure::new(Reason::InvalidRequest, message)
}
