//! How the certificate of a database is checked.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::store::StoreError;
use crate::tls;

/// What is checked of the certificate, beside that the database has its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verification {
    /// Nothing: what is sent is encrypted, also to another process in the database's place.
    None,
    /// That an authority signed it.
    Authority,
    /// That, and that it names the host.
    Full,
}

impl Verification {
    /// The configuration of TLS, with the authorities of a file.
    ///
    /// # Errors
    /// When the file cannot be read, or has no certificates.
    pub(super) fn client_config(self, file: Option<&Path>) -> Result<ClientConfig, StoreError> {
        let failed = |cause| StoreError::Failed { action: "set up TLS for the connection to PostgreSQL", cause };
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let roots = file.map(tls::authorities).transpose().map_err(|error| failed(error.to_string()))?;
        let roots = roots.unwrap_or_else(RootCertStore::empty);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| failed(error.to_string()))?;
        let builder = match self {
            Self::Full => builder.with_root_certificates(roots),
            Self::None | Self::Authority => {
                let roots = (self == Self::Authority).then_some(roots);
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName { roots, provider }))
            }
        };
        Ok(builder.with_no_client_auth())
    }
}

/// Accepts a certificate of any name; without roots one of any authority.
#[derive(Debug)]
struct AnyName {
    roots: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
